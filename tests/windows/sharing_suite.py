# SPDX-License-Identifier: Apache-2.0
"""What the sharing tests under Wine have in common (tests/sharing/d3d, tests/sharing/wgl): a program of GoogleTest's with a
display, and sluice_icd.dll in the registry.

    network  the driver talks to a real Linux sluiced on loopback
    ring     to sluiced.exe and its worker, both under Wine; the worker's driver is Wine's OpenCL.dll

Python 3 standard library only.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position
from windows_daemon import BIN, WindowsDaemon  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = 900
DRIVER = BIN / "sluice_icd.dll"


def settings_of(daemon):
    return {"SLUICE_ENDPOINT": daemon.endpoint(), "SLUICE_TEST_KIND": daemon.kind}


def run(wine, program, flags, **settings):
    code, output = wine.run_tests([program, *flags], SECONDS, **settings)
    print(output)
    return code


def transports(program):
    """The parts that run all of the program, by name."""
    def network(wine, flags):
        with harness.Daemon("network") as daemon:
            return run(wine, program, flags, **settings_of(daemon))

    def ring(wine, flags):
        with WindowsDaemon(wine, "ring") as daemon:
            return run(wine, program, flags, **settings_of(daemon))

    return {"network": network, "ring": ring}


def main(arguments, usage, programs, parts, default):
    """Runs the parts that the arguments name, or the default ones; other arguments are GoogleTest's flags."""
    chosen = [parts[name] for name in arguments if name in parts] or [parts[name] for name in default]
    flags = [one for one in arguments if one not in parts]
    if any(not one.startswith("--gtest") for one in flags):
        sys.exit(usage)
    for path in (*programs, DRIVER):
        if not path.is_file():
            sys.exit(f"FAIL windows: {path} is missing; run deploy/windows/build.sh")
    reason = wine_module.missing(display=True)
    if reason:
        print(f"SKIP windows sharing: {reason}")
        return 0
    with wine_module.Wine(display=True) as wine:
        wine.register_driver(DRIVER)
        return max([part(wine, flags) for part in chosen])
