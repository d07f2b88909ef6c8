#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite as a Windows program under Wine: its OpenCL loader finds sluice_icd.dll in the registry, which
talks over the network to a real Linux sluiced on loopback.

usage: conformance.py [arguments of run_all.py]
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


def main(arguments):
    build = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or harness.ROOT / "build-windows").resolve()
    suite, driver = build / "bin" / "sluice_conformance.exe", build / "bin" / "sluice_icd.dll"
    for path in (suite, driver):
        if not path.is_file():
            sys.exit(f"FAIL windows: {path} is missing; run deploy/windows/build.sh")
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows conformance: {reason}")
        return 0
    with harness.Daemon("network") as daemon, wine_module.Wine() as wine:
        wine.register_driver(driver)
        environment = dict(daemon.environment(), SLUICE_CONNECT_TIMEOUT_MS="20000")
        run_all = harness.ROOT / "tests" / "conformance" / "run_all.py"
        return subprocess.call([sys.executable, "-B", str(run_all), str(wine.launcher(suite)), *arguments],
                               env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
