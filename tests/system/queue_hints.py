#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A session whose queues are all of low priority gives way to others, and no longer than that: its worker's nice value
and, outside of control groups, its autogroup's, as the system tells them.

Usage: queue_hints.py ring|network
"""
import os
import pathlib
import re

import harness

KIND = harness.kind_argument()
report = harness.Report(f"queue_hints {KIND}")


def nice_of(pid):
    """(of the process, of its autogroup; None where the kernel has none)"""
    try:
        group = re.search(r"nice (-?\d+)", pathlib.Path(f"/proc/{pid}/autogroup").read_text())
    except OSError:
        group = None
    return os.getpriority(os.PRIO_PROCESS, pid), group and int(group[1])


def check(worker, state, wanted):
    """Other workers' changes of their autogroups may make this one wait a moment."""
    def good():
        process, group = nice_of(worker)
        # A worker has no capability, and stays as it is where nothing else lets it come back.
        return process in (wanted, 0) and group in (wanted, None)
    harness.wait_until(good, 20)
    report.check(good(), f"{state}: nice {wanted}", f"(process, autogroup): {nice_of(worker)}")


def main():
    with harness.Daemon(KIND) as daemon:
        application = harness.Application(daemon, "low_queue")
        for state, wanted in (("low", 10), ("medium", 0), ("again", 10)):
            if not report.check(application.wait_for(f"READY {state}", 60), f"a program with queues: {state}",
                                application.output):
                break
            check(daemon.workers()[0], state, wanted)
            application.go_on()
        report.check(application.end(60) == 0, "it ends", application.output)


main()
report.exit()
