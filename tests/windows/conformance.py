#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite as a Windows program under Wine: its OpenCL loader finds sluice_icd.dll in the registry.

usage: conformance.py network|ring [arguments of run_all.py]
  network  the driver talks to a real Linux sluiced on loopback
  ring     to sluiced.exe and its worker, through a pipe and shared memory; the worker's driver is Wine's OpenCL.dll
SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or harness.ROOT / "build-windows").resolve()
PIPE = r"\\.\pipe\sluice-conformance-test"
# What Wine 8's OpenCL.dll cannot do, whatever the platform behind it says.
NOT_ON_WINE = {
    "functions after OpenCL 1.2": ["SvmTest.*", "KernelTest.Clone*"],
    "their fixture wants SVM": ["EnqueueCommonTest.*"],
    "it answers clCompileProgram and clLinkProgram with CL_INVALID_OPERATION": ["ProgramLinkTest.*"],
    "no callbacks, of destructors either": ["MemoryTest.Destructor*"],
    "the platform behind it prints to the host's stdout, not to the worker's": ["PrintfTest.*"],
}


def run_suite(wine, endpoint, kind, arguments):
    run_all = harness.ROOT / "tests" / "conformance" / "run_all.py"
    environment = dict(os.environ, SLUICE_ENDPOINT=endpoint, SLUICE_TEST_KIND=kind, SLUICE_CONNECT_TIMEOUT_MS="20000")
    return subprocess.call([sys.executable, "-B", str(run_all), str(wine.launcher(BUILD / "bin" / "sluice_conformance.exe")),
                            *arguments], env=environment)


def on_network(wine, arguments):
    with harness.Daemon("network") as daemon:
        return run_suite(wine, daemon.endpoint(), "network", arguments)


def on_ring(wine, arguments):
    for reason, tests in NOT_ON_WINE.items():
        print(f"not run, {reason}: {', '.join(tests)}")
    left_out = ":".join(test for tests in NOT_ON_WINE.values() for test in tests)
    endpoint = "pipe:" + PIPE
    log = wine.directory / "sluiced.log"
    with open(log, "wb") as output:
        daemon = subprocess.Popen(["wine", str(BUILD / "bin" / "sluiced.exe"), "--console", "--socket", PIPE],
                                  env={**wine.environment, "WINEDLLOVERRIDES": "mscoree,mshtml="},
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        devices = [BUILD / "bin" / "sluicectl.exe", "devices", "--endpoint", endpoint]
        if not harness.wait_until(lambda: wine.run(devices, seconds=30)[0] == 0, 60):
            print(f"FAIL windows: sluiced.exe does not answer: {log.read_text(errors='replace')}")
            return 1
        return run_suite(wine, endpoint, "ring", [f"--filter=-{left_out}", *arguments])
    finally:
        daemon.kill()
        daemon.wait()


def main(arguments):
    kinds = {"network": on_network, "ring": on_ring}
    if not arguments or arguments[0] not in kinds:
        sys.exit(__doc__)
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows conformance: {reason}")
        return 0
    with wine_module.Wine() as wine:
        wine.register_driver(BUILD / "bin" / "sluice_icd.dll")
        return kinds[arguments[0]](wine, arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
