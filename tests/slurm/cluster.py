# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of one machine, with Debian's programs: a controller and two nodes.

Each has a network, a mount and a host name of its own. The processes are in one PID namespace, so that all of them end
with the test, and /etc, /run and /var are the cluster's: nothing of it is left on the machine, and none of the machine's
daemons is asked. enter() puts the test itself there.

    gpu1   the node with the device: sluiced serves it by a socket and over TLS
    cpu1   has none; its jobs use gpu1's
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

SLURM = pathlib.Path(__file__).resolve().parent.parent.parent / "deploy/slurm"
sys.path.insert(0, str(SLURM.parent.parent / "tests/system"))
import harness  # noqa: E402: it is beside no other file of this folder

PLACE = pathlib.Path("/run/cluster")  # The cluster's own files.
INSIDE = "SLUICE_TEST_INSIDE_CLUSTER"
ADDRESSES = {"ctl": "10.99.0.1", "gpu1": "10.99.0.2", "cpu1": "10.99.0.3"}
# The last is no name that useradd takes, and that directories of users have.
USERS = {"alice": 65532, "bob": 65533, "o'dd $(id).x": 65531}
SECONDS = 60
OWN_FOLDERS = ("/run/sluice", "/run/sluice-admin", "/run/sluice-tenants", "/run/sluice-slurm")

SLURM_CONF = """
ClusterName=test
SlurmctldHost=ctl(10.99.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/lib/slurm/ctl
SlurmdSpoolDir=/var/lib/slurm/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldLogFile=/run/cluster/slurmctld.log
SlurmdLogFile=/run/cluster/slurmd-%n.log
SlurmdDebug=verbose
SlurmctldDebug=verbose
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
ReturnToService=1
SlurmdTimeout=15
BatchStartTimeout=1
SlurmctldTimeout=15
KillWait=2
OverTimeLimit=0
MinJobAge=60
CompleteWait=0
MessageTimeout=10
UnkillableStepTimeout=20
GresTypes=sluice
JobSubmitPlugins=lua
PlugStackConfig=/etc/slurm/plugstack.conf
NodeName=gpu1 NodeAddr=10.99.0.2 CPUs=8 State=UNKNOWN Gres=sluice:share:60,sluice:mem:2G
NodeName=cpu1 NodeAddr=10.99.0.3 CPUs=8 State=UNKNOWN Gres=sluice:share:40,sluice:mem:1G
PartitionName=all Nodes=ALL Default=YES MaxTime=60 DefaultTime=10 State=UP OverSubscribe=YES
"""

GRES_CONF = """
NodeName=gpu1 Name=sluice Type=share Count=60 Flags=CountOnly
NodeName=gpu1 Name=sluice Type=mem Count=2G Flags=CountOnly
NodeName=cpu1 Name=sluice Type=share Count=40 Flags=CountOnly
NodeName=cpu1 Name=sluice Type=mem Count=1G Flags=CountOnly
"""

# The default socket is root's: jobs have listeners of their own.
SLUICED_TOML = f"""
[broker]
socket_mode = "0600"
[scheduling]
turns = "on"
[[network]]
listen = "10.99.0.2:7466"
certificate = "{PLACE}/server.pem"
key = "{PLACE}/server.key"
token_key = "{PLACE}/slurm.key.pub"
"""


def enter():
    """Runs the test again in namespaces of its own; returns only there."""
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = "1"
    command = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
               sys.executable, "-B", *sys.argv]
    # The namespace's first process ends with this one, and all others with it.
    os.execvp(command[0], command)


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more)


def private_folders():
    """/run, and what of /etc and /var Slurm has, are ours from here on."""
    for path in ("/run", "/var/lib/slurm", "/var/log/slurm", "/etc/slurm", "/etc/munge"):
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "cluster", path)
    PLACE.mkdir()
    for folder in OWN_FOLDERS:
        pathlib.Path(folder).mkdir()
    for name, entry in (("passwd", "{name}:x:{uid}:{uid}::/tmp:/bin/sh\n"), ("group", "{name}:x:{uid}:\n")):
        lines = pathlib.Path(f"/etc/{name}").read_text()
        lines += "".join(entry.format(name=name_, uid=uid) for name_, uid in USERS.items())
        (PLACE / name).write_text(lines)
        run("mount", "--bind", PLACE / name, f"/etc/{name}")
    hosts = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
    (PLACE / "hosts").write_text(hosts)
    run("mount", "--bind", PLACE / "hosts", "/etc/hosts")


