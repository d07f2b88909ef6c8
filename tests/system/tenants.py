#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Tenants of one daemon, with real workers and clients as unprivileged users, in user namespaces and by listeners: who
pays for what, whose caches and worker users are whose, and what a hostile tenant, or a careless operator, gets.

Usage: tenants.py
"""
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import harness

SECONDS = 60
ALICE, BOB = 65532, 65533  # Numbers of nobody's.
SUBORDINATE = 265000
report = harness.Report("tenants")
os.environ.pop("POCL_CACHE_DIR", None)  # The suite's is root's; each domain has its own.


class Daemon(harness.Daemon):
    """One that gives each isolation domain a worker user and a cache of its own, as an installed one does."""

    def __init__(self, limits="", more=""):
        self.more = more
        super().__init__("ring", limits)
        self.tenants = self.directory / "sluice-tenants"

    def _config_text(self, limits):
        self.cache = self.directory / "cache"
        self.cache.mkdir()
        text = f'[broker]\nsocket = "{self.socket}"\n[worker]\ncache_directory = "{self.cache}"\n'
        return text + f"[limits]\n{limits}\n{self.more}\n"

    def listener(self, tenant):
        return self.tenants / tenant / "broker.sock"

    def environment(self, path=None):
        return dict(super().environment(), SLUICE_ENDPOINT=f"unix:{path or self.socket}", HOME="/nonexistent")

    def ctl(self, *arguments, admin=None):
        run = subprocess.run([str(harness.built("sluicectl")), *arguments, "--json", "--admin-socket",
                              str(admin or self.admin_socket)], capture_output=True, text=True, timeout=SECONDS)
        return run.returncode, json.loads(run.stdout or "{}")

    def sessions(self):
        return self.ctl("sessions")[1].get("sessions", [])

    def add(self, tenant, *more):
        return self.ctl("listener", "add", tenant, *more)

    def log_has(self, text):
        return harness.wait_until(lambda: text in self.log.read_text(errors="replace"), SECONDS)


class Program(harness.Application):
    """`stuck`, which holds a session until it may go on, as another user or in other namespaces."""

    def __init__(self, daemon, uid, enter=(), path=None):
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *enter, str(harness.built("stuck"))],
            env=daemon.environment(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.output = self.errors = ""

    def ready(self):
        return self.wait_for("READY", SECONDS)

    def finishes(self):
        self.go_on()
        return self.end(SECONDS) == 0 and "DONE" in self.output


def ended(programs):
    for program in programs:
        program.end(SECONDS)


CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def has_namespaces():
    run = subprocess.run(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", *CONTAINER, "true"],
                         capture_output=True, text=True)
    return run.returncode == 0


class Subordinate(Program):
    """In a user namespace of the user's, as one of the ids that root has given that user (newuidmap does the same)."""

    def __init__(self, daemon, uid, inside):
        wait = f"read line; exec setpriv --reuid={inside} --regid={inside} --clear-groups {harness.built('stuck')}"
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "unshare", "--user", "sh", "-c", wait],
            env=daemon.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.output = self.errors = ""
        own = os.readlink("/proc/self/ns/user")
        proc = pathlib.Path(f"/proc/{self.process.pid}")
        harness.wait_until(lambda: os.readlink(proc / "ns/user") != own and harness.program(self.process.pid) == "sh",
                           SECONDS)
        (proc / "uid_map").write_text(f"0 {uid} 1\n1 {SUBORDINATE} 1000\n")
        (proc / "gid_map").write_text(f"0 {uid} 1\n1 {SUBORDINATE} 1000\n")
        self.go_on()


class Raw:
    """A connection that speaks the broker's messages itself (proto/broker_messages.h)."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))

    def _send(self, kind, body):
        self.socket.send(struct.pack("<IHH", 0x45434c53, kind, 8 + len(body)) + body)

    def _receive(self):
        packet, fds, *_ = socket.recv_fds(self.socket, 1024, 4)
        for fd in fds:
            os.close(fd)
        return packet

    def greet(self):
        """The Welcome's status and message; None if the connection was closed."""
        try:
            self._send(1, b"close-session".ljust(256, b"\0") + b"raw".ljust(64, b"\0"))
            packet = self._receive()
        except OSError:
            return None
        if len(packet) < 536:
            return None
        return struct.unpack_from("<i", packet, 8)[0], packet[24:280].split(b"\0")[0].decode()

    def open(self):
        self._send(3, struct.pack("<IIQ", 0, 0, 1))
        packet = self._receive()
        return struct.unpack_from("<i", packet, 8)[0], packet[64:320].split(b"\0")[0].decode()

    def close(self):
        self.socket.close()


