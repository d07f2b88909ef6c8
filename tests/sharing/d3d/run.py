#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The Direct3D sharing tests under Wine, with Direct3D on software rendering; sluice_icd.dll is found in the registry.

usage: run.py [unit] [network] [ring] [killed] [GoogleTest's flags]
  unit     what Wine's Direct3D has not (shared handles, keyed mutexes, fences), with one that is made up
  network  the driver talks to a real Linux sluiced on loopback
  ring     to sluiced.exe and its worker, both under Wine; the worker's driver is Wine's OpenCL.dll
  killed   an application that is killed in the middle of acquires: sluiced.exe goes on, its worker goes
Without one, all but ring, which run.sh has as a step of its own.
SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "windows")]

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = 900
BIN = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or harness.ROOT / "build-windows").resolve() / "bin"
UNIT, PROGRAM, DRIVER = BIN / "d3d_unit_test.exe", BIN / "sluice_d3d_test.exe", BIN / "sluice_icd.dll"
PIPE = r"\\.\pipe\sluice-d3d-test"


def unit(wine, flags):
    code, output = wine.run([UNIT, *flags], SECONDS)
    print(output)
    return code


def network(wine, flags):
    with harness.Daemon("network") as daemon:
        settings = {name: value for name, value in daemon.environment().items() if name.startswith("SLUICE_")}
        code, output = wine.run([PROGRAM, *flags], SECONDS, SLUICE_CONNECT_TIMEOUT_MS="20000", **settings)
    print(output)
    return code


def ctl(wine, *arguments):
    code, output = wine.run([BIN / "sluicectl.exe", *arguments, "--json", "--endpoint", "pipe:" + PIPE], seconds=60)
    return json.loads(output) if code == 0 else None


@contextlib.contextmanager
def daemon_under_wine(wine):
    log = wine.directory / "sluiced.log"
    with open(log, "wb") as output:
        daemon = subprocess.Popen(["wine", str(BIN / "sluiced.exe"), "--console", "--socket", PIPE],
                                  env={**wine.environment, "WINEDLLOVERRIDES": "mscoree,mshtml="},
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        if not harness.wait_until(lambda: ctl(wine, "devices") is not None, 60):
            sys.exit(f"FAIL windows: sluiced.exe does not answer: {log.read_text(errors='replace')}")
        yield daemon
    finally:
        daemon.kill()
        daemon.wait()


def settings_of_ring():
    return {"SLUICE_ENDPOINT": "pipe:" + PIPE, "SLUICE_TEST_KIND": "ring", "SLUICE_CONNECT_TIMEOUT_MS": "20000"}


def ring(wine, flags):
    with daemon_under_wine(wine):
        code, output = wine.run([PROGRAM, *flags], SECONDS, **settings_of_ring())
    print(output)
    return code


def workers_of(wine):
    """The processes of Wine's that are workers in this prefix, as the host sees them."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and b"sluice-worker.exe" in (entry / "cmdline").read_bytes() \
                    and wine.environment["WINEPREFIX"].encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def killed(wine, _):
    """Prints its verdicts itself: there is nobody left in the program who could."""
    verdicts = []

    def check(name, good, detail=""):
        verdicts.append(good)
        print(f"{'PASS' if good else 'FAIL'} killed: {name}" + ("" if good else f": {detail}"))

    with daemon_under_wine(wine) as daemon:
        said = wine.directory / "application.log"
        with open(said, "wb") as output:
            application = subprocess.Popen(["wine", str(PROGRAM), "--child=KilledInAcquire"],
                                           env={**wine.environment, **settings_of_ring()}, stdin=subprocess.DEVNULL,
                                           stdout=output, stderr=subprocess.STDOUT)
        try:
            there = harness.wait_until(
                lambda: b"in the middle" in said.read_bytes() or application.poll() is not None, 60, 0.1)
            check("it is in the middle of its acquires", there and application.poll() is None,
                  said.read_text(errors="replace"))
            sessions = (ctl(wine, "sessions") or {}).get("sessions", [])
            check("it has a session and a worker", len(sessions) == 1 and workers_of(wine), (sessions, workers_of(wine)))
        finally:
            application.kill()
            application.wait()
        check("its worker goes", harness.wait_until(lambda: not workers_of(wine), 20, 0.1), workers_of(wine))
        check("its session goes", harness.wait_until(lambda: ctl(wine, "sessions") == {"sessions": []}, 20, 0.1),
              ctl(wine, "sessions"))
        check("the service goes on", daemon.poll() is None and ctl(wine, "status") is not None)
        code, output = wine.run([PROGRAM, "--gtest_filter=D3dOrder/*.NothingIsWaitedForByHand"], 120, **settings_of_ring())
        check("the next application shares as before", code == 0 and "[  PASSED  ]" in output, output)
    return 0 if all(verdicts) else 1


def main(arguments):
    kinds = {"unit": unit, "network": network, "ring": ring, "killed": killed}
    chosen = [kinds[name] for name in arguments if name in kinds]
    flags = [one for one in arguments if one not in kinds]
    if any(not one.startswith("--gtest") for one in flags):
        sys.exit(__doc__)
    for path in (UNIT, PROGRAM, DRIVER):
        if not path.is_file():
            sys.exit(f"FAIL windows: {path} is missing; run deploy/windows/build.sh")
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows sharing: {reason}")
        return 0
    with wine_module.Wine(display=True) as wine:
        wine.register_driver(DRIVER)
        return max([part(wine, flags) for part in chosen or (unit, network, killed)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
