#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Slurm hands out shares of a device, for real: Debian's controller and two nodes (cluster.py), the plugin of
deploy/slurm, sluiced with PoCL, and real OpenCL programs as jobs of several users.

Usage: run.py [PART...]     as root; the parts are the functions named in PARTS
"""
import base64
import os
import pathlib
import re
import shutil
import signal
import sys
import time

import cluster
from cluster import Job, SECONDS, call_as
import harness

report = harness.Report("slurm")
MEM = "mem:64M"
# Programs and packages that a machine may lack.
NEEDED = ("slurmctld", "slurmd", "srun", "munged", "unshare", "nsenter", "ip", "openssl")
PRINT_VARIABLES = "env | grep -E '^(SLUICE_|OCL_)' | sort"


def has(text, *words):
    return all(word in text for word in words)


def gone(node, *jobs):
    """True once nothing of these jobs is left on the node."""
    names = [f"slurm-{job}" for job in jobs]
    folders = [f"/run/sluice-slurm/job-{job}" for job in jobs]
    return harness.wait_until(lambda: not set(names) & set(node.listeners()) and not set(folders) & set(node.files()),
                              SECONDS, 0.2)


def number(job):
    """The job's number, from its program's own output `JOB n`."""
    job.wait_for("JOB ", SECONDS)
    harness.wait_until(lambda: job.wait_for("\n", 1), SECONDS)
    for line in job.output.splitlines():
        if line.startswith("JOB "):
            return line.split()[1]
    return None


def holding(user, node, option, *more):
    """A job whose program has a session and holds it until it is told to go on; its number is known."""
    job = Job(user, "-w", node.name, *more, f"--sluice={option}", "sh", "-c",
              f"echo JOB $SLURM_JOB_ID; exec {harness.built('stuck')}")
    job.id = number(job)
    job.is_up = job.wait_for("READY", SECONDS)
    return job


def step(user, job, *command, option=None):
    """A step more of a job, which has ended. Without an option it has none of Sluice's variables."""
    more = [f"--sluice={option}"] if option else []
    done = Job(user, f"--jobid={job.id}", "--overlap", *more, *command)
    done.code = done.end(SECONDS)
    return done


def finishes(job):
    job.go_on()
    return job.end(SECONDS) == 0 and "DONE" in job.output


# --- what is refused -------------------------------------------------------------------------------------

REFUSED = (
    ("share:25", ("both share and mem", "--sluice=share:25,mem:4G")),
    ("share:0,mem:4G", ("share:0", "1 to 100")),
    ("share:101,mem:4G", ("share:101", "1 to 100")),
    ("share:99999999999999999999999,mem:4G", ("1 to 100",)),
    ("share:-5,mem:4G", ("share:-5",)),
    ("share:25,mem:4", ("mem:4", "512M or 4G")),
    ("share:25,mem:4Gx", ("mem:4Gx", "512M or 4G")),
    ("share:25,mem:99999999T", ("512M or 4G",)),
    ("share:25,share:30,mem:4G", ("share twice",)),
    ("share:25,mem:4G,", ("comma",)),
    ("share", ('"share"', "KEY:VALUE")),
    ("", ("KEY:VALUE",)),
    ("cpus:4", ('no "cpus"', "share, mem and sessions", "--sluice=help")),
    ("share:25,mem:4G,sessions:0", ("sessions:0", "1 to 10000")),
    ("share:25 --admin-socket=/tmp/x,mem:4G", ("share:25 --admin-socket", "1 to 100")),
    ("share:25;id,mem:4G", ("share:25;id",)),
    ("share:25\nmem:4G", ("share:25?mem:4G",)),
    ("share:\xff\udcfe25,mem:4G", ("share:???25", "1 to 100")),
    ("x" * 5000, ("200 characters",)),
)


