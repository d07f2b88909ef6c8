# SPDX-License-Identifier: Apache-2.0
"""sluiced.exe under Wine, as the harness has sluiced: on a pipe of its own and, for `network`, a port of loopback. The
driver of its workers is PoCL behind Wine's OpenCL.dll.

    with wine_module.Wine() as wine, WindowsDaemon(wine, "network") as daemon: ...

Python 3 standard library only.
"""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or harness.ROOT / "build-windows").resolve()
BIN = BUILD / "bin"
OPENCL = "mscoree,mshtml="  # Wine's own OpenCL.dll: the worker's driver.


class WindowsDaemon(harness.Daemon):
    """network: lines of the configuration's [[network]]; files that they name lie in `directory`, under wine's names."""

    def __init__(self, wine, kind, limits="", network=""):
        self.wine = wine
        self.network = network
        super().__init__(kind, limits)

    def _config_text(self, limits):
        self.pipe = rf"\\.\pipe\{self.directory.name}"
        text = f"[broker]\nsocket = '{self.pipe}'\n"
        if limits:
            text += f"[limits]\n{limits}\n"
        if self.kind == "network":
            text += f'[[network]]\nlisten = "{self.address}:{self.port}"\n{self.network}\n'
        return text

    def pipe_endpoint(self):
        return f"pipe:{self.pipe}"

    def endpoint(self):
        return self.pipe_endpoint() if self.kind == "ring" else super().endpoint()

    def environment(self):
        return {**super().environment(), **wine_module.CONNECT_LIMIT}

    def ctl(self, *arguments, seconds=60):
        """sluicectl's exit code and what it wrote."""
        return self.wine.run([BIN / "sluicectl.exe", *arguments, "--endpoint", self.pipe_endpoint()], seconds=seconds)

    def start_with(self, additions):
        with open(self.log, "ab") as log:
            command = ["wine", str(BIN / "sluiced.exe"), "--console", "--config", wine_module.windows_path(self.config)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={
                **self.wine.environment, "WINEDLLOVERRIDES": OPENCL, **additions})
        harness.wait_until(lambda: self._answers() or self.process.poll() is not None, 60, 0.05)
        if self.process.poll() is not None or not self._answers():
            text = self.log.read_text(errors="replace")
            self.clean()
            sys.exit(f"FAIL harness: sluiced.exe did not come up; its log:\n{text}")
        return self

    def _answers(self):
        """The gateway of a daemon that was killed accepts too, until the next one waits for its port."""
        return self.ctl("devices")[0] == 0 and (self.kind != "network" or harness.accepts("127.0.0.1", self.port))

    def processes(self):
        """Of its prefix, but for the broker: Wine's children are nobody's on Linux. Other daemons there count too."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            pid = int(entry)
            name = harness.program(pid)
            if name.endswith(("sluice-worker.exe", "sluice-gateway.exe", "sluice-allocator.exe")) and harness.alive(
                    pid) and self._in_prefix(pid):
                found.append(pid)
        self.seen.update(found)
        return sorted(found)

    def _in_prefix(self, pid):
        try:
            variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return False
        return f"WINEPREFIX={self.wine.environment['WINEPREFIX']}" in variables

    def _named(self, name):
        lines = {pid: harness.command_line(pid) for pid in self.processes()}
        return [pid for pid, line in lines.items()
                if line and line[0].endswith(name) and "--probe" not in line and "--check" not in " ".join(line)]

    def workers(self):
        return self._named("sluice-worker.exe")

    def gateways(self):
        return self._named("sluice-gateway.exe")

    def stop(self):
        left = []
        if self.process is not None:
            self.processes()
            self.process.kill()
            self.process.wait()
            harness.wait_until(lambda: not any(map(harness.alive, self.seen)), 3)
            for pid in filter(harness.alive, self.seen):
                left.append(pid)
                os.kill(pid, signal.SIGKILL)
        return left
