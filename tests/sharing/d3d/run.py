#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The Direct3D sharing tests under Wine, with Direct3D on software rendering: sluice_icd.dll, found in the registry, talks
over the network to a real Linux sluiced on loopback.

usage: run.py [GoogleTest's flags]
SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import os
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "windows")]

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = 900


def main(arguments):
    build = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or harness.ROOT / "build-windows").resolve()
    program, driver = build / "bin" / "sluice_d3d_test.exe", build / "bin" / "sluice_icd.dll"
    for path in (program, driver):
        if not path.is_file():
            sys.exit(f"FAIL windows: {path} is missing; run deploy/windows/build.sh")
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows sharing: {reason}")
        return 0
    with harness.Daemon("network") as daemon, wine_module.Wine(display=True) as wine:
        wine.register_driver(driver)
        settings = {name: value for name, value in daemon.environment().items() if name.startswith("SLUICE_")}
        settings["SLUICE_CONNECT_TIMEOUT_MS"] = "20000"
        code, output = wine.run([program, *arguments], SECONDS, **settings)
    print(output)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
