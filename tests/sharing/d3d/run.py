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
    unit, program, driver = (build / "bin" / name for name in ("d3d_unit_test.exe", "sluice_d3d_test.exe", "sluice_icd.dll"))
    for path in (unit, program, driver):
        if not path.is_file():
            sys.exit(f"FAIL windows: {path} is missing; run deploy/windows/build.sh")
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows sharing: {reason}")
        return 0
    with harness.Daemon("network") as daemon, wine_module.Wine(display=True) as wine:
        # What Wine's Direct3D has not, with one that is made up; not if a test of the other program is named.
        unit_code, output = wine.run([unit], SECONDS) if not arguments else (0, "")
        print(output)
        wine.register_driver(driver)
        settings = {name: value for name, value in daemon.environment().items() if name.startswith("SLUICE_")}
        settings["SLUICE_CONNECT_TIMEOUT_MS"] = "20000"
        code, output = wine.run([program, *arguments], SECONDS, **settings)
    print(output)
    return code or unit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
