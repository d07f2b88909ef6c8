#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What an account may have of all its sessions together, with real workers and programs of several users: over it a
program gets an OpenCL error and goes on, others have what is theirs, and what has gone can be had again.

Usage: quotas.py
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import harness

SECONDS = 60
MIB = 1 << 20
ALICE, BOB = 65532, 65533  # Numbers of nobody's.
NO_MEMORY = -4  # CL_MEM_OBJECT_ALLOCATION_FAILURE: clCreateBuffer, section 5.2.1.
TOO_LARGE = -61  # CL_INVALID_BUFFER_SIZE, there too: more than CL_DEVICE_MAX_MEM_ALLOC_SIZE.
report = harness.Report("quotas")
os.environ.pop("POCL_CACHE_DIR", None)  # The suite's is root's; each domain has its own.


class Daemon(harness.Daemon):
    """One that gives each isolation domain a worker user and a cache of its own, as an installed one does."""

    def __init__(self, limits="", more="", kind="ring", worker=""):
        self.more = more
        self.worker = worker
        super().__init__(kind, limits)

    def _config_text(self, limits):
        self.cache = self.directory / "cache"
        self.cache.mkdir()
        text = f'[broker]\nsocket = "{self.socket}"\n[worker]\ncache_directory = "{self.cache}"\n{self.worker}\n'
        text += f"[limits]\n{limits}\n{self.more}\n"
        if self.kind == "network":
            text += f'[[network]]\nlisten = "127.0.0.1:{self.port}"\n'
        return text

    def listener(self, tenant):
        return self.directory / "sluice-tenants" / tenant / "broker.sock"

    def environment(self, path=None):
        endpoint = f"unix:{path}" if path else self.endpoint()
        return dict(super().environment(), SLUICE_ENDPOINT=endpoint, HOME="/nonexistent")

    def ctl(self, *arguments):
        run = subprocess.run([str(harness.built("sluicectl")), *arguments, "--json", "--admin-socket",
                              str(self.admin_socket)], capture_output=True, text=True, timeout=SECONDS)
        return run.returncode, json.loads(run.stdout or "{}")

    def sessions(self):
        return self.ctl("sessions")[1].get("sessions", [])

    def granted(self, tenant):
        return sum(entry["granted_bytes"] for entry in self.sessions() if entry["tenant"] == tenant)