@contextlib.contextmanager
def as_user(uid):
    """SO_PEERCRED says the effective user of who connects."""
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def worker_user(session):
    return pathlib.Path(f"/proc/{session['worker_pid']}").stat().st_uid


def containers():
    """Two containers of one user, and that user on the host: one account, three domains."""
    with Daemon("max_sessions_per_user = 4") as daemon:
        programs = [Program(daemon, ALICE), Program(daemon, ALICE, CONTAINER), Program(daemon, ALICE, CONTAINER)]
        ready = [program.ready() for program in programs]
        if not report.check(all(ready), "programs of one user run on the host and in two containers",
                            [program.output for program in programs]):
            return ended(programs)
        sessions = daemon.sessions()
        report.check({entry["tenant"] for entry in sessions} == {f"uid:{ALICE}"}, "they are one account", sessions)
        domains = {entry["domain"] for entry in sessions}
        report.check(len(domains) == 3 and f"uid:{ALICE}" in domains, "they are three isolation domains", domains)
        report.check(len({worker_user(entry) for entry in sessions}) == 3, "each domain's workers have their own user")
        caches = {entry.name: entry.stat() for entry in daemon.cache.iterdir() if entry.name != "probe"}
        owners = {info.st_uid for info in caches.values()}
        report.check(len(caches) == 3 and owners == {worker_user(entry) for entry in sessions} and
                     all(info.st_mode & 0o777 == 0o700 for info in caches.values()),
                     "each has a cache that only its own worker opens", list(caches))
        # What one has in its cache, another's worker cannot put there, nor read.
        victim = next(name for name in caches if name.startswith("container-"))
        other = next(worker_user(entry) for entry in sessions if worker_user(entry) != caches[victim].st_uid)
        poison = subprocess.run(["setpriv", f"--reuid={other}", f"--regid={other}", "--clear-groups", "touch",
                                 str(daemon.cache / victim / "poison")], capture_output=True)
        report.check(poison.returncode != 0, "a worker of one container writes in no other's cache")
        fourth = Program(daemon, ALICE, CONTAINER)
        report.check(fourth.ready(), "a fourth session is within the account's limit", fourth.output)
        fifth = Program(daemon, ALICE, CONTAINER)
        fifth.end(SECONDS)
        report.check("READY" not in fifth.output and daemon.log_has(f"uid:{ALICE} has the limit of 4 sessions"),
                     "a new container brings no session beyond it", fifth.errors)
        report.check(all(program.finishes() for program in [*programs, fourth]), "all end with right results")


