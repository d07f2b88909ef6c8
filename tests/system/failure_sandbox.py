#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What a kernel on a CPU device, which is native code in its worker, gets of the machine's kernel: nothing but what
drivers need. Each threat is a session of its own (programs/attacks.c), with real system calls in a real worker of an
ordinary user's.

Usage: failure_sandbox.py ring|network
"""
import errno
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess

import harness

KIND = harness.kind_argument()
SECONDS = 60
os.environ.pop("POCL_CACHE_DIR", None)  # The suite's is root's; these workers are an ordinary user's.
report = harness.Report(f"failure_sandbox {KIND}")
harness.let_others_run()
ENDED = "ended"

# By name, what each attack must get: an error, or the end of its worker. The first column is the threat.
THREATS = {
    "the network": ("tcp", "tcp6", "mptcp", "udp", "fastopen", "listen", "bind", "netlink", "vsock", "packet"),
    "much of the kernel": ("io_uring", "userfaultfd", "perf"),
    "what outlives its worker": ("shmget", "semget", "msgget", "add_key", "keyctl"),
    "namespaces": ("unshare_user", "clone_user", "setns"),
}
KILLED = {"the machine": ("mount", "bpf"), "other processes": ("ptrace", "read_others")}


# The namespaces that every helper has of its own; a gateway listens in the host's network.
OWN = ("user", "ipc", "uts", "mnt")
LAYERS = ("files", "programs", "system-calls", "namespaces", "private-root")


class NobodysDaemon(harness.Daemon):
    """Its workers are an ordinary user's, with a cache that this user may write."""

    def _config_text(self, limits):
        temporary = self.directory / "tmp"
        text = super()._config_text(limits).replace('user = "root"', 'user = "nobody"')
        cache = f'[worker.environment]\nPOCL_CACHE_DIR = "{temporary}/pocl"\nHOME = "{temporary}"\n'
        return text.replace("[[network]]", f"{cache}[[network]]") if "[[network]]" in text else text + cache


class DaemonElsewhere(harness.Daemon):
    """Started by a command; it is in this network all the same."""

    def _answers(self):
        return super()._answers() and (self.kind == "ring" or harness.accepts("127.0.0.1", self.port))


class OrdinaryDaemon(DaemonElsewhere):
    """It is an ordinary user's, as are its workers."""

    def __init__(self, kind):
        nobody = ("setpriv", "--reuid", str(harness.NOBODY), "--regid", str(harness.NOBODY), "--clear-groups")
        super().__init__(kind, prefix=nobody if os.geteuid() == 0 else ())
        for folder in (self.directory, self.temporary):
            os.chown(folder, *((harness.NOBODY, harness.NOBODY) if os.geteuid() == 0 else (-1, -1)))

    def _config_text(self, limits):
        text = super()._config_text(limits).replace("[broker]\n", "[broker]\nsocket_mode = \"0666\"\n")
        return text.replace(
            '[worker]\nuser = "root"\n', f'[worker.environment]\nHOME = "{self.directory}/tmp"\n')