class Program(harness.Application):
    """`quota`, as another user: creates and releases memory as it is told."""

    def __init__(self, daemon, uid, path=None):
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", str(harness.built("quota"))],
            env=daemon.environment(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.output = self.errors = ""
        self.wait_for("READY", SECONDS)

    def tell(self, line):
        """What it printed, split into words; None if it has ended or hangs."""
        self.output = ""
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()
        if not self.wait_for("END\n", SECONDS):
            return None
        return self.output.split()[:-1]

    def make(self, count, size):
        told = self.tell(f"make {count} {size}")
        return (int(told[1]), int(told[2])) if told else None

    def works(self):
        return self.tell("work") == ["work", "1"]


def ended(programs):
    for program in programs:
        program.end(SECONDS)


def device_memory():
    limit = 64 * MIB
    with Daemon(f"device_memory_per_account = {limit}") as daemon:
        one, two, other = Program(daemon, ALICE), Program(daemon, ALICE), Program(daemon, BOB)
        for program in (one, other):
            told = program.tell("device")
            report.check(told == ["global", str(limit), "largest", str(limit)], "devices have as much as the account", told)
        report.check(one.make(4, 8 * MIB) == (4, 0), "a first session has half of it", one.output)
        made = two.make(100, 8 * MIB)
        report.check(made in ((3, NO_MEMORY), (4, NO_MEMORY)), "a second one has the rest, and then an error", made)
        granted = daemon.granted(f"uid:{ALICE}")
        report.check(56 * MIB <= granted <= limit, "the daemon has granted no more than the limit", granted)
        report.check(two.works() and one.works(), "both go on")
        report.check(other.make(7, 8 * MIB) == (7, 0), "another account has its own", other.output)
        one.tell("free 4")
        made = two.make(100, 8 * MIB)
        report.check(made in ((3, NO_MEMORY), (4, NO_MEMORY)), "what one gives back the other can have", made)
        report.check(two.tell(f"svm {16 * MIB}") == ["svm", "0"], "shared virtual memory is counted too", two.output)
        two.tell("free 100")
        report.check(two.tell(f"svm {16 * MIB}") == ["svm", "1"], "and had within the limit", two.output)
        small = two.make(20000, 1024)
        report.check(small == (20000, 0) and two.works(), "many small buffers are within it", small)
        many = two.tell(f"each 200 {16 * MIB}")
        report.check(many == ["made", "200", "0"], "buffers that come and go are counted once", many)
        refused = [one.make(1, 60 * MIB) for _ in range(80)]
        report.check(set(refused) == {(0, NO_MEMORY)} and one.make(1, MIB) == (1, 0) and one.works(),
                     "a program that asks again and again goes on", set(refused))
        refused = one.make(1, 65 * MIB)
        report.check(refused == (0, TOO_LARGE), "more than a device has is no size of a buffer", refused)
        one.tell("free 1")
        entries = [entry for entry in daemon.sessions() if entry["tenant"] == f"uid:{ALICE}"]
        report.check(all(entry["account_memory_limit"] == limit for entry in entries), "sluicectl shows the limit", entries)
        worker = max(entries, key=lambda entry: entry["granted_bytes"])["worker_pid"]
        os.kill(worker, signal.SIGKILL)
        harness.wait_until(lambda: len(daemon.sessions()) == 2, SECONDS)
        made = one.make(100, 8 * MIB) if one.process.poll() is None else None
        report.check(made in ((7, NO_MEMORY), (8, NO_MEMORY)), "a dead worker's part is free again", made)
        ended((one, two, other))
        harness.wait_until(lambda: not daemon.sessions(), SECONDS)
        log = daemon.log.read_text(errors="replace")
        report.check("control protocol" not in log and "protocol violation" not in log, "nobody was taken for hostile",
                     log[-1500:])


def shown():
    """A user sees the quotas of the own account alone, by doctor; operators see everybody's."""
    with Daemon(f"device_memory_per_account = {32 * MIB}\nmax_sessions_per_user = 3") as daemon:
        alice, bob = Program(daemon, ALICE), Program(daemon, BOB)
        alice.make(2, 8 * MIB)
        bob.make(1, 8 * MIB)
        doctor = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", str(harness.built("sluicectl")),
                  "doctor"]
        told = json.loads(subprocess.run([*doctor, "--json"], env=daemon.environment(), capture_output=True, text=True,
                                         timeout=SECONDS).stdout)
        own = {entry["account"]: entry["quotas"] for entry in told.get("accounts", [])}
        report.check(list(own) == [f"uid:{ALICE}"], "doctor shows a user the own account alone", own)
        own = own.get(f"uid:{ALICE}", {})
        report.check(own.get("sessions") == {"used": 1, "limit": 3}, "its sessions", own)
        report.check(own["device_memory_bytes"]["limit"] == 32 * MIB and
                     16 * MIB <= own["device_memory_bytes"]["used"] <= 32 * MIB, "its device memory", own)
        report.check({"host_memory_bytes", "connections", "resource_bytes", "cache_bytes"} <= set(own), "and the rest", own)
        everybody = {entry["account"]: entry["quotas"] for entry in daemon.ctl("accounts")[1]["accounts"]}
        report.check({f"uid:{ALICE}", f"uid:{BOB}"} <= set(everybody) and
                     everybody[f"uid:{ALICE}"]["device_memory_bytes"] == own["device_memory_bytes"],
                     "operators see all accounts", everybody)
        more = [Program(daemon, ALICE) for _ in range(2)]
        text = subprocess.run(doctor, env=daemon.environment(), capture_output=True, text=True, timeout=SECONDS).stdout
        report.check("warning  quotas" in text and "at its limit: sessions 3 of 3" in text, "doctor names what is full", text)
        ended([alice, bob, *more])