def refusals(site):
    before = site.jobs()
    for option, words in REFUSED:
        done = call_as("alice", "srun", f"--sluice={option}", "hostname")
        report.check(done.returncode != 0 and has(done.stdout, *words), f"srun refuses --sluice={ascii(option)[1:50]}",
                     done.stdout if done.returncode == 0 else done.stdout.splitlines()[0])
    for command in (("sbatch", "--wrap=hostname"), ("salloc", "hostname")):
        done = call_as("alice", command[0], "--sluice=share:200,mem:1G", command[1])
        report.check(done.returncode != 0 and "1 to 100" in done.stdout, f"{command[0]} refuses, too", done.stdout)
    done = call_as("alice", "srun", "--sluice=help")
    report.check(done.returncode == 0 and has(done.stdout, "share:N", "mem:SIZE", "--gres=sluice"), "--sluice=help says all of it")
    report.check(set(site.jobs()) <= set(before), "nothing of it became a job", site.jobs())
    done = call_as("alice", "srun", "-w", "gpu1", "--sluice=share:61,mem:64M", "hostname")
    report.check(done.returncode != 0 and "Requested node configuration is not available" in done.stdout,
                 "the controller refuses a share that no node has", done.stdout)
    more_than_granted(site, before)


def more_than_granted(site, before):
    for option, gres, words in (
            ("share:50,mem:64M", "sluice:share:10,sluice:mem:64M", ("share:50 is more", "granted job", ", 10;", "--gres=sluice:share:50")),
            ("share:10,mem:1G", "sluice:share:10,sluice:mem:64M", ("1073741824 bytes", "67108864", "--gres=sluice")),
            ("share:10,mem:64M", "sluice:10", ("bytes of memory", " 0 on this node")),
            ("share:10,mem:64M,sessions:17", "sluice:share:10,sluice:mem:64M", ("sessions:17 is more than this site allows, 16",))):
        done = call_as("alice", "srun", "-w", "gpu1", f"--gres={gres}", f"--sluice={option}", "echo", "IT-RAN")
        report.check(done.returncode != 0 and "IT-RAN" not in done.stdout and has(done.stdout, *words),
                     f"a job with --gres={gres} gets no {option}", done.stdout)
    script = "#!/bin/sh\n#SBATCH --gres=sluice:share:10,sluice:mem:64M\n#SBATCH --sluice=share:50,mem:64M\n#SBATCH -w gpu1\n" \
             "#SBATCH --output=/tmp/sluice-slurm-refused-%j\necho IT-RAN\n"
    done = call_as("alice", "sbatch", "--wait", input=script)
    output = pathlib.Path(f"/tmp/sluice-slurm-refused-{done.stdout.split()[-1] if done.stdout.split() else 0}")
    text = output.read_text() if output.exists() else ""
    output.unlink(missing_ok=True)
    report.check(done.returncode != 0 and "share:50 is more" in text and "IT-RAN" not in text,
                 "a batch job's output says the same", text or done.stdout)
    # Whoever makes the option himself, past srun's reading of it.
    forged = call_as("alice", "env", "_SLURM_SPANK_OPTION_sluice_sluice=share:1000,mem:1T", "srun", "-w", "gpu1",
                     "--gres=sluice:share:10,sluice:mem:64M", "echo", "IT-RAN")
    report.check(forged.returncode != 0 and "IT-RAN" not in forged.stdout and "1 to 100" in forged.stdout,
                 "a variable that stands for the option is read as strictly", forged.stdout)
    harness.wait_until(lambda: set(site.jobs()) <= set(before), SECONDS, 0.2)
    report.check(not any("drain" in state or "down" in state for state in site.states().values()), "no refusal drains a node",
                 site.states())
    report.check(len(site.gpu1.listeners()) <= len(before), "and none leaves a listener", site.gpu1.listeners())


# --- jobs on the node with the device --------------------------------------------------------------------


