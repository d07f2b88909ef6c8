#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Starts and stops a real sluiced for the system tests, and looks at its processes from outside.

Every process started here is a child, and is ended by its id. The daemon gets a directory of its own for
its socket, configuration and log, so that several suites may run at once on one machine. As a program:

    harness.py with native|ring|network -- CMD...

runs CMD with an environment in which Sluice is the only OpenCL driver (native: the system's own driver),
and exits with CMD's code. SLUICE_TEST_LIMITS holds lines of the daemon's [limits]. Python 3 standard library only.
"""
import atexit
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SYSTEM_DIR = pathlib.Path(__file__).resolve().parent
ROOT = SYSTEM_DIR.parent.parent
KINDS = ("native", "ring", "network")


def build_dir():
    """The build tree whose binaries are tested: SLUICE_BUILD_DIR, else build/ of this checkout."""
    return pathlib.Path(os.environ.get("SLUICE_BUILD_DIR") or ROOT / "build").resolve()


NOBODY = 65534


def built(name):
    """The path of a built file, wherever its folder put it; ends the run with a reason if it is missing."""
    for folder in ("bin", "lib", "tests/system", "tests/bench"):
        path = build_dir() / folder / name
        if path.is_file():
            return path
    found = sorted(p for p in build_dir().rglob(name) if p.is_file())
    if not found:
        sys.exit(f"FAIL harness: {name} is not under {build_dir()}: build first, or set SLUICE_BUILD_DIR")
    return found[0]


def let_others_run():
    """From here on another user than root may run what is built: where that lies in a home of root's alone, a copy of
    the product is what built() finds."""
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    if os.geteuid() != 0 or subprocess.call(["test", "-x", str(built("sluicectl"))], **other) == 0:
        return
    copy = pathlib.Path(tempfile.mkdtemp(prefix="sluice-built-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    os.chmod(copy, 0o755)
    for pattern in ("bin/sluice*", "lib/*", "tests/system/**/*"):
        for file in build_dir().glob(pattern):
            if file.is_file() and "conformance" not in file.name and "CMakeFiles" not in file.parts:
                (copy / file.relative_to(build_dir())).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy / file.relative_to(build_dir()), follow_symlinks=False)
    os.environ["SLUICE_BUILD_DIR"] = str(copy)


def takes_clients(path):
    """True if a client can connect to a daemon's socket. It is there a moment before it can."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            probe.connect(str(path))
        return True
    except OSError:
        return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(host, port):
    """True if somebody listens there."""
    try:
        socket.create_connection((host, port), 1).close()
        return True
    except OSError:
        return False


def wait_until(condition, seconds, pause=0.005):
    """True as soon as condition() is, False when `seconds` have passed without it."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


# --- what /proc says -------------------------------------------------------------------------------------


def parent_of(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rsplit(")", 1)[1].split()[1])


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def program(pid):
    """What it runs; "" of one that has ended, which is asked of many that may."""
    return (command_line(pid) or [""])[0]


def alive(pid):
    """True for a process that runs; a zombie counts as gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def descendants(pid):
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            children.setdefault(parent_of(int(entry)), []).append(int(entry))
    found, open_list = [], [pid]
    while open_list:
        for child in children.get(open_list.pop(), []):
            found.append(child)
            open_list.append(child)
    return found


def resident_bytes(pid):
    """Resident memory without shared memory files: what the process itself holds."""
    total = 0
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("RssAnon:", "RssFile:")):
            total += int(line.split()[1]) * 1024
    return total


def descriptors(pid):
    """What each open descriptor of a process points at."""
    targets = []
    try:
        for entry in os.listdir(f"/proc/{pid}/fd"):
            try:
                targets.append(os.readlink(f"/proc/{pid}/fd/{entry}"))
            except OSError:
                continue  # Closed between the listing and the look.
    except OSError:
        return []
    return targets


# --- applications and verdicts ---------------------------------------------------------------------------