def one_container():
    """Two programs in one container are one domain, with one cache."""
    both = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "sh", "-c",
            f"echo | {harness.built('stuck')} && exec {harness.built('stuck')}")
    with Daemon() as daemon:
        program = subprocess.Popen(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", *both],
                                   env=daemon.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        harness.wait_until(lambda: daemon.log.read_text().count("session opened") == 2, SECONDS)
        log = [line for line in daemon.log.read_text().splitlines() if "session opened" in line]
        domains = {word for line in log for word in line.split() if word.startswith("domain=")}
        program.communicate(b"\n", timeout=SECONDS)
        report.check(len(log) == 2 and len(domains) == 1 and "container:" in domains.pop(),
                     "a container's next program has its cache", log)


def subordinate_users():
    """The ids that a user was given, in a namespace of that user's, pay from that user's account."""
    with Daemon("max_sessions_per_user = 3") as daemon:
        programs = [Program(daemon, BOB), Subordinate(daemon, BOB, 5), Subordinate(daemon, BOB, 6)]
        report.check(all(program.ready() for program in programs), "programs run as subordinate users",
                     [(program.output, program.process.poll()) for program in programs])
        sessions = daemon.sessions()
        report.check({entry["tenant"] for entry in sessions} == {f"uid:{BOB}"}, "they are their owner's account", sessions)
        report.check({entry["identity"] for entry in sessions} ==
                     {f"uid:{BOB}", f"uid:{SUBORDINATE + 4}", f"uid:{SUBORDINATE + 5}"},
                     "and are shown by their own numbers", sessions)
        report.check(len({worker_user(entry) for entry in sessions}) == 3, "no two share a worker user")
        for inside in (7, 8):
            more = Subordinate(daemon, BOB, inside)
            more.end(SECONDS)
            report.check("READY" not in more.output, f"subordinate user {inside} is beyond the owner's limit", more.errors)
        other = Program(daemon, ALICE)
        report.check(other.ready() and other.finishes(), "another user has the sessions of another account")
        ended(programs)


class InNamespace(Daemon):
    """A daemon in a user namespace of Alice's, where only she has a number."""

    def __init__(self):
        super().__init__()
        for path in (self.directory, *self.directory.rglob("*")):
            os.chown(path, ALICE, ALICE)
        self.prefix = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", "unshare", "--user",
                       "--map-root-user"]

    def _config_text(self, limits):
        return f'[broker]\nsocket = "{self.socket}"\nsocket_mode = "0666"\n'

    def start(self):
        return self.start_with({"HOME": str(self.directory)})


def unmapped_users():
    with InNamespace() as daemon:
        for uid in (BOB, 12345):
            with as_user(uid):
                stranger = Raw(daemon.socket)
            answer = stranger.greet()
            report.check(answer is not None and answer[0] == 13 and "no number" in answer[1],
                         f"user {uid}, who has no number where the daemon is, is refused", answer)
            stranger.close()
        program = Program(daemon, ALICE)
        report.check(program.ready() and program.finishes(), "who has one is served", program.errors)


LISTENERS = f"""
[[listener]]
tenant = "lab"
users = ["{ALICE}", "{BOB}"]
share = 300
interactive_percent = 20
max_sessions = 2
max_connections = 3
memory_bytes_per_session = "64MiB"
max_resources = 3
max_resource_bytes = "1MiB"

[[listener]]
tenant = "office"
mode = "0666"
max_connections = 3
"""


def listeners():
    with Daemon("max_connections_per_user = 5", LISTENERS) as daemon:
        lab, office = daemon.listener("lab"), daemon.listener("office")
        listed = daemon.ctl("listener", "list")[1]["listeners"]
        report.check([(entry["tenant"], entry["socket"], entry["mode"], entry["share"], entry["from_file"])
                      for entry in listed] ==
                     [("lab", str(lab), "0666", 300, True), ("office", str(office), "0666", 100, True)],
                     "the configuration's listeners are there", listed)
        report.check([entry["interactive_percent"] for entry in listed] == [20, 0], "and say what goes first", listed)
        report.check(os.listdir(lab.parent) == ["broker.sock"], "each is alone in its folder", os.listdir(lab.parent))
        programs = [Program(daemon, ALICE, path=lab), Program(daemon, BOB, path=lab)]
        report.check(all(program.ready() for program in programs), "its users come by it",
                     [program.output for program in programs])
        sessions = daemon.sessions()
        report.check({(entry["tenant"], entry["share"]) for entry in sessions} == {("tenant:lab", 300)},
                     "its tenant is their account, with its share", sessions)
        report.check({entry["domain"] for entry in sessions} == {f"tenant:lab_{ALICE}", f"tenant:lab_{BOB}"},
                     "its users have a domain each", sessions)
        limits = [harness.command_line(entry["worker_pid"]) for entry in sessions]
        report.check(all("--limit-memory=67108864" in line for line in limits), "its sessions have its memory", limits)
        third = Program(daemon, ALICE, path=lab)
        third.end(SECONDS)
        report.check("READY" not in third.output and daemon.log_has("tenant:lab has the limit of 2 sessions"),
                     "its sessions are counted together", third.errors)
        own = Program(daemon, ALICE)
        report.check(own.ready(), "a user's own account is another", own.output)
        ended([*programs, own])
        harness.wait_until(lambda: not daemon.sessions(), SECONDS)
        resources_of_listeners(daemon, lab, office)
        with as_user(12345):
            stranger = Raw(lab)
        answer = stranger.greet()
        report.check(answer is not None and answer[0] == 13 and "lab" in answer[1], "who is not on its list is refused", answer)
        stranger.close()
        many_connections(daemon, [lab, office])
        reload_listeners(daemon)


