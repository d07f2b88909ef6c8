#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The Direct3D sharing tests under Wine, with Direct3D on software rendering; sluice_icd.dll is found in the registry.

usage: run.py [unit] [network] [complete] [ring] [killed] [GoogleTest's flags]
  unit     what Wine's Direct3D has not (shared handles, keyed mutexes, fences), with one that is made up
  network  the driver talks to a real Linux sluiced on loopback
  complete the same with a driver that has CL_RG images, which PoCL has not (tests/complete_driver): the tests of formats
           and planes, all of which must be shared
  ring     to sluiced.exe and its worker, both under Wine; the worker's driver is Wine's OpenCL.dll
  killed   an application of each API that is killed in the middle of acquires, with either daemon: the service goes
           on, the worker goes
Without one, all but ring, which run.sh has as a step of its own.
SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import json
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "system"), str(TESTS / "windows")]

import complete_driver  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
import sharing_suite  # noqa: E402  pylint: disable=wrong-import-position
from windows_daemon import BIN, WindowsDaemon  # noqa: E402  pylint: disable=wrong-import-position

UNITS = [BIN / "d3d_unit_test.exe", BIN / "d3d11_texture_test.exe"]
PROGRAM = BIN / "sluice_d3d_test.exe"
# The scenes of lost_test.cc, and a test of the same API.
KILLED = {"D3D9": "Dx9Order.DrawnThenTransformed/D3D9", "D3D9Ex": "Dx9Order.DrawnThenTransformed/D3D9Ex",
          **{api: f"D3dOrder/{i}.NothingIsWaitedForByHand" for i, api in enumerate(("D3D10", "D3D11", "D3D11NV"))}}


def unit(wine, flags):
    return max([sharing_suite.run(wine, program, flags) for program in UNITS])


def complete(wine, flags):
    pattern = "--gtest_filter=*EveryFormat*:*Nv12*"
    with complete_driver.daemon("network") as daemon:
        code, output = wine.run_tests([PROGRAM, pattern, *flags], sharing_suite.SECONDS,
                                      **sharing_suite.settings_of(daemon))
    print(output)
    # Direct3D 9 under Wine may not make some; the device has them all.
    for line in output.splitlines():
        count = re.fullmatch(r"(\d+) of (\d+) formats shared(?:, (\d+) made)?", line)
        if count and count[1] != (count[3] or count[2]) or line.startswith("[  SKIPPED ] ") and line.endswith(" ms)"):
            print(f"FAIL complete driver: {line}")
            code = 1
    return code


def ctl(daemon, what):
    """None if the daemon does not answer."""
    if isinstance(daemon, WindowsDaemon):
        code, output = daemon.ctl(what, "--json")
    else:
        done = subprocess.run([str(harness.built("sluicectl")), what, "--json", "--endpoint", f"unix:{daemon.socket}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=False)
        code, output = done.returncode, done.stdout
    return json.loads(output) if code == 0 else None


def killed(wine, _):
    """Prints its verdicts itself: there is nobody left in the program who could."""
    verdicts = []

    def check(name, good, detail=""):
        verdicts.append(good)
        print(f"{'PASS' if good else 'FAIL'} killed: {name}" + ("" if good else f": {detail}"), flush=True)

    for daemon in (WindowsDaemon(wine, "ring"), harness.Daemon("network")):
        with daemon:
            for api in KILLED:
                kill_one(wine, daemon, api, lambda name, *more, api=api: check(f"{daemon.kind} {api}: {name}", *more))
    return 0 if all(verdicts) else 1


def kill_one(wine, daemon, api, check):
    settings = sharing_suite.settings_of(daemon)
    said = wine.directory / "application.log"
    with open(said, "wb") as output:
        application = subprocess.Popen(["wine", str(PROGRAM), f"--child=Killed{api}"],
                                       env={**wine.environment, **settings}, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT)
    try:
        there = harness.wait_until(
            lambda: b"in the middle" in said.read_bytes() or application.poll() is not None, 60, 0.1)
        check("it is in the middle of its acquires", there and application.poll() is None,
              said.read_text(errors="replace"))
        # One that it has ended before takes a moment to go, over the network.
        sessions = []

        def has_one():
            sessions[:] = (ctl(daemon, "sessions") or {}).get("sessions", [])
            return len(sessions) == 1 and daemon.workers()
        check("it has a session and a worker", harness.wait_until(has_one, 20, 0.1), (sessions, daemon.workers()))
    finally:
        application.kill()
        application.wait()
    check("its worker goes", harness.wait_until(lambda: not daemon.workers(), 40, 0.1), daemon.workers())
    check("its session goes", harness.wait_until(lambda: ctl(daemon, "sessions") == {"sessions": []}, 20, 0.1),
          ctl(daemon, "sessions"))
    check("the service goes on", daemon.process.poll() is None and ctl(daemon, "status") is not None)
    code, output = wine.run([PROGRAM, f"--gtest_filter={KILLED[api]}"], 120, **settings)
    check("the next application shares as before", code == 0 and "[  PASSED  ] 1 test" in output, output)


if __name__ == "__main__":
    PARTS = {"unit": unit, **sharing_suite.transports(PROGRAM), "complete": complete, "killed": killed}
    sys.exit(sharing_suite.main(sys.argv[1:], __doc__, [*UNITS, PROGRAM], PARTS, ("unit", "network", "complete", "killed")))
