# SPDX-License-Identifier: Apache-2.0
"""Runs Windows programs under Wine, in a prefix of their own that is gone afterwards.

    with Wine() as wine:
        code, output = wine.run([exe, "--flag"], seconds=60, SLUICE_ENDPOINT="127.0.0.1:1")

Wine's rules, each learnt from a hang: its output never goes into a pipe of ours while nothing else keeps the prefix
alive (its services inherit it); one idle process lives as long as the prefix, or services stop and each command
starts them again; `wineserver -k` ends exactly this prefix's processes. Python 3 standard library only.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

LIMIT = str(pathlib.Path(__file__).resolve().parents[1] / "limit.py")
VENDORS = r"HKLM\SOFTWARE\Khronos\OpenCL\Vendors"


def missing(display=False):
    """What cannot be done here, in words; None if Wine is there, and Xvfb for a display."""
    if shutil.which("wine") is None or server() is None:
        return "wine is not installed (deploy/install-deps.sh --windows --test)"
    if display and shutil.which("Xvfb") is None:
        return "Xvfb is not installed (deploy/install-deps.sh --windows --test)"
    return None


def server():
    """Debian keeps wineserver beside Wine's other programs."""
    found = shutil.which("wineserver")
    return found or next((str(path) for path in (pathlib.Path("/usr/lib/wine/wineserver64"),
                                                 pathlib.Path("/usr/lib/wine/wineserver")) if path.is_file()), None)


# On a busy machine a process under Wine answers later than the driver's default of two seconds: each wait asks wineserver.
CONNECT_LIMIT = {"SLUICE_CONNECT_TIMEOUT_MS": "20000"}


def copy_or_link(source, target):
    """Wine's own libraries, which nothing writes to, are linked; the registry and all else is this prefix's alone."""
    if source.endswith((".dll", ".exe", ".sys", ".drv", ".ocx", ".nls")) and os.path.getsize(source) > 4096:
        try:
            os.link(source, target)
            return target
        except OSError:  # On another disk.
            pass
    return shutil.copy2(source, target)


class Wine:
    """display: start an Xvfb, which Direct3D needs."""

    def __init__(self, display=False):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sluice-wine-"))
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("WINE", "SLUICE_ENDPOINT", "OCL_ICD")) and name != "DISPLAY"}
        # "n" for opencl: the tests' loader beside the program, not Wine's OpenCL.dll.
        self.environment.update(WINEPREFIX=str(self.directory / "prefix"), WINEDEBUG="-all",
                                WINEDLLOVERRIDES="mscoree,mshtml=;opencl=n", LIBGL_ALWAYS_SOFTWARE="1",
                                **CONNECT_LIMIT)
        self.display = self._start_display() if display else None
        self.idle = None

    def _start_display(self):
        number, told = os.pipe()
        # Without -noreset it starts anew when its last client goes, and refuses connections meanwhile.
        process = subprocess.Popen(["Xvfb", "-displayfd", str(told), "-screen", "0", "640x480x24", "-nolisten", "tcp",
                                    "-noreset"], pass_fds=[told], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        os.close(told)
        with os.fdopen(number) as line:
            self.environment["DISPLAY"] = ":" + line.readline().strip()
        return process

    def __enter__(self):
        try:
            self._make_prefix()
            self.idle = subprocess.Popen(["wine", "cmd"], env=self.environment, stdin=subprocess.PIPE,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.must("reg", "add", r"HKCU\Software\Wine\WineDbg", "/v", "ShowCrashDialog", "/t", "REG_DWORD", "/d", "0",
                      "/f")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make_prefix(self):
        """A copy of the one that SLUICE_WINE_TEMPLATE names, which is made first if it is not there: Wine takes ten times as
        long to make one. Without that variable, a new one."""
        template = os.environ.get("SLUICE_WINE_TEMPLATE")
        prefix = self.environment["WINEPREFIX"]
        if template and os.path.isdir(template):
            shutil.copytree(template, prefix, symlinks=True, copy_function=copy_or_link)
            return
        self.run(["wineboot", "--init"], seconds=120)
        # What it has started goes on after it, and could still change the registry.
        subprocess.run([server(), "-w"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60, check=False)
        if template:
            part = f"{template}.{os.getpid()}"
            shutil.copytree(prefix, part, symlinks=True)
            try:
                os.rename(part, template)
            except OSError:  # Another test was first.
                shutil.rmtree(part)

    def __exit__(self, *unused):
        if self.idle is not None:
            self.idle.stdin.close()
        subprocess.run([server(), "-k"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=30, check=False)
        for process in (self.idle, self.display):
            if process is not None:
                process.terminate()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, command, seconds, **variables):
        """The exit code (124: the time was over) and what the program wrote."""
        path = self.directory / "output"
        with open(path, "wb") as output:
            code = subprocess.run([LIMIT, str(seconds), "wine", *map(str, command)],
                                  env={**self.environment, **variables}, stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=subprocess.STDOUT, check=False).returncode
        return code, path.read_text(errors="replace").replace("\r\n", "\n")

    def run_tests(self, command, seconds, **variables):
        """As run, of a GoogleTest program: one that ends with 0 before GoogleTest has counted its tests has failed. One that
        fails without a test that did is told with its code: 5 is a crash, after the tests perhaps."""
        code, output = self.run(command, seconds, **variables)
        if code == 0 and "\n[  PASSED  ] " not in output:
            return 1, f"{output}FAIL {command[0]}: it ended with 0 before its tests had\n"
        if code != 0 and "[  FAILED  ] " not in output:
            return code, f"{output}FAIL {command[0]}: it ended with {code}\n"
        return code, output

    def must(self, *command):
        code, output = self.run(command, seconds=60)
        if code != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {code}: {output}")

    def register_driver(self, path):
        """As an installer does: where OpenCL loaders look."""
        self.must("reg", "add", VENDORS, "/v", windows_path(path), "/t", "REG_DWORD", "/d", "0", "/f")

    def launcher(self, program):
        """A script that runs this program with the arguments it is given, for tools that start one executable. Its
        output may go into a pipe: the idle process keeps the services."""
        path = self.directory / f"run-{pathlib.Path(program).stem}"
        names = ("WINEPREFIX", "WINEDEBUG", "WINEDLLOVERRIDES", "LIBGL_ALWAYS_SOFTWARE", "DISPLAY",
                 *CONNECT_LIMIT)
        settings = "".join(f'export {name}="{self.environment[name]}"\n' for name in names if name in self.environment)
        path.write_text(f'#!/bin/sh\n{settings}exec {LIMIT} 900 wine "{program}" "$@" </dev/null\n')
        path.chmod(0o755)
        return path


def windows_path(path):
    """Wine shows the file system of its host as Z:."""
    return "Z:" + str(path).replace("/", "\\")