# What sluice_create says, of resources of so many bytes, one after the other.
MAKE_RESOURCES = """
import ctypes, sys
class Shape(ctypes.Structure):
    _fields_ = [("size_bytes", ctypes.c_uint64), ("format", ctypes.c_uint32 * 4), ("extent", ctypes.c_uint64 * 4),
                ("planes", ctypes.c_uint64 * 12)]
class Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("shape", Shape),
                ("backing", ctypes.c_uint32), ("linger_ms", ctypes.c_uint32), ("label", ctypes.c_char_p)]
library = ctypes.CDLL(sys.argv[1])
library.sluice_error_text.restype = ctypes.c_char_p
connection = ctypes.c_void_p()
print(library.sluice_connect(None, ctypes.byref(connection)))
for size in sys.argv[2:]:
    info = Info(struct_size=ctypes.sizeof(Info))
    info.shape.size_bytes = int(size)
    status = library.sluice_create(connection, ctypes.byref(info), ctypes.create_string_buffer(24), None)
    print(status, library.sluice_error_text().decode() if status else "")
"""
LIMIT = 4  # SLUICE_LIMIT


def made_resources(daemon, path, *sizes):
    """The statuses of connecting and of each, and what the last one that failed said."""
    run = subprocess.run(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", "/usr/bin/python3", "-c",
                          MAKE_RESOURCES, str(harness.built("libsluice.so.0")), *map(str, sizes)],
                         env=daemon.environment(path), capture_output=True, text=True, timeout=SECONDS)
    lines = [line.split(" ", 1) for line in run.stdout.splitlines()]
    return [int(line[0]) for line in lines], [line[1] for line in lines if len(line) == 2 and line[1]] or [run.stderr]


def resources_of_listeners(daemon, lab, office):
    """A listener's tenant has the resources that the listener says, another one those that everybody has."""
    statuses, said = made_resources(daemon, lab, 4096, 4096, 4096, 4096)
    report.check(statuses == [0, 0, 0, 0, LIMIT] and "max_resources of its listener" in said[-1],
                 "a tenant has as many resources as its listener says", (statuses, said))
    statuses, said = made_resources(daemon, lab, 1 << 20, 4096)
    report.check(statuses == [0, 0, LIMIT] and "max_resource_bytes of its listener" in said[-1],
                 "and as much memory of them", (statuses, said))
    statuses, said = made_resources(daemon, office, 2 << 20, 4096, 4096, 4096)
    report.check(statuses == [0] * 5, "another tenant has what everybody has", (statuses, said))


def many_connections(daemon, paths):
    """By as many doors as there are: each tenant has its limit, and nobody takes the others'."""
    with as_user(ALICE):
        connections = [Raw(path) for path in [*paths, daemon.socket] for _ in range(8)]
    answers = [connection.greet() for connection in connections]
    welcome = [sum(answer is not None and answer[0] == 0 for answer in answers[start:start + 8]) for start in (0, 8, 16)]
    report.check(welcome == [3, 3, 5], "many connections by all doors: each account has its limit", welcome)
    with as_user(BOB):
        other = Raw(daemon.socket)
    answer = other.greet()
    report.check(answer is not None and answer[0] == 0, "and another user comes in beside them", answer)
    for connection in [*connections, other]:
        connection.close()


def reload_listeners(daemon):
    text = daemon.config.read_text()
    daemon.config.write_text(text.replace("share = 300", "share = 30").replace('tenant = "office"', 'tenant = "new"'))
    daemon.process.send_signal(signal.SIGHUP)
    seen = {}

    def changed():
        seen.update(daemon.ctl("listener", "list")[1])
        return [(entry["tenant"], entry["share"]) for entry in seen["listeners"]] == [("lab", 30), ("new", 100)]
    report.check(harness.wait_until(changed, SECONDS, 0.05), "a reload changes, adds and removes them", seen)
    report.check(not daemon.listener("office").parent.exists() and daemon.listener("new").exists(),
                 "with their folders", os.listdir(daemon.tenants))