class Node:
    """A host: its namespaces live as long as `keeper`."""

    def __init__(self, name):
        self.name = name
        self.keeper = subprocess.Popen(["unshare", "--mount", "--net", "--uts", "sh", "-c",
                                        f"hostname {name} && exec sleep infinity"])
        own = os.readlink("/proc/self/ns/net")
        harness.wait_until(lambda: os.readlink(f"/proc/{self.keeper.pid}/ns/net") != own and
                           harness.program(self.keeper.pid) == "sleep", SECONDS)
        run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", self.keeper.pid)
        run("ip", "link", "set", f"to-{name}", "master", "lan", "up")
        self.call("ip", "link", "set", "lo", "up")
        self.call("ip", "address", "add", f"{ADDRESSES[name]}/24", "dev", "eth0")
        self.call("ip", "link", "set", "eth0", "up")
        for folder in OWN_FOLDERS:  # No host sees another's sockets.
            self.call("mount", "-t", "tmpfs", "-o", "mode=0755", name, folder)
        pathlib.Path(f"/var/lib/slurm/{name}").mkdir()
        self.daemon = self.slurmd = None

    def enter(self, *command):
        return ["nsenter", "-t", str(self.keeper.pid), "-m", "-n", "-u", "--", *map(str, command)]

    def call(self, *command):
        return run(*self.enter(*command))

    def start(self, *command, log):
        with open(PLACE / log, "ab") as file:
            return subprocess.Popen(self.enter(*command), stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def start_slurmd(self, *more):
        self.slurmd = self.start("slurmd", "-D", *more, "-N", self.name, log=f"slurmd-{self.name}.out")
        harness.wait_until(lambda: harness.accepts(ADDRESSES[self.name], 6818), SECONDS, 0.05)

    def start_daemon(self):
        """sluiced, with its sockets where they are by default."""
        self.daemon = self.start(harness.built("sluiced"), "--config", PLACE / "sluiced.toml", log="sluiced.log")
        good = harness.wait_until(lambda: self.ctl("status")[0] == 0 or self.daemon.poll() is not None, SECONDS, 0.1)
        if not good or self.daemon.poll() is not None:
            sys.exit("FAIL slurm: sluiced did not come up; its log:\n" + (PLACE / "sluiced.log").read_text())

    def stop_daemon(self):
        for pid in self.pids("sluiced"):
            os.kill(pid, signal.SIGTERM)
        self.daemon.wait(SECONDS)

    def restart_slurmd(self):
        self.slurmd.kill()
        self.slurmd.wait()
        harness.wait_until(lambda: not harness.accepts(ADDRESSES[self.name], 6818), SECONDS)
        self.start_slurmd()

    def ctl(self, *arguments):
        done = subprocess.run(self.enter(harness.built("sluicectl"), *arguments, "--json"), capture_output=True,
                              text=True, timeout=SECONDS)
        return done.returncode, json.loads(done.stdout or "{}")

    def listeners(self):
        """Those that jobs have, by name."""
        return {entry["tenant"]: entry for entry in self.ctl("listener", "list")[1].get("listeners", [])}

    def sessions(self):
        return self.ctl("sessions")[1].get("sessions", [])

    def files(self):
        """What this host keeps of jobs."""
        return self.call("find", "/run/sluice-slurm", "-mindepth", "1", "-not", "-name", "lock").stdout.split()

    def pids(self, program):
        """Of this host's processes that run it."""
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and
                pathlib.Path(harness.program(int(pid)).rstrip(":")).name.startswith(program) and self._has(pid)]

    def _has(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/ns/net") == os.readlink(f"/proc/{self.keeper.pid}/ns/net")
        except OSError:
            return False

    def processes(self):
        """All that this host runs."""
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != self.keeper.pid and self._has(pid)]

    def crash(self):
        """As by a power cut: all of its daemons and jobs are gone, and what was in /run."""
        for pid in self.processes():
            kill(pid)
        for child in (self.daemon, self.slurmd):
            child.wait(SECONDS)
        harness.wait_until(lambda: not any(harness.alive(pid) for pid in self.processes()), SECONDS)
        for folder in OWN_FOLDERS:
            self.call("umount", "--lazy", folder)
            self.call("mount", "-t", "tmpfs", "-o", "mode=0755", self.name, folder)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Cluster:
    def __init__(self):
        private_folders()
        run("hostname", "ctl")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "lan", "type", "bridge")
        run("ip", "address", "add", f"{ADDRESSES['ctl']}/24", "dev", "lan")
        run("ip", "link", "set", "lan", "up")
        self.write_files()
        self.munged = self.start("munged", "--foreground", "--force", log="munged.log")
        harness.wait_until(lambda: subprocess.call("(munge -n | unmunge) >/dev/null 2>&1", shell=True) == 0, SECONDS, 0.1)
        self.gpu1, self.cpu1 = Node("gpu1"), Node("cpu1")
        self.gpu1.start_daemon()
        pathlib.Path("/var/lib/slurm/ctl").mkdir()
        self.start_slurmctld()
        for node in (self.gpu1, self.cpu1):
            node.start_slurmd()
        if not harness.wait_until(lambda: self.states() == {"gpu1": "idle", "cpu1": "idle"}, SECONDS, 0.2):
            sys.exit(f"FAIL slurm: the nodes did not come up: {self.states()}\n{self.logs()}")

    def start(self, *command, log):
        with open(PLACE / log, "ab") as file:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def start_slurmctld(self):
        self.slurmctld = self.start("slurmctld", "-D", log="slurmctld.out")
        harness.wait_until(lambda: subprocess.run(["scontrol", "ping"], capture_output=True).returncode == 0, SECONDS, 0.2)

    def slurmctld_stops(self):
        self.slurmctld.terminate()
        self.slurmctld.wait(SECONDS)

    def write_files(self):
        pathlib.Path("/run/munge").mkdir()
        key = pathlib.Path("/etc/munge/munge.key")
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        etc = pathlib.Path("/etc/slurm")
        etc.joinpath("slurm.conf").write_text(SLURM_CONF)
        etc.joinpath("gres.conf").write_text(GRES_CONF)
        etc.joinpath("cgroup.conf").write_text("")
        etc.joinpath("job_submit.lua").write_text((SLURM / "job_submit.lua").read_text())
        (PLACE / "vendors").mkdir()
        (PLACE / "vendors/sluice.icd").write_text(f"{harness.built('libsluice_icd.so')}\n")
        run(harness.built("sluicectl"), "token", "keygen", PLACE / "slurm.key")
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=gpu1", "-addext", "subjectAltName=DNS:gpu1", "-keyout", PLACE / "server.key", "-out",
            PLACE / "server.pem")
        (PLACE / "sluiced.toml").write_text(SLUICED_TOML)
        self.plugstack()

    def plugstack(self, more=""):
        line = (f"required {harness.built('spank_sluice.so')} sluicectl={harness.built('sluicectl')} "
                f"vendors={PLACE}/vendors/ remote=cpu[1-8]@gpu1:7466 key={PLACE}/slurm.key ca={PLACE}/server.pem {more}\n")
        pathlib.Path("/etc/slurm/plugstack.conf").write_text(line)

    def states(self):
        done = subprocess.run(["sinfo", "-h", "-N", "-o", "%N %T"], capture_output=True, text=True, timeout=SECONDS)
        return dict(line.split() for line in done.stdout.splitlines())

    def jobs(self):
        """Numbers of those that have not ended, with their states."""
        done = subprocess.run(["squeue", "-h", "-a", "-o", "%A %T"], capture_output=True, text=True, timeout=SECONDS)
        return dict(line.split() for line in done.stdout.splitlines())

    def keep_logs(self):
        folder = os.environ.get("SLUICE_TEST_LOG_DIR")
        if folder:
            (pathlib.Path(folder) / "slurm.log").write_text(self.logs(1000))

    def logs(self, lines=25):
        return "\n".join(f"== {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
                         for path in sorted(PLACE.glob("*.*")) if path.suffix in (".log", ".out"))


def as_user(name, *command):
    uid = str(USERS[name])
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "env", "-i", "-C", "/tmp",
            "PATH=/usr/bin:/bin", "HOME=/tmp", f"USER={name}", *map(str, command)]


def call_as(name, *command, seconds=SECONDS, **more):
    """A command of a user's, on the controller's host; what it prints and its errors are one text."""
    return subprocess.run(as_user(name, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=seconds, **more)


class Job(harness.Application):
    """A program under srun, whose input and output are this test's."""

    def __init__(self, user, *command):
        self.process = subprocess.Popen(as_user(user, "srun", "--unbuffered", *command), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.output = ""
        self.errors = ""
