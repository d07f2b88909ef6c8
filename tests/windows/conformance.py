#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite with Windows at one end or both, under Wine. As a Windows program its OpenCL loader finds
sluice_icd.dll in the registry; the driver of sluiced.exe's workers is Wine's OpenCL.dll.

usage: conformance.py network|ring|gateway|windows-network [arguments of run_all.py]
  network          the Windows driver talks to a real Linux sluiced on loopback
  ring             to sluiced.exe and its worker, through a pipe and shared memory
  gateway          the Linux driver talks to sluiced.exe's network endpoint on loopback
  windows-network  the Windows driver does
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
from windows_daemon import BUILD, WindowsDaemon  # noqa: E402  pylint: disable=wrong-import-position

RUN_ALL = harness.ROOT / "tests" / "conformance" / "run_all.py"
# What Wine 8's OpenCL.dll cannot do, whatever the platform behind it says.
NOT_ON_WINE = {
    "functions after OpenCL 1.2": ["SvmTest.*", "SvmCopyTest.*", "LateErrorTest.Svm", "KernelTest.Clone*"],
    "their fixture wants SVM": ["EnqueueCommonTest.*"],
    "it answers clCompileProgram and clLinkProgram with CL_INVALID_OPERATION": [
        "ProgramLinkTest.*", "ForeignDeviceTest.Builds", "ForeignDeviceTest.LinkForNoDevice",
        "SubDeviceTest.ProgramsOfTheParent"],
    "the platform behind it knows no path of Windows', and so no folder of includes": ["CancellationTest.*", "ProgramIncludeTest.*"],
    "the platform behind it prints to the host's stdout, not to the worker's": ["PrintfTest.*"],
}


def run_suite(wine, daemon, arguments):
    """The Windows suite."""
    environment = dict(os.environ, SLUICE_ENDPOINT=daemon.endpoint(), SLUICE_TEST_KIND=daemon.kind)
    return subprocess.call([sys.executable, "-B", str(RUN_ALL), str(wine.launcher(BUILD / "bin" / "sluice_conformance.exe")),
                            *arguments], env=environment)


def left_out():
    for reason, tests in NOT_ON_WINE.items():
        print(f"not run, {reason}: {', '.join(tests)}")
    return "--filter=-" + ":".join(test for tests in NOT_ON_WINE.values() for test in tests)


def on_network(wine, arguments):
    with harness.Daemon("network") as daemon:
        return run_suite(wine, daemon, arguments)


def on_windows(wine, kind, arguments):
    with WindowsDaemon(wine, kind) as daemon:
        return run_suite(wine, daemon, [left_out(), *arguments])


def on_gateway(wine, arguments):
    with WindowsDaemon(wine, "network") as daemon:
        return subprocess.call([sys.executable, "-B", str(RUN_ALL), str(harness.built("sluice_conformance")), left_out(),
                                *arguments], env=daemon.environment())


def main(arguments):
    kinds = {"network": on_network, "gateway": on_gateway,
             "ring": lambda wine, more: on_windows(wine, "ring", more),
             "windows-network": lambda wine, more: on_windows(wine, "network", more)}
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