def run_time():
    """Made and removed while the daemon runs."""
    with Daemon() as daemon:
        path = daemon.listener("job-1")
        code, told = daemon.add("job-1", "--user", str(ALICE), "--share", "50", "--interactive-percent", "10")
        report.check(code == 0 and told == {"tenant": "job-1", "socket": str(path)}, "an operator makes a listener", told)
        code, told = daemon.ctl("listener", "add", "job-2", admin=daemon.admin_socket.parent / "monitor.sock")
        report.check(code == 1 and "only shows" in told.get("error", ""), "the monitor socket makes none", told)
        code, told = daemon.ctl("listener", "remove", "job-1", admin=daemon.admin_socket.parent / "monitor.sock")
        report.check(code == 1 and "only shows" in told.get("error", ""), "and removes none", told)
        code, told = daemon.ctl("listener", "list", admin=daemon.admin_socket.parent / "monitor.sock")
        report.check(code == 0 and [entry["interactive_percent"] for entry in told["listeners"]] == [10],
                     "but lists them", told)
        code, told = daemon.ctl("listener", "add", "job-3", "--interactive-percent", "51")
        report.check(code != 0, "nobody goes first for more than half of the time", told)
        running = Program(daemon, ALICE, path=path)
        report.check(running.ready(), "a program runs by it", running.output)
        with as_user(ALICE):
            held = Raw(path)
        held.greet()
        code, told = daemon.ctl("listener", "remove", "job-1")
        report.check(code == 0 and not path.exists() and not path.parent.exists(), "it is removed, folder and all", told)
        report.check(daemon.ctl("listener", "remove", "job-1")[0] == 4, "once")
        status, message = held.open()
        report.check(status == 108 and "removed" in message, "a connection that is left opens no session", message)
        daemon.add("job-1", "--user", str(ALICE))
        status, message = held.open()
        report.check(status == 108, "also when another of that name is made", message)
        held.close()
        report.check(running.finishes(), "what ran goes on to its end", running.output)
        ending = Program(daemon, ALICE, path=path)
        report.check(ending.ready(), "a program runs by the new one", ending.output)
        daemon.ctl("listener", "remove", "job-1", "--end-sessions")
        report.check(harness.wait_until(lambda: not daemon.sessions(), SECONDS), "with --end-sessions its session ends",
                     daemon.sessions())
        ending.go_on()
        report.check(ending.end(SECONDS) not in (0, None), "and its program is told", ending.output)
        restart(daemon)


def restart(daemon):
    """A daemon that was killed leaves a socket behind, which stands in nobody's way."""
    daemon.add("job-3", "--mode", "0666")
    path = daemon.listener("job-3")
    folder = path.parent.stat().st_ino
    daemon.kill_broker()
    report.check(path.exists(), "a killed daemon's socket is left")
    daemon.start()
    report.check(daemon.ctl("listener", "list")[1]["listeners"] == [], "the next daemon does not know it")
    code, told = daemon.add("job-3", "--mode", "0666")
    report.check(code == 0 and path.parent.stat().st_ino == folder, "it is made again in the folder that containers have",
                 told)
    program = Program(daemon, BOB, path=path)
    report.check(program.ready() and program.finishes(), "and works", program.output)