def attack(daemon, name, text=""):
    """(the number that the last system call returned, or ENDED, or None; all that was said)"""
    done = subprocess.run([str(harness.built("attacks")), name, str(text)], env=daemon.environment(),
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    said = done.stdout.strip() + done.stderr.strip()
    if said.startswith("result="):
        return int(said.removeprefix("result=").split()[0]), said
    return (ENDED if said.startswith("ended=") else None), said


def expect(daemon, what, name, wanted, text=""):
    got, said = attack(daemon, name, text)
    shown = [errno.errorcode.get(-value, value) if value != ENDED else value for value in wanted]
    report.check(got in wanted, f"{what}: {name}", f"{said}; wanted one of {shown}" if got not in wanted else said)


def segments():
    """Those of the workers' user: other programs of the machine make some meanwhile."""
    owner = str(pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid())
    found = []
    for path in pathlib.Path("/proc/sysvipc").glob("[sm]*"):
        names, *lines = [line.split() for line in path.read_text().splitlines()]
        found += [(path.name, line) for line in lines if line[names.index("uid")] == owner]
    return found


def check_others(daemon):
    """Another process of the same user's, and a service of the machine's on a Unix socket."""
    stranger = subprocess.Popen(["sleep", "600"], **({"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}))
    path = daemon.temporary / "service.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as service:
        service.bind(str(path))
        os.chmod(path, 0o777)
        service.listen(8)
        expect(daemon, "other services", "unix", [-errno.EPERM], path)
    expect(daemon, "another worker's limits", "prlimit_others", [-errno.EPERM], stranger.pid)
    expect(daemon, "its own limits", "prlimit_own", [0])
    expect(daemon, "signals", "kill_others", [-errno.EPERM], stranger.pid)
    expect(daemon, "signals", "pidfd_others", [-errno.EPERM], stranger.pid)
    for name in KILLED["other processes"]:
        expect(daemon, "other processes", name, [ENDED], stranger.pid)
    stranger.kill()
    stranger.wait()


def layers(daemon):
    """By the log: those in force, and what it says of the others."""
    harness.wait_until(lambda: "worker_sandbox=" in daemon.log.read_text(), SECONDS)
    line = next(line for line in daemon.log.read_text().splitlines() if "worker_sandbox=" in line)
    there, _, missing = line.split('worker_sandbox="', 1)[1].split('"', 1)[0].partition("; not ")
    return there.split(", "), missing


def namespaces(pid):
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in (*OWN, "net", "pid")}


def check_helper(pid, daemon, own):
    """From outside: which namespaces, rights and files a process of the daemon's has."""
    name = pathlib.Path(harness.program(pid)).name
    theirs, hosts = namespaces(pid), namespaces(daemon.process.pid)
    shared = [kind for kind in own if theirs[kind] == hosts[kind]]
    report.check(not shared, f"{name} has namespaces of its own: {', '.join(own)}", shared)
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    rights = {key: int(status[key], 16) for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    report.check(not any(rights.values()), f"{name} has no capability, nor could it get one", rights)
    users = {pathlib.Path(f"/proc/{pid}/{kind}_map").read_text().split()[2] for kind in ("uid", "gid")}
    denied = pathlib.Path(f"/proc/{pid}/setgroups").read_text().strip()
    report.check(users == {"1"} and denied == "deny", f"{name} has one user and group there, and no others to take",
                 (users, denied))
    seen = sorted(os.listdir(f"/proc/{pid}/root"))
    report.check(not {"home", "srv", "boot", "mnt"} & set(seen), f"{name} sees its own of the host's files", seen)
    mounts = pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    loose = [line for line in mounts if "nosuid" not in line.split()[5]]
    report.check(not loose, f"no set-user-ID bit counts for {name}", loose)


def check_own_view(daemon):
    """What a kernel finds of the host: the network, files, processes."""
    expect(daemon, "its network has no interface but lo", "lines", [3], "/proc/self/net/dev")
    expect(daemon, "and lo is down: no address", "lines", [0], "/proc/self/net/if_inet6")
    hidden = daemon.directory / "sluiced.toml"
    for path in ("/etc/passwd", "/root", "/home", hidden, daemon.socket, "/etc/shadow"):
        expect(daemon, "the host's files are not there", "open", [-errno.ENOENT], path)
    expect(daemon, "what is there is for reading", "write", [-errno.EROFS, -errno.EACCES], "/usr/planted")
    expect(daemon, "the root, too", "write", [-errno.EROFS, -errno.EACCES], "/planted")


def check_told(daemon, there, missing):
    """Operators read the same in sluicectl."""
    command = [str(harness.built("sluicectl")), "status", "--json", "--admin-socket", str(daemon.admin_socket)]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout)
    report.check(told["worker_sandbox"] == ", ".join(there) + ("; not " + missing if missing else ""),
                 "sluicectl status names the layers", told["worker_sandbox"])


def check_views(daemon):
    there, missing = layers(daemon)
    check_told(daemon, there, missing)
    if "private-root" not in there:
        report.check(missing != "", "the log says why there are no namespaces", missing)
        return
    report.check(there == list(LAYERS), "the log names every layer", (there, missing))
    check_own_view(daemon)
    application = harness.Application(daemon, "victim", "idle")
    report.check(application.wait_for("READY", SECONDS), "a session to look at", application.output)
    workers = daemon.workers()
    report.check(len(workers) == 1, "it has a worker", workers)
    for pid in workers:
        check_helper(pid, daemon, (*OWN, "net"))
    for pid in daemon.processes():
        if harness.program(pid).endswith("sluice-gateway"):
            check_helper(pid, daemon, OWN)
    application.go_on()
    application.end(SECONDS)


def check_required(settings, why):
    """A daemon whose operator asks for what is not there does not start."""
    daemon = NobodysDaemon(KIND)
    text = daemon.config.read_text()
    daemon.config.write_text(text.replace("[worker]\n", f"[worker]\nrequire = [\"private-root\"]\n{settings}\n"))
    done = subprocess.run([str(harness.built("sluiced")), "--check-config", str(daemon.config)],
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    shutil.rmtree(daemon.directory)
    report.check((done.returncode != 0 and why in done.stdout + done.stderr) if why else done.returncode == 0,
                 f"require private-root with {settings or 'all on'}", done.stdout + done.stderr)


def check_without():
    """Where the system refuses user namespaces, workers go without them, and the log says which setting that is."""
    refused = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\""
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", refused, "-")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        print("SKIP without user namespaces: this machine lets nobody make one in which there are none")
        return
    with DaemonElsewhere(KIND, prefix=prefix) as without:
        there, missing = layers(without)
        check_told(without, there, missing)
        report.check(there == list(LAYERS[:3]) and missing.count("user.max_user_namespaces = 0") == 2,
                     "without user namespaces the log says which setting that is", (there, missing))
        done = subprocess.run([str(harness.built("vector_add"))], env=without.environment(), capture_output=True,
                              text=True, timeout=SECONDS, check=False)
        report.check(done.returncode == 0, "and workers compute", done.stdout + done.stderr)


daemon = NobodysDaemon(KIND)
os.chmod(daemon.temporary, 0o1777)
with daemon.start():
    got, said = attack(daemon, "unknown")
    if got is None and "asm" in said:
        print(f"SKIP {report.suite}: this device compiles no system calls into its kernels: {said[:200]}")
        report.exit()
    report.check(got == -errno.ENOSYS, "a system call of the future is unknown", said)
    before = segments()
    for what, names in THREATS.items():
        for name in names:
            expect(daemon, what, name, [-errno.EPERM])
    report.check(segments() == before, "no segment of System V is left", segments())
    expect(daemon, "namespaces", "clone3", [-errno.ENOSYS])
    for name in KILLED["the machine"]:
        expect(daemon, "the machine", name, [ENDED])
    check_others(daemon)
    copy = daemon.temporary / "planted"
    shutil.copy(shutil.which("true"), copy)
    os.chmod(copy, 0o755)
    expect(daemon, "programs", "exec", [-errno.EACCES], copy)
    expect(daemon, "programs", "exec", [-errno.EACCES], shutil.which("true"))
    report.check("Bad system call" in daemon.log.read_text(), "the log says how the worker ended")
    done = subprocess.run([str(harness.built("vector_add"))], env=daemon.environment(), capture_output=True,
                          text=True, timeout=SECONDS, check=False)
    report.check(done.returncode == 0, "a neighbour computes on", done.stdout + done.stderr)
    check_views(daemon)
    namespaced = "private-root" in layers(daemon)[0]
with OrdinaryDaemon(KIND) as daemon:
    check_views(daemon)
check_without()
if os.geteuid() == 0:
    if namespaced:
        check_required("", "")
    for setting in ("private_root = false", "namespaces = false", "confine_files = false"):
        check_required(setting, setting)
report.exit()
