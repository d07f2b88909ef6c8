#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""OpenCL applications under Wine across restarts of the daemon: of the service, which ends its sessions, and of a daemon
that is killed, whose workers and sessions go on. They are restart_client.c and, with objects of Direct3D's acquired, the
scenes of tests/sharing/d3d/restart_test.cc.

usage: restart.py
SLUICE_WINDOWS_BUILD_DIR is the Windows build (default: build-windows/).
"""
import contextlib
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system"), str(HERE.parent)]

import harness  # noqa: E402  pylint: disable=wrong-import-position
import limit  # noqa: E402  pylint: disable=wrong-import-position
import service as service_test  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position
from windows_daemon import BIN, WindowsDaemon  # noqa: E402  pylint: disable=wrong-import-position

WORKS = "old: fill=0 finish=0 create=0 notified=0"
LOST = "old: fill=-2 finish=-2 create=-2 notified=1"  # CL_DEVICE_NOT_AVAILABLE; the context's notify function, once.
STOPPED, STOP_PENDING = 1, 3  # SERVICE_STOPPED, SERVICE_STOP_PENDING


class Application:
    """A program that says how far it is, line by line, and is told by lines when to go on. What it says is in a file: its
    output is no pipe of ours (wine.py)."""

    def __init__(self, wine, *command, **settings):
        self.log = wine.directory / f"{'-'.join(command)}.log"
        self.heard = 0
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                ["wine", str(BIN / command[0]), *command[1:]], stdin=subprocess.PIPE, stdout=output,
                stderr=subprocess.STDOUT,
                env={**wine.environment, "WINEDLLOVERRIDES": "mscoree,mshtml=;opencl=n", **settings})

    def lines(self):
        return self.log.read_text(errors="replace").splitlines()

    def hear(self):
        """Its next line; None if it says nothing in a minute, which is up to four on a busy machine (limit.py)."""
        clock = limit.Clock()
        harness.wait_until(lambda: len(self.lines()) > self.heard or self.process.poll() is not None or
                           clock.passed() > 60, 300, 0.05)
        if len(self.lines()) <= self.heard:
            return None
        self.heard += 1
        return self.lines()[self.heard - 1]

    def tell(self, what):
        with contextlib.suppress(OSError):  # It has ended, and says no more.
            self.process.stdin.write(what.encode() + b"\n")
            self.process.stdin.flush()

    def ask(self, what):
        self.tell(what)
        return self.hear()

    def end(self):
        answer = self.ask("end")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return answer, self.process.wait(timeout=30)
        return answer, None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def start(wine):
    code, output = wine.run(["sc", "start", "Sluice"], seconds=60)
    service_test.check("restart: the service starts", code == 0, output)
    return service_test.wait_for("restart: the service runs", 120, lambda: service_test.state(wine) == "RUNNING")


def stop(wine):
    wine.run(["sc", "stop", "Sluice"], seconds=60)
    return service_test.wait_for("restart: the service stops", 60, lambda: service_test.state(wine) == "STOPPED")


def install(wine):
    """True once the service runs."""
    configuration = wine.directory / "sluiced.toml"
    configuration.write_text("[broker]\ndrain_timeout_ms = 3000\n")
    code, output = service_test.ctl(wine, "install", "--manual", "--config", wine_module.windows_path(configuration))
    service_test.check("restart: install", code == 0, output)
    return code == 0 and start(wine)


def of_service(wine):
    """Stopping ends the sessions once its time for draining is over."""
    check = service_test.check
    if not install(wine):
        return
    application = Application(wine, "restart_client.exe")
    try:
        check("restart: it has a context", application.ask("anew") == "new: 0", application.lines())
        check("restart: which works", application.ask("look") == WORKS, application.lines())
        said = service_test.stop_and_follow(wine)
        # 3 s and what ends the sessions that are left then; a minute before that is known.
        told = [facts for facts in said if facts["state"] == STOP_PENDING and facts["hint"] not in (0, 60_000)]
        check("restart: the stop says how long it may take, before it is over", len(told) > 0, said)
        check("restart: with a checkpoint more", all(facts["checkpoint"] >= 2 for facts in told), said)
        check("restart: the service stops", bool(said) and said[-1]["state"] == STOPPED, said)
        check("restart: its session is lost, with the documented codes", application.ask("look") == LOST,
              application.lines())
        answer = application.ask("anew")
        check("restart: no context without the service, and no hang", answer not in (None, "new: 0"), answer)
        if start(wine):
            check("restart: a new context works", application.ask("anew") == "new: 0", application.lines())
            check("restart: and goes on working", application.ask("look") == WORKS, application.lines())
        check("restart: it gives everything back", application.end() == ("released", 0), application.lines())
    finally:
        application.close()
        stop(wine)
        service_test.ctl(wine, "uninstall")


def of_direct3d(wine):
    """Applications of each Direct3D have objects acquired, and others under way, when the service goes: the documented
    codes come, everything can be released, and the same objects are shared again once the service is back."""
    if wine.display is None:
        print(f"SKIP restart: Direct3D: {wine_module.missing(display=True)}")
        return
    check = service_test.check
    if not install(wine):
        return
    scenes = {api: Application(wine, "sluice_d3d_test.exe", f"--child=Restart{api}", SLUICE_TEST_KIND="ring")
              for api in ("D3D9", "D3D9Ex", "D3D10", "D3D11", "D3D11NV")}

    def expect(line, step):
        for api, scene in scenes.items():
            check(f"restart: {api}: {step}", scene.hear() == line, scene.lines())

    def go_on():
        for scene in scenes.values():
            scene.tell("")

    try:
        expect("acquired", "it is in the middle")
        stop(wine)
        go_on()
        expect("released", "the documented codes came, and it has released everything")
        if start(wine):
            go_on()
            expect("shared again", "the same objects are shared again")
        for api, scene in scenes.items():
            end = scene.end()
            check(f"restart: {api}: it ends well", end == (None, 0), (end, scene.lines()))
    finally:
        for scene in scenes.values():
            scene.close()
        stop(wine)
        service_test.ctl(wine, "uninstall")


def of_killed(wine):
    """A daemon that is killed has workers that live on: what their clients have goes on."""
    check = service_test.check
    with WindowsDaemon(wine, "ring") as daemon:
        application = Application(wine, "restart_client.exe", SLUICE_ENDPOINT=daemon.endpoint())
        try:
            check("killed: it has a context", application.ask("anew") == "new: 0", application.lines())
            daemon.process.kill()
            daemon.process.wait()
            check("killed: its session goes on", application.ask("look") == WORKS, application.lines())
            daemon.start_with({})
            check("killed: also after the restart", application.ask("look") == WORKS, application.lines())
            check("killed: a new context works", application.ask("anew") == "new: 0", application.lines())
            check("killed: it gives everything back", application.end() == ("released", 0), application.lines())
        finally:
            application.close()


def main():
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows restart: {reason}")
        return 0
    with wine_module.Wine(display=wine_module.missing(display=True) is None) as wine:
        wine.environment["WINEDLLOVERRIDES"] = service_test.OPENCL
        service_test.keep_one_service_manager(wine)
        wine.programs = service_test.unpack(wine)
        wine.register_driver(BIN / "sluice_icd.dll")
        for part in (of_killed, of_service, of_direct3d):
            if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
                part(wine)
    print(f"{len(service_test.FAILURES)} failed")
    return 1 if service_test.FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
