#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The OpenGL sharing tests under Wine, with WGL contexts on software rendering; sluice_icd.dll is found in the registry.

usage: run.py [network] [ring] [GoogleTest's flags]
  network  the driver talks to a real Linux sluiced on loopback
  ring     to sluiced.exe and its worker, both under Wine; the worker's driver is Wine's OpenCL.dll
Without one, both.
SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "windows")]

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position
from windows_daemon import BIN, WindowsDaemon  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = 600
PROGRAM, DRIVER = BIN / "sluice_gl_test.exe", BIN / "sluice_icd.dll"


def run(wine, daemon, flags):
    code, output = wine.run([PROGRAM, *flags], SECONDS, SLUICE_ENDPOINT=daemon.endpoint(), SLUICE_TEST_KIND=daemon.kind,
                            SLUICE_CONNECT_TIMEOUT_MS="20000")
    print(output)
    return code


def network(wine, flags):
    with harness.Daemon("network") as daemon:
        return run(wine, daemon, flags)


def ring(wine, flags):
    with WindowsDaemon(wine, "ring") as daemon:
        return run(wine, daemon, flags)


def main(arguments):
    kinds = {"network": network, "ring": ring}
    chosen = [kinds[name] for name in arguments if name in kinds]
    flags = [one for one in arguments if one not in kinds]
    if any(not one.startswith("--gtest") for one in flags):
        sys.exit(__doc__)
    for path in (PROGRAM, DRIVER):
        if not path.is_file():
            sys.exit(f"FAIL windows: {path} is missing; run deploy/windows/build.sh")
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows sharing: {reason}")
        return 0
    with wine_module.Wine(display=True) as wine:
        wine.register_driver(DRIVER)
        return max([part(wine, flags) for part in chosen or (network, ring)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
