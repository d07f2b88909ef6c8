#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What a kernel on a CPU device, which is native code in its worker, gets of the machine's kernel: nothing but what
drivers need. Each threat is a session of its own (programs/attacks.c), with real system calls in a real worker of an
ordinary user's.

Usage: failure_sandbox.py ring|network
"""
import errno
import os
import pathlib
import pwd
import shutil
import socket
import subprocess

import harness

KIND = harness.kind_argument()
SECONDS = 60
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


class NobodysDaemon(harness.Daemon):
    """Its workers are an ordinary user's, with a cache that this user may write."""

    def _config_text(self, limits):
        temporary = self.directory / "tmp"
        text = super()._config_text(limits).replace('user = "root"', 'user = "nobody"')
        cache = f'[worker.environment]\nPOCL_CACHE_DIR = "{temporary}/pocl"\nHOME = "{temporary}"\n'
        return text.replace("[[network]]", f"{cache}[[network]]") if "[[network]]" in text else text + cache


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
    shown = [value if value in (0, ENDED) else errno.errorcode[-value] for value in wanted]
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
report.exit()