def crowd():
    """Sessions of one account that all want more than there is: no sum beyond it, and all get on."""
    limit = 48 * MIB
    with Daemon(f"device_memory_per_account = {limit}") as daemon:
        programs = [Program(daemon, ALICE) for _ in range(4)]
        for program in programs:
            program.output = ""
            program.process.stdin.write(f"each 300 {4 * MIB}\nmake 100 {2 * MIB}\n".encode())
            program.process.stdin.flush()
        most = 0

        def over():
            nonlocal most
            most = max(most, daemon.granted(f"uid:{ALICE}"))
            for program in programs:
                program.output += (program.process.stdout.read() or b"").decode()
            return all(program.output.count("END") == 2 for program in programs)
        report.check(harness.wait_until(over, SECONDS), "sessions that compete come to an end",
                     [program.output for program in programs])
        report.check(0 < most <= limit, "never more than the limit was granted", most)
        held = sum(int(program.output.split("made ")[2].split()[0]) for program in programs)
        report.check(18 <= held <= 24, "and nearly all of it was had", held)
        report.check(all(program.works() for program in programs if "made 0" not in program.output), "all go on")
        ended(programs)


def listeners():
    with Daemon('device_memory_per_account = "1GiB"',
                '[[listener]]\ntenant = "lab"\nmode = "0666"\ndevice_memory = "32MiB"\n'
                '[[listener]]\ntenant = "office"\nmode = "0666"\nmemory_bytes_per_session = "16MiB"') as daemon:
        daemon.ctl("listener", "list")  # Answered once they are there.
        lab = [Program(daemon, uid, daemon.listener("lab")) for uid in (ALICE, BOB)]
        told = lab[0].tell("device")
        report.check(told == ["global", str(32 * MIB), "largest", str(32 * MIB)], "a listener's devices have its memory", told)
        made = [program.make(100, 4 * MIB)[0] for program in lab]
        report.check(7 <= sum(made) <= 8, "its users' sessions have it together", made)
        office = Program(daemon, ALICE, daemon.listener("office"))
        told = office.tell("device")
        report.check(told == ["global", str(16 * MIB), "largest", str(16 * MIB)], "a session's limit is told, too", told)
        code, told = daemon.ctl("listener", "add", "job", "--mode", "0666", "--device-memory", "24MiB")
        job = Program(daemon, ALICE, told.get("socket"))
        made = job.make(100, 4 * MIB)
        report.check(code == 0 and made in ((5, NO_MEMORY), (6, NO_MEMORY)), "so has a listener made at run time", made)
        listed = {entry["tenant"]: entry["device_memory"] for entry in daemon.ctl("listener", "list")[1]["listeners"]}
        report.check(listed == {"lab": 32 * MIB, "office": 0, "job": 24 * MIB}, "sluicectl lists it", listed)
        ended([*lab, office, job])


def used_bytes(folder):
    run = subprocess.run(["du", "-s", "--block-size=1", str(folder)], capture_output=True, text=True)
    return int(run.stdout.split()[0])


def write_as_owner(folder, name, size):
    """What a kernel with system calls could leave there."""
    owner = folder.stat().st_uid
    subprocess.run(["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups", "sh", "-c",
                    f"mkdir -p '{folder}/{name}' && head -c {size} /dev/zero >'{folder}/{name}/file'"], check=True)


def disk():
    """A tenant's cache is bounded from outside, and all of them together."""
    with Daemon(worker='cache_bytes = "4MiB"\nall_caches_bytes = "10MiB"') as daemon:
        for uid in (ALICE, BOB, ALICE - 1):
            Program(daemon, uid).end(SECONDS)
        harness.wait_until(lambda: not daemon.sessions(), SECONDS)
        folders = {uid: daemon.cache / f"uid-{uid}" for uid in (ALICE, BOB, ALICE - 1)}
        hidden = folders[ALICE] / "hidden"
        write_as_owner(folders[ALICE], "old", 3 * MIB)
        write_as_owner(folders[ALICE], "hidden", 5 * MIB)
        hidden.chmod(0)
        before = used_bytes(folders[ALICE])
        Program(daemon, ALICE).end(SECONDS)
        report.check(before > 8 * MIB and
                     harness.wait_until(lambda: used_bytes(folders[ALICE]) <= 4 * MIB, SECONDS),
                     "what a tenant has left beyond the bound goes when its session ends", used_bytes(folders[ALICE]))
        for uid in folders:  # The last one was used last.
            write_as_owner(folders[uid], "large", int(3.8 * MIB))
            Program(daemon, uid).end(SECONDS)
        total = lambda: sum(used_bytes(folder) for folder in folders.values())  # noqa: E731
        report.check(harness.wait_until(lambda: total() <= 10 * MIB, SECONDS), "all together are bounded, too", total())
        report.check(used_bytes(folders[ALICE - 1]) > 3 * MIB and used_bytes(folders[ALICE]) < MIB,
                     "those used longest ago were emptied", [used_bytes(folder) for folder in folders.values()])
        log = daemon.log.read_text(errors="replace")
        report.check("was trimmed" in log and "used longest ago were emptied" in log, "the log says so", log[-1500:])
        program = Program(daemon, ALICE)
        report.check(program.make(1, MIB) == (1, 0) and program.works(), "and its tenant goes on", program.errors)
        program.end(SECONDS)


