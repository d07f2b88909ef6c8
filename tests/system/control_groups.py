#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Control groups of version 2 around real workers: who is in which, what is left of them after sessions, after a broker
that was killed, and where there are none. Limits are tested as far as this machine's hierarchy has their controllers;
tests/vm/guest/control_groups.sh has them all.

Usage: control_groups.py
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import harness

SECONDS = 60
report = harness.Report("control_groups")


def hierarchy():
    """Where version 2 is mounted, and this process's group in it; None if it is not."""
    own = [line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split(" ")
        if words[words.index("-") + 1] == "cgroup2" and own and own[0].startswith(words[3]):
            return pathlib.Path(words[4]) / os.path.relpath(own[0], words[3])
    return None


class Daemon(harness.Daemon):
    """One whose own control group is `group`, or who stays where this test is."""

    def __init__(self, group=None, keys=""):
        self.group, self.keys = group, keys
        super().__init__("ring", prefix=self.into(group) if group else ())

    @staticmethod
    def into(group):
        return ["sh", "-c", 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"', "sh", str(group)]

    def _config_text(self, limits):
        return super()._config_text(limits) + f"[control_groups]\n{self.keys}\n"

    def started(self):
        """The line of the log about what it has, of its last start."""
        harness.wait_until(lambda: "control_groups=" in self.log.read_text(), SECONDS)
        lines = [line for line in self.log.read_text().splitlines() if "control_groups=" in line]
        return lines[-1] if lines else ""

    def log_has(self, text):
        return harness.wait_until(lambda: text in self.log.read_text(), SECONDS)

    def doctor(self):
        run = subprocess.run([str(harness.built("sluicectl")), "doctor", "--json"], env=self.environment(),
                             capture_output=True, text=True, timeout=SECONDS, check=False)
        steps = json.loads(run.stdout)["steps"]
        return next((step for step in steps if step["step"] == "control groups"), {})


def processes(group):
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def groups_in(group):
    return sorted(path for path in group.iterdir() if path.is_dir()) if group.is_dir() else []


def worker_groups(top):
    return [worker for account in groups_in(top / "accounts") for worker in groups_in(account)]


def everyone_has_a_place(daemon, top):
    program = harness.Application(daemon, "stuck")
    report.check(program.wait_for("READY", SECONDS), "a program has a session in a daemon with control groups")
    report.check(processes(top) == [], "nobody is in the daemon's own group", processes(top))
    report.check(daemon.process.pid in processes(top / "broker"), "the broker is in its leaf")
    harness.wait_until(lambda: len(worker_groups(top)) == 1, SECONDS)
    groups = worker_groups(top)
    report.check(len(groups) == 1 and groups[0].name.startswith("worker-"), "there is one group, of that worker", groups)
    account = "uid-0" if os.getuid() == 0 else f"uid-{os.getuid()}"
    report.check(groups[0].parent.name == account, "it is in that of its account", groups[0].parent.name)
    report.check(processes(groups[0]) == daemon.workers(), "the worker is in it", processes(groups[0]))
    program.go_on()
    report.check(program.end(SECONDS) == 0, "its work is right")
    report.check(harness.wait_until(lambda: groups_in(top / "accounts") == [], SECONDS),
                 "its group and its account's are gone after the session", groups_in(top / "accounts"))


def what_a_worker_forks_ends_with_it(daemon, top):
    program = harness.Application(daemon, "hogs", "forks")
    # As many as pids.max or the machine lets it: a limit stands in hogs.c too.
    if not (top / "pids.max").exists():
        program.process.kill()
        program.end(SECONDS)
        print("SKIP control_groups: a fork bomb: this hierarchy has no controller pids (tests/vm has)")
        return
    program.wait_for("READY", SECONDS)
    report.check("error -11" in program.output, "a fork bomb is refused", program.output)
    program.go_on()
    report.check(program.end(SECONDS) == 0 and "launch=" in program.output, "its own program has an answer", program.output)
    report.check(harness.wait_until(lambda: groups_in(top / "accounts") == [], SECONDS), "it ends with its session")


def offspring_ends_with_its_worker(daemon, top):
    """What leaves the worker's process group, which a broker without control groups would not find."""
    program = harness.Application(daemon, "stuck")
    program.wait_for("READY", SECONDS)
    group = worker_groups(top)[0]
    left = subprocess.Popen([*Daemon.into(group), "sleep", "1000"], start_new_session=True)
    harness.wait_until(lambda: left.pid in processes(group), SECONDS)
    program.process.kill()
    program.end(SECONDS)
    report.check(harness.wait_until(lambda: left.poll() is not None, SECONDS) and left.returncode == -signal.SIGKILL,
                 "a process in a worker's group ends with it", left.returncode)
    report.check(harness.wait_until(lambda: not group.exists(), SECONDS), "and so does the group")


def a_killed_broker_leaves_groups(daemon, top):
    program = harness.Application(daemon, "stuck")
    program.wait_for("READY", SECONDS)
    group = worker_groups(top)[0]
    worker = processes(group)
    daemon.kill_broker()
    report.check(processes(group) == worker, "a killed broker leaves its worker in its group")
    daemon.start()
    report.check(daemon.log_has("of a daemon before this one"), "the next broker finds it")
    report.check(processes(group) == worker, "and leaves it there")
    other = harness.Application(daemon, "stuck")
    other.wait_for("READY", SECONDS)
    report.check(len(worker_groups(top)) == 2, "a new session has a group beside it", worker_groups(top))
    other.go_on()
    report.check(other.end(SECONDS) == 0, "and works")
    report.check(group.exists(), "whose end leaves the other's group")
    program.go_on()
    report.check(program.end(SECONDS) == 0 and "DONE" in program.output, "the first session goes on to its right end")
    report.check(harness.wait_until(lambda: groups_in(top / "accounts") == [], SECONDS),
                 "then its group is removed", worker_groups(top))


def in_a_group(place):
    top = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-", dir=place))
    left = []
    try:
        with Daemon(top, 'enabled = "auto"') as daemon:
            line = daemon.started()
            report.check(f"in {top}" in line, "the log names the group", line[line.find("control_groups="):])
            step = daemon.doctor()
            report.check(str(top) in step.get("found", ""), "so does sluicectl doctor", step)
            everyone_has_a_place(daemon, top)
            what_a_worker_forks_ends_with_it(daemon, top)
            offspring_ends_with_its_worker(daemon, top)
            a_killed_broker_leaves_groups(daemon, top)
        left = groups_in(top)
        report.check(left == [], "a daemon that stops leaves its group as it was", left)
    finally:
        for path in sorted(top.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
        top.rmdir()


def without():
    with Daemon() as daemon:
        line = daemon.started()
        report.check("none: " in line, "a daemon without a group of its own says so", line[line.find("control_groups="):])
        report.check(daemon.log_has("advice="), "and what to do")
        step = daemon.doctor()
        report.check("none: " in step.get("found", "") and step.get("advice"), "so does sluicectl doctor", step)
        program = harness.Application(daemon, "stuck")
        program.wait_for("READY", SECONDS)
        program.go_on()
        report.check(program.end(SECONDS) == 0, "its sessions work")
    with Daemon(keys='enabled = "off"') as daemon:
        report.check('enabled = \\"off\\"' in daemon.started(), "off is off", daemon.started())
    required = Daemon(keys='enabled = "required"')
    run = subprocess.run([str(harness.built("sluiced")), "--config", str(required.config)], capture_output=True,
                         text=True, timeout=SECONDS, check=False)
    required.clean()
    report.check(run.returncode == 1 and "required" in run.stderr and "root control group" in run.stderr,
                 "required without a group is no start", f"{run.returncode} {run.stderr}")


def main():
    place = hierarchy()
    if os.geteuid() != 0 or place is None or not os.access(place, os.W_OK):
        print("SKIP control_groups: this needs root, and a writable hierarchy of control groups of version 2")
        sys.exit(0)
    if (place / "cgroup.type").exists():
        print("SKIP control_groups: a daemon without a group: this test does not run in the root group")
    else:
        without()
    in_a_group(place)
    report.exit()


if __name__ == "__main__":
    main()
