#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A Windows OpenCL program of others, unmodified: clFFT's examples, from Debian's source package, with sluice_icd.dll
under Wine; by a Linux sluiced on the network, and by sluiced.exe on the ring.

They check nothing and always end with 0: what they print as the transform of what they print is computed here again.

SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/), which keeps
the source and what is built of it in clfft/.
"""
import cmath
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position
from windows_daemon import BIN, BUILD, WindowsDaemon  # noqa: E402  pylint: disable=wrong-import-position

DEPLOY = harness.ROOT / "deploy" / "windows"
FOLDER = BUILD / "clfft"
PROGRAMS = FOLDER / "build" / "examples" / "examples"
EXAMPLES = {"fft1d": (16,), "fft2d": (8, 8), "fft3d": (4, 4, 4)}
REPORT = harness.Report("windows clfft")


def done(*command, seconds, **variables):
    """Whether the command succeeded; what it wrote goes into a log, and the log's last line is the reason if not."""
    log = FOLDER / "log"
    with open(log, "wb") as output:
        try:
            code = subprocess.run([*map(str, command)], env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT, timeout=seconds, check=False).returncode
        except subprocess.TimeoutExpired:
            return False, f"no end within {seconds} s"
        except OSError as error:
            return False, str(error)
    return code == 0, log.read_text(errors="replace").strip()[-2000:]


def fetched():
    """None once the source is there; else why it cannot be."""
    if (FOLDER / "source").is_dir():
        return None
    good, output = done(DEPLOY.parent / "fetch-source.sh", FOLDER, "clfft", seconds=150)
    if good:
        package = max((FOLDER / "download").glob("clfft_*.dsc"))
        shutil.rmtree(FOLDER / "unpacked", ignore_errors=True)
        good, output = done("dpkg-source", "--no-check", "-x", package, FOLDER / "unpacked", seconds=60)
    if not good:
        return output.splitlines()[-1] if output else "no reason given"
    (FOLDER / "unpacked").rename(FOLDER / "source")
    return None


def build():
    """Of the library what the examples need. It spells a header of Windows' as that system lets it, and knows no newer
    OpenCL than 1.2."""
    headers = FOLDER / "headers"
    headers.mkdir(exist_ok=True)
    for name, target in (("CL", "/usr/include/CL"),
                         ("SDKDDKVer.h", "/usr/x86_64-w64-mingw32/include/sdkddkver.h")):
        if not (headers / name).is_symlink():
            (headers / name).symlink_to(target)
    common = f"-w -isystem {headers}"
    good, output = done(
        "cmake", "-S", FOLDER / "source" / "src", "-B", FOLDER / "build", "-G", "Ninja", "-Wno-dev",
        f"-DCMAKE_TOOLCHAIN_FILE={DEPLOY / 'toolchain.cmake'}", "-DBUILD_SHARED_LIBS=OFF", "-DBUILD_LOADLIBRARIES=OFF",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O0", f"-DOPENCL_INCLUDE_DIRS={headers}",
        f"-DOPENCL_LIBRARIES={BUILD / 'tests' / 'windows' / 'libOpenCL.dll.a'}", f"-DCMAKE_C_FLAGS={common}",
        f"-DCMAKE_CXX_FLAGS={common} -fpermissive -DUNICODE -D_UNICODE -DCL_TARGET_OPENCL_VERSION=120", seconds=120)
    if good:
        jobs = os.environ.get("SLUICE_BUILD_JOBS") or str(os.cpu_count())
        good, output = done("cmake", "--build", FOLDER / "build", "-j", jobs, seconds=400)
    if good:
        # Windows looks for a program's libraries beside it first.
        shutil.copy(BIN / "OpenCL.dll", PROGRAMS)
    return REPORT.check(good, "builds from its source as it is", "" if good else output)


def numbers(text):
    return [complex(float(x), float(y)) for x, y in re.findall(r"\((-?[\d.]+), (-?[\d.]+)\)", text)]


def transform(values, shape):
    """By its definition, one dimension after the other; row after row, as the examples have it."""
    stride = len(values)
    for size in shape:
        stride //= size
        roots = [cmath.exp(-2j * cmath.pi * k / size) for k in range(size)]
        old, values = values, [0j] * len(values)
        for index, k in itertools.product(range(len(values)), range(size)):
            place = index // stride % size
            values[index] += roots[place * k % size] * old[index + (k - place) * stride]
    return values


def judge(output, shape):
    """None if the output holds a transform and it is right; else what is wrong."""
    before, found, after = output.partition("fft result:")
    given, result = numbers(before), numbers(after)
    if "Platform found: Sluice (" not in before:
        return "not on Sluice's platform"
    expected = transform(given, shape)
    if not found or len(given) != len(result) or not any(given):
        return f"{len(given)} numbers in and {len(result)} out"
    bound = 1e-5 * sum(map(abs, given))  # No element of the transform is larger than that sum.
    worst = max(abs(one - two) for one, two in zip(result, expected))
    return None if worst <= bound else f"off by {worst}"


def examples(wine, daemon):
    for name, shape in EXAMPLES.items():
        code, output = wine.run([PROGRAMS / f"{name}.exe"], seconds=120,
                                SLUICE_ENDPOINT=daemon.endpoint(), SLUICE_TEST_KIND=daemon.kind)
        wrong = f"exit code {code}" if code else judge(output, shape)
        REPORT.check(wrong is None, f"{name} {daemon.kind}", f"{wrong}: {output}" if wrong else "")


def main():
    reason = wine_module.missing()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if reason is None and (why := fetched()) is not None:
        reason = f"the source of clfft cannot be fetched: {why}"
    if reason:
        print(f"SKIP windows clfft: {reason}")
        return
    if build():
        with wine_module.Wine() as wine:
            wine.register_driver(BIN / "sluice_icd.dll")
            with harness.Daemon("network") as daemon:
                examples(wine, daemon)
            with WindowsDaemon(wine, "ring") as daemon:
                examples(wine, daemon)
    REPORT.exit()


if __name__ == "__main__":
    main()