class Application:
    """A test program under a daemon, whose output is read line by line with a time limit."""

    def __init__(self, daemon, name, *arguments):
        self.process = subprocess.Popen([str(built(name)), *arguments], env=daemon.environment(),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.output = ""

    def wait_for(self, text, seconds):
        """True once the program has printed `text`; False when it ended or the time passed."""
        def seen():
            ended = self.process.poll() is not None
            self.output += (self.process.stdout.read() or b"").decode()
            return text in self.output or ended
        return wait_until(seen, seconds) and text in self.output

    def go_on(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self, seconds):
        """The exit code, or None (and the program killed) when it did not end in time."""
        if self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass  # It ended on its own.
        self.process.stdin = None
        os.set_blocking(self.process.stdout.fileno(), True)
        try:
            output, self.errors = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, self.errors = self.process.communicate()
            self.output += output.decode()
            return None
        self.output += output.decode()
        return self.process.returncode

    def value(self, key):
        """The number that the program printed behind `key`, or None."""
        for line in self.output.splitlines():
            if line.startswith(key + " "):
                return int(line.split()[1])
        return None


def grown(before, after):
    """What there is more of in `after`; empty when nothing leaked."""
    return {name: (before[name], after[name]) for name in before if after[name] > before[name]}


class Report:
    """Counts verdicts; one PASS or FAIL line each."""

    def __init__(self, suite):
        self.suite = suite
        self.failed = 0

    def check(self, good, name, reason=""):
        self.failed += not good
        text = str(reason).strip()
        if good:
            text = " ".join(text.split())[:100]  # The whole of it matters only when something is wrong.
        print(f"{'PASS' if good else 'FAIL'} {self.suite}: {name}{': ' + text if text else ''}", flush=True)
        return good

    def exit(self):
        sys.exit(1 if self.failed else 0)


def kind_argument():
    """The kind from the command line of a failure test."""
    if len(sys.argv) != 2 or sys.argv[1] not in ("ring", "network"):
        sys.exit(f"usage: {sys.argv[0]} ring|network")
    return sys.argv[1]


# --- the daemon ------------------------------------------------------------------------------------------


class Daemon:
    """One sluiced with a directory, a socket and, for `network`, a loopback port of its own.

    limits: lines of the configuration's [limits]. prefix and address: a command that starts it elsewhere
    (a network namespace), and the address that it listens on there, in plaintext.
    """

    def __init__(self, kind, limits="", prefix=(), address="127.0.0.1"):
        assert kind in ("ring", "network"), kind
        # A time limit's SIGTERM must still stop the daemon.
        signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
        self.kind = kind
        self.prefix = list(prefix)
        self.address = address
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
        os.chmod(self.directory, 0o755)
        self.socket = self.directory / "sluice/clients/broker.sock"
        self.admin_socket = self.directory / "sluice-admin/admin.sock"
        self.port = free_port()
        self.log = self.directory / "sluiced.log"
        self.config = self.directory / "sluiced.toml"
        self.config.write_text(self._config_text(limits))
        icd_dir = self.directory / "vendors"
        icd_dir.mkdir()
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir()
        (icd_dir / "sluice.icd").write_text(f"{built('libsluice_icd.so')}\n")
        self.process = None
        self.seen = set()

    def _config_text(self, limits):
        text = f'[broker]\nsocket = "{self.socket}"\n'
        if os.geteuid() == 0:
            # Workers stay with the caller's user, so that they can write the suite's kernel cache.
            text += '[worker]\nuser = "root"\n'
        if limits:
            text += f"[limits]\n{limits}\n"
        if self.kind == "network":
            text += f'[[network]]\nlisten = "{self.address}:{self.port}"\n'
            if self.address != "127.0.0.1":
                text += "allow_plaintext = true\n"
        return text

    def endpoint(self):
        return f"unix:{self.socket}" if self.kind == "ring" else f"{self.address}:{self.port}"

    def environment(self):
        env = dict(os.environ)
        env.update(SLUICE_ENDPOINT=self.endpoint(), OCL_ICD_VENDORS=f"{self.directory}/vendors/",
                   SLUICE_TEST_KIND=self.kind)
        env.pop("OCL_ICD_FILENAMES", None)
        return env

    def start(self):
        return self.start_with({})

    def start_with(self, additions):
        """Starts with these additions to the daemon's environment; returns once it answers."""
        env = dict(os.environ)
        # The daemon itself uses the system's drivers, whatever the caller's environment hides.
        for name in ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "SLUICE_ENDPOINT"):
            env.pop(name, None)
        # What workers leave behind can be seen, and goes away with the directory.
        env.update(additions, TMPDIR=str(self.temporary))
        with open(self.log, "ab") as log:
            command = [*self.prefix, str(built("sluiced")), "--config", str(self.config)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=env)
        wait_until(lambda: self._answers() or self.process.poll() is not None, 30)
        if self.process.poll() is not None or not self._answers():
            text = self.log.read_text()
            self.clean()
            sys.exit(f"FAIL harness: sluiced did not come up; its log:\n{text}")
        return self

    def _answers(self):
        """True when applications can connect."""
        try:
            if self.kind == "network" and not self.prefix and not accepts("127.0.0.1", self.port):
                return False
            return takes_clients(self.socket)
        except OSError:
            return False

    def processes(self):
        """Every process of this daemon but the broker; also those whose broker has died."""
        self.seen.update(descendants(self.process.pid))
        return sorted(pid for pid in self.seen if alive(pid))

    def workers(self):
        """The session workers; a probe, which lists devices for the broker, is none."""
        lines = {pid: command_line(pid) for pid in self.processes()}
        return [pid for pid, line in lines.items()
                if line and line[0].endswith("sluice-worker") and "--probe" not in line]

    def zombies(self):
        """Ended children that the broker has not collected."""
        return [pid for pid in descendants(self.process.pid)
                if not alive(pid) and parent_of(pid) == self.process.pid]

    def resources(self):
        """What there may not be more of after a session than before it."""
        own = [self.process.pid] + self.processes()
        # The broker keeps some containers' namespaces open (broker/tenants/tenant_finder.h bounds how many).
        targets = [target for pid in own for target in descriptors(pid)
                   if not target.startswith(("user:[", "pid:["))]
        return {"processes": len(own), "workers": len(self.workers()), "zombies": len(self.zombies()),
                "descriptors": len(targets), "memory files": sum("memfd:" in t for t in targets),
                "temporary files": len(os.listdir(self.temporary))}

    def settled_resources(self):
        """The resources once they have stopped changing: the end of a session takes its time."""
        seen = [self.resources()]

        def steady():
            seen.append(self.resources())
            return len(seen) > 20 and all(one == seen[-1] for one in seen[-20:])

        wait_until(steady, 10, 0.02)
        return seen[-1]

    def kill_broker(self):
        self.processes()
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM (drain), SIGTERM (at once), SIGKILL. Returns the processes that had to be killed."""
        left = []
        if self.process is not None:
            self.processes()
            for _ in range(2):
                if self.process.poll() is None:
                    self.process.terminate()
                    wait_until(lambda: self.process.poll() is not None, 5)
            if self.process.poll() is None:
                left.append(self.process.pid)
                self.process.kill()
                self.process.wait()
            wait_until(lambda: not any(alive(pid) for pid in self.seen), 3)
            for pid in [pid for pid in self.seen if alive(pid)]:
                left.append(pid)
                os.kill(pid, signal.SIGKILL)
        return left

    def clean(self):
        """Stops, keeps the log where SLUICE_TEST_LOG_DIR says, and removes the directory."""
        left = self.stop()
        keep = os.environ.get("SLUICE_TEST_LOG_DIR")
        if keep and self.log.exists():
            shutil.copy(self.log, pathlib.Path(keep) / f"sluiced-{self.kind}-{self.process.pid}.log")
        shutil.rmtree(self.directory, ignore_errors=True)
        return left

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *unused):
        self.clean()


def main(arguments):
    if len(arguments) < 4 or arguments[0] != "with" or arguments[1] not in KINDS or arguments[2] != "--":
        sys.exit("usage: harness.py with native|ring|network -- CMD...")
    kind, command = arguments[1], arguments[3:]
    if kind == "native":
        return subprocess.call(command, env=dict(os.environ, SLUICE_TEST_KIND="native"))
    with Daemon(kind, limits=os.environ.get("SLUICE_TEST_LIMITS", "")) as daemon:
        return subprocess.call(command, env=dict(daemon.environment(), SLUICE_TEST_SOCKET_DIR=str(
            daemon.socket.parent)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