def one_job(site):
    done = call_as("alice", "env", "SLUICE_ENDPOINT=unix:/nonexistent", "SLUICE_TLS_CERT=/nonexistent", "srun", "-w", "gpu1",
                   "--sluice=share:25,mem:256M", "sh", "-c",
                   f"{PRINT_VARIABLES}; scontrol show job $SLURM_JOB_ID; {harness.built('vector_add')}")
    report.check(done.returncode == 0 and has(done.stdout, "platform: Sluice (", "every element right"),
                 "a job's program runs on its device, with nothing but --sluice", done.stdout)
    report.check(re.search(r"TresPerNode=gres[:/]sluice:share:25,gres[:/]sluice:mem:256M", done.stdout), "the controller counts what it asks for", done.stdout)
    report.check(has(done.stdout, "SLUICE_ENDPOINT=unix:/run/sluice-tenants/slurm-") and "/nonexistent" not in done.stdout,
                 "what the submission had of Sluice's variables does not hold", done.stdout)
    plain = call_as("alice", "srun", "-w", "gpu1", "sh", "-c", f"{PRINT_VARIABLES}; OCL_ICD_VENDORS={cluster.PLACE}/vendors/ "
                    f"{harness.built('vector_add')}")
    report.check(plain.returncode != 0 and "SLUICE" not in plain.stdout, "a job without --sluice gets none", plain.stdout)


def two_users(site):
    """Beside each other, each with what it asked for; nobody comes in by another's way."""
    node = site.gpu1
    first = holding("alice", node, "share:40,mem:80M,sessions:4", "--job-name=same")
    second = holding("bob", node, "share:10,mem:128M,sessions:1", "--job-name=same")
    if not report.check(first.is_up and second.is_up, "jobs of two users, of one name, run beside each other",
                        [first.output, second.output]):
        return first.end(1), second.end(1)
    seen = {entry["tenant"]: (entry["share"], entry["identity"]) for entry in node.sessions()
            if entry["tenant"] in (f"tenant:slurm-{first.id}", f"tenant:slurm-{second.id}")}
    report.check(seen == {f"tenant:slurm-{first.id}": (40, "uid:65532"), f"tenant:slurm-{second.id}": (10, "uid:65533")},
                 "each is its own account, with its own share", seen)
    strangers(first, second)
    # 48 of 80 MiB are one program's, and some bytes the first one's: another has less than 32.
    holder = Job("alice", f"--jobid={first.id}", "--overlap", "--sluice=share:40,mem:64M", harness.built("quota"))
    holder.wait_for("READY", SECONDS)
    holder.process.stdin.write(b"make 3 16777216\n")
    holder.process.stdin.flush()
    holder.wait_for("END", SECONDS)
    rest = step("alice", first, harness.built("limits"), "memory", "67108864", option="share:40,mem:64M")
    report.check("made 3 0" in holder.output and has(rest.output, "buffers 1", "refused -4"),
                 "programs of a job's steps have the job's memory together", [holder.output, rest.output])
    holder.end(SECONDS)
    over = step("bob", second, harness.built("stuck"), option="share:10,mem:64M")
    report.check("READY" not in over.output and over.code != 0, "a session more than sessions:1 is refused", over.output)
    more = step("bob", second, "echo", "IT-RAN", option="share:11,mem:64M")
    report.check("IT-RAN" not in more.output and "granted" in more.output, "a later step gets no more than its job has", more.output)
    waiting = Job("bob", "-w", "gpu1", "--sluice=share:20,mem:64M", "echo", "IT-RAN")
    report.check(harness.wait_until(lambda: "PENDING" in site.jobs().values(), SECONDS, 0.1),
                 "a job for which no share is left waits in the controller", site.jobs())
    report.check(finishes(first) and finishes(second), "both end with right results", [first.output, second.output])
    report.check(waiting.end(SECONDS) == 0 and "IT-RAN" in waiting.output, "and it starts when one ends", waiting.output)
    report.check(gone(node, first.id, second.id), "their listeners are gone", node.listeners())


def strangers(first, second):
    """`first` is alice's, `second` bob's."""
    for path, what in ((f"/run/sluice-tenants/slurm-{first.id}/broker.sock", "another user's listener"),
                       ("/run/sluice/clients/broker.sock", "the node's default socket, which the site has closed")):
        other = step("bob", second, "env", "SLUICE_LOG=error", f"SLUICE_ENDPOINT=unix:{path}",
                     f"OCL_ICD_VENDORS={cluster.PLACE}/vendors/", harness.built("vector_add"))
        report.check(other.code != 0 and "every element right" not in other.output and has(other.output, path),
                     f"a job does not come in by {what}", other.output)
    files = step("bob", second, "sh", "-c", f"ls /run/sluice-slurm; cat /run/sluice-slurm/job-{first.id}/terms; "
                 "touch /run/sluice-slurm/x; touch /run/sluice-tenants/x")
    report.check(files.output.count("denied") == 4, "it reads and writes nothing of what the node keeps", files.output)