class Remote(Program):
    """`stuck` over the network, with a token."""

    def __init__(self, daemon, token):
        file = pathlib.Path(tempfile.mkstemp(dir=daemon.directory)[1])
        file.write_text(token + "\n")
        env = dict(daemon.environment(), SLUICE_ENDPOINT=f"127.0.0.1:{daemon.port}", SLUICE_TOKEN_FILE=str(file))
        self.process = subprocess.Popen([str(harness.built("stuck"))], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.output = self.errors = ""


def ctl_text(*arguments):
    return subprocess.run([str(harness.built("sluicectl")), *arguments], capture_output=True, text=True, timeout=SECONDS)


class Network(Daemon):
    """One that takes tokens of a file, and those that a cluster's key has signed."""

    def _config_text(self, limits):
        self.key = self.directory / "cluster.key"
        made = ctl_text("token", "keygen", str(self.key))
        assert made.returncode == 0, made.stderr
        tokens = self.directory / "tokens"
        tokens.write_text(f"@lab {'a' * 32}\n@lab {'b' * 32}\n{'c' * 32}\n")
        tokens.chmod(0o600)
        return super()._config_text(limits) + (f'[[network]]\nlisten = "127.0.0.1:{self.port}"\n'
                                               f'token_file = "{tokens}"\ntoken_key = "{self.key}.pub"\n')

    def sign(self, tenant, *more, key=None):
        return ctl_text("token", "sign", tenant, "--key", str(key or self.key), *more).stdout.strip()


def remote_tenants():
    """Over the network the tenant is a token's: a file's that names it, or one that a cluster has signed."""
    with Network() as daemon:
        harness.wait_until(lambda: harness.accepts("127.0.0.1", daemon.port), SECONDS)
        report.check(ctl_text("token", "keygen", str(daemon.key)).returncode == 1, "a private key is not written over")
        job = daemon.sign("job-17", "--share", "25", "--max-sessions", "1", "--memory", "64MiB")
        named = [Remote(daemon, "a" * 32), Remote(daemon, "b" * 32), Remote(daemon, "c" * 32)]
        signed = Remote(daemon, job)
        report.check(all(program.ready() for program in (*named, signed)), "programs come in with their tokens",
                     [program.output for program in (*named, signed)])
        sessions = {(entry["tenant"], entry["share"]) for entry in daemon.sessions()}
        tenants = {tenant for tenant, share in sessions if share == 100}
        report.check("net:tenant=lab" in tenants and len(tenants) == 2, "two tokens of one tenant are one account", sessions)
        report.check(("net:tenant=job-17", 25) in sessions, "a signed token's tenant has its share", sessions)
        lines = [harness.command_line(entry["worker_pid"]) for entry in daemon.sessions()
                 if entry["tenant"] == "net:tenant=job-17"]
        report.check(len(lines) == 1 and "--limit-memory=67108864" in lines[0], "and its memory", lines)
        report.check(daemon.log_has("session's token"), "the log names its token")
        more = Remote(daemon, daemon.sign("job-17", "--max-sessions", "1"))
        more.end(SECONDS)
        report.check("READY" not in more.output and daemon.log_has("net:tenant=job-17 has the limit of 1 sessions"),
                     "another token of the tenant brings no session beyond its limit", more.errors)
        other = daemon.directory / "other.key"
        ctl_text("token", "keygen", str(other))
        signed_short = json.loads(daemon.sign("job-18", "--seconds", "1", "--json"))
        short = signed_short["token"]
        harness.wait_until(lambda: time.time() >= signed_short["expires"], SECONDS)
        parts = job.split(".")
        for name, token, why in (("of another cluster", daemon.sign("job-17", key=other), "none of this daemon's keys"),
                                 ("that has expired", short, "expired"),
                                 ("with another's terms", ".".join((short.split(".")[0], short.split(".")[1], parts[2])),
                                  "none of this daemon's keys"),
                                 ("that is cut", job[:-8], "it is not whole"),
                                 ("of nobody's", "d" * 32, "does not know the token")):
            report.check(is_refused(daemon, token, why), f"refused: a token {name}", daemon.log.read_text()[-1000:])
        new_keys(daemon, job, other)
        report.check(all(program.finishes() for program in (*named, signed)), "all end with right results")


def is_refused(daemon, token, why):
    """Whether the token brings no session, and the gateway says so once more."""
    def told():
        return sum("client refused" in line and why in line for line in daemon.log.read_text(errors="replace").splitlines())
    before = told()
    program = Remote(daemon, token)
    program.end(SECONDS)
    return "READY" not in program.output and harness.wait_until(lambda: told() > before, SECONDS)


def new_keys(daemon, job, other):
    """A reload takes another key: what the old one has signed brings no new session, and what runs goes on."""
    open_key = pathlib.Path(f"{daemon.key}.pub")
    good = pathlib.Path(f"{other}.pub").read_text()

    def reload_with(text, said):
        before = daemon.log.read_text(errors="replace").count(said)
        open_key.write_text(text)
        daemon.process.send_signal(signal.SIGHUP)
        return harness.wait_until(lambda: daemon.log.read_text(errors="replace").count(said) > before, SECONDS)

    report.check(reload_with(good, "certificates and tokens reloaded"), "a reload reads the keys again")
    report.check(is_refused(daemon, job, "none of this daemon's keys"), "what the old key has signed brings no new session")
    report.check(reload_with(good + "-----BEGIN PRIVATE KEY-----\n", "line 4 is of a private key"),
                 "a faulty file is named with its line", daemon.log.read_text()[-1000:])
    program = Remote(daemon, daemon.sign("job-19", key=other))
    report.check(program.ready() and program.finishes(), "and changes nothing: what the new key has signed works",
                 program.output)


def careless_keys():
    """What an operator may do to a private key."""
    with tempfile.TemporaryDirectory() as folder:
        key = pathlib.Path(folder) / "cluster.key"
        pathlib.Path(f"{key}.pub").write_text("mine\n")
        made = ctl_text("token", "keygen", str(key))
        report.check(made.returncode == 1 and "cluster.key.pub" in made.stderr and not key.exists(),
                     "a public key is not written over, nor half a pair left", made.stderr)
        pathlib.Path(f"{key}.pub").unlink()
        old = os.umask(0)
        made = ctl_text("token", "keygen", str(key))
        os.umask(old)
        report.check(made.returncode == 0 and key.stat().st_mode & 0o777 == 0o600,
                     "a private key is its owner's alone, whatever the umask", made.stderr)
        key.chmod(0o644)
        signed = ctl_text("token", "sign", "lab", "--key", str(key))
        report.check(signed.returncode == 0 and signed.stdout.startswith("sluice1.") and "chmod o-r" in signed.stderr,
                     "one that everybody can read is warned of", signed.stderr)
        for what, arguments, why in (
                ("a public key", ("sign", "lab", "--key", f"{key}.pub"), "no Ed25519 private key"),
                ("no key", ("sign", "lab", "--key", f"{key}.none"), "cluster.key.none"),
                ("no name of a tenant", ("sign", "The Lab", "--key", str(key)), "a to z"),
                ("no size", ("sign", "lab", "--key", str(key), "--memory", "much"), "--memory")):
            refused = ctl_text("token", *arguments)
            report.check(refused.returncode != 0 and why in refused.stderr and not refused.stdout, f"token sign refuses {what}",
                         refused.stderr)


def hostile_places():
    """What an operator may be led to: each is refused in a sentence, and nothing outside is touched."""
    with Daemon(more='[[listener]]\ntenant = "lab"\nmode = "0666"') as daemon:
        base = daemon.directory
        secret = base / "secret"
        secret.write_text("secret")
        secret.chmod(0o600)
        trap = base / "trap"
        trap.mkdir()
        (trap / "broker.sock").symlink_to(secret)
        full = base / "full"
        full.mkdir()
        (full / "other").touch()
        theirs = base / "theirs"
        theirs.mkdir()
        os.chown(theirs, ALICE, ALICE)
        (base / "link").symlink_to("/etc")
        os.lchown(base / "link", ALICE, ALICE)
        loose = base / "loose"
        loose.mkdir()
        loose.chmod(0o777)
        sluice = base / "sluice"
        lab = daemon.listener("lab").parent
        places = [("a link in the place of the socket", trap / "broker.sock", "no socket"),
                  ("a folder with something else in it", full / "broker.sock", "has \"other\" in it"),
                  ("another user's folder", theirs / "broker.sock", "another user's"),
                  ("a folder in another user's", theirs / "lab/broker.sock", "another user's"),
                  ("another user's link to a folder", base / "link/lab/broker.sock", "another user's"),
                  ("a link as the folder", base / "link/broker.sock", "is no folder"),
                  ("a folder in one that all may write", loose / "lab/broker.sock", "others may write"),
                  ("a folder that all may write", loose / "broker.sock", "written by others"),
                  ("a folder below another listener's", lab / "x/broker.sock", "below the folder of tenant"),
                  ("another listener's folder", lab / "other.sock", "folder of tenant"),
                  ("another listener's socket", lab / "broker.sock", "also that of tenant"),
                  ("a folder that has another listener's below it", daemon.tenants / "broker.sock", "below its own"),
                  ("the clients' folder", sluice / "clients/x.sock", "default socket"),
                  ("the default socket", daemon.socket, "other sockets"),
                  ("the operators' folder", base / "sluice-admin/x.sock", "operators' sockets"),
                  ("the daemon's own folder", sluice / "lab/broker.sock", "the daemon's own files"),
                  ("a path that is too long", base / ("x" * 100) / "broker.sock", "at most 107"),
                  ("a path that is not absolute", "broker.sock", "absolute path"),
                  ("a folder that is missing", base / "no/such/broker.sock", "No such file")]
        for name, path, wanted in places:
            code, told = daemon.add("evil", "--path", str(path))
            report.check(code == 1 and wanted in told.get("error", ""), f"refused: {name}", told)
        for name in ("../x", "Lab", "a_b", "x" * 33, "a/b", "a b", "é"):
            code, told = daemon.add(name)
            report.check(code == 1 and "allowed" in told.get("error", ""), f"refused: a tenant called {name!r}", told)
        for flags in (("--group", "no-such-group"), ("--user", "no-such-user")):
            code, told = daemon.add("evil", *flags)
            report.check(code == 1 and flags[1] in told.get("error", ""), f"refused: {flags[1]}", told)
        report.check(secret.stat().st_mode & 0o777 == 0o600 and secret.read_text() == "secret" and
                     sorted(os.listdir(theirs)) == [] and os.listdir(lab) == ["broker.sock"] and
                     not pathlib.Path("/etc/lab").exists(), "nothing was made or changed outside")
        listed = daemon.ctl("listener", "list")[1]["listeners"]
        report.check([entry["tenant"] for entry in listed] == ["lab"], "and the others are as they were", listed)
        program = Program(daemon, ALICE, path=daemon.listener("lab"))
        report.check(program.ready() and program.finishes(), "and work", program.output)


def wrong_files():
    """What is wrong with [[listener]] in a file is said before anything starts."""
    with Daemon() as daemon:
        def problem(text):
            file = daemon.directory / "wrong.toml"
            file.write_text(f'[broker]\nsocket = "{daemon.socket}"\n{text}\n')
            run = subprocess.run([str(harness.built("sluiced")), "--check-config", str(file)], capture_output=True,
                                 text=True, timeout=SECONDS)
            return run.returncode, run.stdout + run.stderr
        lab = '[[listener]]\ntenant = "lab"\n'
        for name, text, wanted in [
                ("two of one tenant", lab + lab, "is there already"),
                ("no tenant", "[[listener]]\nshare = 3", 'needs key "tenant"'),
                ("a share of nothing", lab + "share = 0", "share"),
                ("a mode that is none", lab + 'mode = "rw"', "octal"),
                ("a user that is none", lab + 'users = ["no-such-user"]', "no-such-user"),
                ("a group that is none", lab + 'group = "no-such-group"', "no-such-group"),
                ("a path that is too long", lab + f'path = "/{"x" * 120}"', "107"),
                ("one folder for two", lab + '[[listener]]\ntenant = "b"\npath = "'
                 + str(daemon.tenants / "lab/b.sock") + '"', "lies in the folder of tenant"),
                ("a key that is unknown", lab + "shares = 3", "shares")]:
            code, told = problem(text)
            report.check(code != 0 and wanted in told, f"the file is refused: {name}", told)
        code, told = problem(lab + "share = 3")
        report.check(code == 0, "and taken when all is right", told)


if os.geteuid() != 0:
    print("SKIP tenants: only root's daemon gives each domain a user of its own")
    sys.exit(0)
harness.let_others_run()
if has_namespaces():
    containers()
    one_container()
    subordinate_users()
    unmapped_users()
else:
    print("SKIP tenants: containers: users make no user namespaces here")
listeners()
run_time()
remote_tenants()
careless_keys()
hostile_places()
wrong_files()
report.exit()