# Opens sessions as fast as it is answered, and leaves each at once, on so many connections.
CHURN = """
import os, socket, struct, sys
def message(kind, body):
    return struct.pack("<IHH", 0x45434c53, kind, 8 + len(body)) + body
for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0:
        break
while True:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(sys.argv[1])
        client.send(message(1, b"close-session".ljust(256, b"\\0") + b"churn".ljust(64, b"\\0")))
        for fd in socket.recv_fds(client, 1024, 4)[1]:
            os.close(fd)
        client.send(message(3, struct.pack("<IIQ", 0, 0, 1)))
        for fd in socket.recv_fds(client, 1024, 4)[1]:
            os.close(fd)
"""


def opening_seconds(path):
    """From a connection to the rings of a session's worker."""
    began = time.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(SECONDS)
        client.connect(str(path))

        def ask(kind, body):
            client.send(struct.pack("<IHH", 0x45434c53, kind, 8 + len(body)) + body)
            return socket.recv_fds(client, 1024, 4)[1]
        for fd in ask(1, b"close-session".ljust(256, b"\0") + b"measure".ljust(64, b"\0")):
            os.close(fd)
        channel = ask(3, struct.pack("<IIQ", 0, 0, 1))
        if not channel:
            return None
        with socket.socket(fileno=channel[0]) as rings:
            rings.settimeout(SECONDS)
            fds = socket.recv_fds(rings, 1024, 4)[1]
        for fd in fds:
            os.close(fd)
        return time.monotonic() - began if fds else None


def median_opening(path, times):
    took = [opening_seconds(path) for _ in range(times)]
    return None if None in took else sorted(took)[times // 2]


def churn():
    """Sessions of one account that come and go without end hold up no other account's."""
    with Daemon() as daemon:
        median_opening(daemon.socket, 3)
        alone = median_opening(daemon.socket, 7)
        crowd = subprocess.Popen(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", sys.executable,
                                  "-c", CHURN, str(daemon.socket), "32"], start_new_session=True)
        try:
            harness.wait_until(lambda: daemon.log.read_text(errors="replace").count(f"uid:{ALICE}") > 100, SECONDS)
            beside = median_opening(daemon.socket, 7)
        finally:
            os.killpg(crowd.pid, signal.SIGKILL)
            crowd.wait()
        print(f"TIME quotas: opening a session takes {alone:.3f} s alone, {beside:.3f} s beside 32 that come and go")
        report.check(alone is not None and beside is not None and beside < 0.25 + 4 * alone,
                     "a session opens soon beside an account that comes and goes", f"{alone} s alone, {beside} s beside")
        sessions = [entry for entry in daemon.sessions() if entry["tenant"] == f"uid:{ALICE}"]
        report.check(harness.wait_until(lambda: not daemon.sessions(), SECONDS), "all of them end", sessions)


def network():
    with Daemon('device_memory_per_account = "40MiB"', kind="network") as daemon:
        program = Program(daemon, ALICE)
        told = program.tell("device")
        report.check(told == ["global", str(40 * MIB), "largest", str(40 * MIB)], "over the network devices say so", told)
        made = program.make(100, 8 * MIB)
        report.check(made in ((4, NO_MEMORY), (5, NO_MEMORY)) and program.works(), "and it holds", made)
        ended([program])


if os.geteuid() != 0:
    print("SKIP quotas: only root can be several users")
    sys.exit(0)
harness.let_others_run()
device_memory()
shown()
crowd()
listeners()
disk()
churn()
network()
report.exit()