def shares(site):
    """Two jobs that always want the device are given it by their shares."""
    node = site.gpu1
    jobs = [Job(user, "-w", node.name, f"--sluice=share:{share},{MEM}", "sh", "-c",
                f"echo JOB $SLURM_JOB_ID; exec {harness.built('hogs')} count 600") for user, share in (("alice", 40), ("bob", 10))]
    ids = [number(job) for job in jobs]
    before, latest = {}, {}

    def charged():
        """In us, since both were seen at work."""
        seen = {entry["tenant"]: entry["shares"] for entry in node.sessions()}
        latest.update(states=[share["state"] for share in seen.values()],
                      times=[seen.get(f"tenant:slurm-{job}", {}).get("device_us", 0) for job in ids])
        if not before and all(latest["times"]):
            before.update(latest)
        return [now - then for now, then in zip(latest["times"], before.get("times", latest["times"]))]

    enough = harness.wait_until(lambda: sum(charged()) >= 4e6, SECONDS, 0.2)
    parts = charged()
    part = 100 * parts[0] / (sum(parts) or 1)
    report.check(enough and 70 <= part <= 90, "of two jobs with shares 40 and 10 the first has four fifths of the time",
                 f"{part:.1f} % of {parts} us; {latest}")
    for job in ids:
        cluster.run("scancel", job)
    for job in jobs:
        job.process.kill()
        job.end(SECONDS)
    report.check(gone(node, *ids), "and nothing is left of them", node.listeners())


# --- ends ------------------------------------------------------------------------------------------------


class TimeLimit:
    """Slurm looks at time limits twice a minute: this job is started before the other parts, and looked at behind them."""

    def __init__(self, site):
        self.site = site
        self.job = holding("alice", site.gpu1, "share:5," + MEM, "--time=1")

    def check(self):
        up = self.job.is_up
        ended = self.job.wait_for("TIME LIMIT", 180)
        self.job.end(SECONDS)
        report.check(up and ended and gone(self.site.gpu1, self.job.id),
                     "a job at its time limit leaves nothing", self.job.output)


def ends(site):
    node = site.gpu1
    job = holding("alice", node, "share:10," + MEM)
    cluster.run("scancel", job.id)
    job.end(SECONDS)
    report.check(job.is_up and gone(node, job.id), "a cancelled job leaves nothing", [job.output, node.listeners()])
    report.check(harness.wait_until(lambda: not any(job.id in entry["tenant"] for entry in node.sessions()), SECONDS, 0.1),
                 "nor a session", node.sessions())

    # Of a batch job the controller sees it by itself; of an srun's step it waits for the user or the time limit.
    job = holding("alice", node, "share:10," + MEM)
    for pid in node.pids("slurmstepd"):
        cluster.kill(pid)
    cluster.run("scancel", job.id)
    report.check(job.is_up and gone(node, job.id), "one whose slurmstepd was killed leaves nothing", [job.output, site.jobs()])
    report.check(harness.wait_until(lambda: not node.sessions(), SECONDS, 0.1), "the session of the program that is left ends",
                 node.sessions())
    job.process.kill()
    job.end(SECONDS)
    done = call_as("alice", "sbatch", "--parsable", "--no-requeue", "-w", "gpu1", f"--sluice=share:10,{MEM}", "--output=/dev/null",
                   "--wrap=sleep 600")
    batch = done.stdout.strip()
    up = harness.wait_until(lambda: f"slurm-{batch}" in node.listeners(), SECONDS, 0.1)
    for pid in node.pids("slurmstepd"):
        cluster.kill(pid)

    def ended():  # The controller looks at jobs when a node registers, and not at the youngest.
        node.restart_slurmd()
        return batch not in site.jobs()

    report.check(up and harness.wait_until(ended, SECONDS, 2) and gone(node, batch), "so does a batch job's, when its node registers",
                 [done.stdout, site.jobs()])

    job = holding("alice", node, "share:10," + MEM)
    node.restart_slurmd()
    report.check(job.is_up and f"slurm-{job.id}" in node.listeners(), "one goes on over a restart of slurmd", site.jobs())
    report.check(finishes(job) and gone(node, job.id), "and leaves nothing when it ends", job.output)


def daemon_restarts(site):
    """The sweep, which Slurm calls on every node."""
    node = site.gpu1
    sweep = [cluster.SLURM / "sluice-slurm-sweep", f"sluicectl={harness.built('sluicectl')}", "node=gpu1"]
    job = holding("alice", node, "share:10," + MEM)
    node.call(harness.built("sluicectl"), "listener", "add", "slurm-999999", "--user", "65532")
    node.call("sh", "-c", "mkdir /run/sluice-slurm/job-999998 && echo x >/run/sluice-slurm/job-999998/terms")
    node.call(*sweep)
    report.check(set(node.listeners()) == {f"slurm-{job.id}"} and not any("99999" in name for name in node.files()),
                 "the sweep takes away what jobs that are gone have left, and no more", [node.listeners(), node.files()])
    node.stop_daemon()
    node.start_daemon()
    report.check(not node.listeners(), "a new daemon knows no listener of the old one's")
    node.call(*sweep)
    back = node.listeners().get(f"slurm-{job.id}", {})
    report.check((back.get("share"), back.get("users")) == (10, ["65532"]), "the sweep gives a running job its listener back", back)
    again = step("alice", job, harness.built("vector_add"), option="share:10," + MEM)
    report.check(again.code == 0, "by which its programs come in again", again.output)
    node.call(harness.built("sluicectl"), "listener", "remove", f"slurm-{job.id}")
    again = step("alice", job, harness.built("vector_add"), option="share:10," + MEM)
    report.check(again.code == 0, "a new step makes one that is missing", again.output)
    cluster.run("scancel", job.id)
    job.end(SECONDS)
    report.check(gone(node, job.id), "the job's end takes it away", node.listeners())
    site.slurmctld_stops()
    node.call(harness.built("sluicectl"), "listener", "add", "slurm-999999", "--user", "65532")
    done = call_on(node, *sweep)
    report.check(done != 0 and "slurm-999999" in node.listeners(), "without a controller the sweep removes nothing")
    site.start_slurmctld()
    node.call(harness.built("sluicectl"), "listener", "remove", "slurm-999999")


def no_daemon(site):
    """A daemon that is gone, or hangs, ends a job with a sentence, and holds no node."""
    node = site.gpu1
    node.stop_daemon()
    done = call_as("alice", "srun", "-w", "gpu1", f"--sluice=share:10,{MEM}", "echo", "IT-RAN")
    report.check(done.returncode != 0 and "IT-RAN" not in done.stdout and has(done.stdout, "sluicectl listener add", "cannot reach"),
                 "a job on a node whose daemon is gone says so", done.stdout)
    node.start_daemon()
    job = holding("alice", node, "share:10," + MEM)
    brokers = node.pids("sluiced")
    for pid in brokers:
        os.kill(pid, signal.SIGSTOP)
    report.check(job.is_up and finishes(job), "a job goes on while the broker hangs", job.output)
    report.check(harness.wait_until(lambda: job.id not in site.jobs() and site.states()["gpu1"] == "idle", SECONDS, 0.2),
                 "its end does not wait for it for long", site.states())
    for pid in brokers:
        os.kill(pid, signal.SIGCONT)
    node.call(cluster.SLURM / "sluice-slurm-sweep", f"sluicectl={harness.built('sluicectl')}", "node=gpu1")
    report.check(gone(node, job.id), "the sweep takes away what the epilog could not", node.listeners())


def call_on(node, *command):
    return cluster.subprocess.run(node.enter(*command), capture_output=True).returncode


def reboot(site):
    node = site.gpu1
    job = holding("alice", node, "share:10," + MEM)
    node.crash()
    node.start_daemon()
    node.start_slurmd("-b")  # It says that the machine was started again.
    report.check(job.is_up and harness.wait_until(lambda: job.id not in site.jobs(), SECONDS, 0.5),
                 "a job whose node was cut off ends", site.jobs())
    cluster.run("scontrol", "update", "nodename=gpu1", "state=resume")  # An administrator's, of a node that fell out.
    report.check(gone(node, job.id) and not node.files(), "and nothing is left of it on the node", [node.listeners(), node.files()])
    job.end(SECONDS)
    report.check(harness.wait_until(lambda: site.states()["gpu1"] == "idle", SECONDS, 0.5), "the node takes jobs again", site.states())
    # A number that is used again is another job: what an unseen one left is not taken for its own.
    node.call(harness.built("sluicectl"), "listener", "add", f"slurm-{int(job.id) + 1}", "--user", "65533", "--share", "90")
    next_job = holding("alice", node, "share:10," + MEM)
    seen = node.listeners().get(f"slurm-{next_job.id}", {})
    report.check(int(next_job.id) == int(job.id) + 1 and (seen.get("users"), seen.get("share")) == (["65532"], 10),
                 "a listener of its name that is another's is replaced", seen)
    report.check(finishes(next_job), "and it runs", next_job.output)


# --- the node without a device ---------------------------------------------------------------------------


def remote(site):
    node = site.cpu1
    job = holding("alice", node, "share:20,mem:64M,sessions:2")
    if not report.check(job.is_up, "a job on the node without a device uses the other node's", job.output):
        return job.end(1)
    seen = [entry["share"] for entry in site.gpu1.sessions() if entry["tenant"] == f"net:tenant=slurm-{job.id}-0"]
    report.check(seen == [20], "as an account of its own there, with its share", seen)
    told = step("alice", job, "sh", "-c", f"{PRINT_VARIABLES}; stat -c '%a %U' $SLUICE_TOKEN_FILE; cat $SLUICE_TOKEN_FILE; "
                f"cat {cluster.PLACE}/slurm.key", option="share:20,mem:64M")
    token = next((line for line in told.output.splitlines() if line.startswith("sluice1.")), "")
    terms = base64.urlsafe_b64decode(token.split(".")[1] + "==").decode() if token else ""
    ends_at = int(terms.split("expires=")[1].split(";")[0]) if terms else 0
    report.check("400 alice" in told.output and has(terms, f"tenant=slurm-{job.id}-0", "share=20", "max_sessions=2", "memory_bytes=33554432"),
                 "its token is the user's alone, and says what it was granted", [terms, told.output])
    left = ends_at - time.time()
    report.check(300 < left <= 10 * 60 + 60, "it expires with the job's time limit", left)
    report.check(f"{cluster.PLACE}/slurm.key: Permission denied" in told.output and token not in told.output.split("sluice1.")[0],
                 "the key is root's, and no variable holds the token", told.output)
    stranger = Job("bob", "-w", "cpu1", "cat", f"/run/sluice-slurm/job-{job.id}/token")
    stranger.end(SECONDS)
    report.check("Permission denied" in stranger.output, "nobody else reads it", stranger.output)
    over = step("alice", job, harness.built("limits"), "memory", "33554432", option="share:20,mem:64M")
    report.check(has(over.output, "buffers 4", "refused -4"), "a session has its part of the job's memory there", over.output)
    report.check(finishes(job) and gone(node, job.id), "the token goes with the job", [job.output, node.files()])
    key = cluster.PLACE / "slurm.key"
    key.chmod(0o644)
    open_key = call_as("alice", "srun", "-w", "cpu1", f"--sluice=share:5,{MEM}", "echo", "IT-RAN")
    key.chmod(0o600)
    report.check("IT-RAN" not in open_key.stdout and has(open_key.stdout, "slurm.key", "mode 0600"),
                 "a key that others can read signs nothing", open_key.stdout)


# --- other shapes of jobs --------------------------------------------------------------------------------


def shapes(site):
    odd = holding("o'dd $(id).x", site.gpu1, "share:10," + MEM)
    report.check(odd.is_up and site.gpu1.listeners().get(f"slurm-{odd.id}", {}).get("users") == ["65531"],
                 "a user of an odd name has a listener by number", odd.output)
    report.check(finishes(odd) and gone(site.gpu1, odd.id), "and all is well", odd.output)
    both = Job("alice", "-N2", f"--sluice=share:20,{MEM}", "sh", "-c",
               f"echo $SLURMD_NODENAME $SLUICE_ENDPOINT; exec {harness.built('vector_add')}")
    both.end(SECONDS)
    report.check(both.process.returncode == 0 and has(both.output, "gpu1 unix:/run/sluice-tenants/", "cpu1 gpu1:7466") and
                 both.output.count("every element right") == 2, "a job on both nodes has both ways", both.output)
    folder = pathlib.Path("/tmp") / f"sluice-slurm-array-{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o777)
    done = call_as("alice", "sbatch", "--wait", "--array=1-3", "-w", "gpu1", f"--sluice=share:20,{MEM}", f"--output={folder}/%a",
                   f"--wrap=echo $SLUICE_ENDPOINT; {harness.built('vector_add')}")
    texts = [path.read_text() for path in sorted(folder.iterdir())]
    shutil.rmtree(folder)
    report.check(done.returncode == 0 and len({text.splitlines()[0] for text in texts}) == 3 and
                 all("every element right" in text for text in texts), "each task of an array has a listener of its own", texts or done.stdout)
    shell = call_as("alice", "salloc", "-w", "gpu1", f"--sluice=share:20,{MEM}", "srun", harness.built("vector_add"))
    report.check(shell.returncode == 0 and "every element right" in shell.stdout, "a step in salloc's shell has its job's device", shell.stdout)
    mixed = call_as("alice", "srun", "-w", "gpu1", f"--sluice=share:10,{MEM}", harness.built("vector_add"), ":", "-w", "cpu1",
                    f"--sluice=share:15,{MEM}", harness.built("vector_add"))
    report.check(mixed.returncode != 0 and "heterogeneous" in mixed.stdout, "a heterogeneous job is refused", mixed.stdout)
    report.check(harness.wait_until(lambda: not site.gpu1.listeners() and not site.gpu1.files() and not site.cpu1.files(), SECONDS, 0.2),
                 "nothing is left of any of them", [site.gpu1.listeners(), site.gpu1.files(), site.cpu1.files()])


def time_limit(site):
    """TimeLimit, which main() starts and looks at."""


PARTS = {part.__name__: part for part in (time_limit, refusals, one_job, two_users, shares, remote, ends, daemon_restarts,
                                          no_daemon, shapes, reboot)}

# Those which ask that the node has no other job.
ALONE = ("ends", "daemon_restarts", "no_daemon", "shapes", "reboot")


def main():
    unknown = [name for name in sys.argv[1:] if name not in PARTS]
    if unknown:
        sys.exit(f"usage: run.py [PART...]; a part is one of {' '.join(PARTS)}")
    missing = [program for program in NEEDED if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if os.geteuid() != 0 or missing:
        print(f"SKIP slurm: {'no root' if os.geteuid() else 'no ' + ' '.join(missing)}; deploy/install-deps.sh --slurm, as root")
        return
    if not list(harness.build_dir().rglob("spank_sluice.so")):
        print("SKIP slurm: no spank_sluice.so; configure with -DSLUICE_SLURM=ON and build")
        return
    cluster.enter()
    harness.let_others_run()
    site = cluster.Cluster()
    try:
        parts = sys.argv[1:] or list(PARTS)
        limit = TimeLimit(site) if time_limit.__name__ in parts else None
        for name in parts:
            if name in ALONE and limit:
                limit = limit.check()
            PARTS[name](site)
        if limit:
            limit.check()
    finally:
        site.keep_logs()
    report.exit()


if __name__ == "__main__":
    main()
