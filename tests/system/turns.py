#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Turns between sessions of one device, with turns = "on" also for a CPU: programs beside each other end with right
results, whatever happens to the broker or to one of the workers, and one that waits for somebody holds nobody up.

Usage: turns.py
"""
import json
import os
import signal
import subprocess

import harness

ON = 'max_sessions = 256\n[scheduling]\nturns = "on"'
OFF = 'max_sessions = 256\n[scheduling]\nturns = "off"'
# Seconds of programs that are to be seen taking turns: on a loaded machine that takes some.
LONG = 12
report = harness.Report("turns")


class Tenants:
    """tests/bench/tenants under a daemon: it checks its own results."""

    def __init__(self, daemon, count, seconds):
        self.process = subprocess.Popen([str(harness.built("tenants")), str(count), str(seconds)], env=daemon.environment(),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        """(exit code, what it measured or said)"""
        output, errors = self.process.communicate(timeout=120)
        return self.process.returncode, json.loads(output) if self.process.returncode == 0 else errors


def sessions(daemon):
    run = subprocess.run([str(harness.built("sluicectl")), "sessions", "--json", "--endpoint", f"unix:{daemon.admin_socket}"],
                         capture_output=True, text=True, timeout=30)
    if run.returncode != 0:
        return []
    return json.loads(run.stdout)["sessions"]


def see(daemon, count, wanted):
    """True once so many sessions have such a state of turns."""
    def seen():
        see.last = [entry["turns"] for entry in sessions(daemon)]
        return len([turns for turns in see.last if wanted(turns)]) >= count
    return harness.wait_until(seen, 20, 0.05)


def side_by_side():
    with harness.Daemon("ring", ON) as daemon:
        alone = Tenants(daemon, 1, 1)
        report.check(see(daemon, 1, lambda turns: turns["state"].startswith("off: ")), "a lone session has no turns", see.last)
        report.check(alone.end()[0] == 0, "a lone session works")
        both = Tenants(daemon, 3, LONG)
        report.check(see(daemon, 3, lambda turns: turns["had"] > 0), "three sessions take turns",
                     see.last)
        code, told = both.end()
        report.check(code == 0 and told["max_us"] < 2e6, "they end with right results, and none is kept waiting", told)
    with harness.Daemon("ring", OFF) as daemon:
        both = Tenants(daemon, 2, 2)
        report.check(see(daemon, 2, lambda turns: turns == {"state": "off: by the configuration", "cooperative": False,
                                                 "had": 0, "waited_us": 0}),
                     "none where they are off", see.last)
        report.check(both.end()[0] == 0, "they end there too")


def stuck():
    """Its queue cannot go on before its user event is set: it wants no turn, and gets one when it can go on."""
    with harness.Daemon("ring", ON) as daemon:
        waiting = harness.Application(daemon, "stuck")
        report.check(waiting.wait_for("READY", 60), "a program waits for its user event", waiting.output)
        beside = Tenants(daemon, 1, 2)
        report.check(see(daemon, 2, lambda turns: turns["state"] == "off: no two are at work"),
                     "it wants no turn meanwhile", see.last)
        report.check(beside.end()[0] == 0, "another works beside it")
        busy = Tenants(daemon, 2, LONG)
        report.check(see(daemon, 2, lambda turns: turns["had"] > 0), "two more take turns", see.last)
        waiting.go_on()
        report.check(waiting.end(20) == 0 and "DONE" in waiting.output, "it goes on beside them", waiting.output)
        report.check(busy.end()[0] == 0, "and they beside it")


def shared_resource():
    """A program that acquires what another releases, frame by frame, beside two that saturate the device."""
    with harness.Daemon("ring", ON) as daemon:
        busy = Tenants(daemon, 2, LONG)
        report.check(see(daemon, 2, lambda turns: turns["had"] > 0), "two sessions take turns", see.last)
        producer = harness.Application(daemon, "gl_frames", "30", "64", "64")
        report.check(producer.wait_for("ack ", 30), "a program makes frames", producer.output)
        words = dict(line.split() for line in producer.output.splitlines() if line.startswith(("frames ", "ack ")))
        consumer = harness.Application(daemon, "cl_frames", "30", words.get("frames", ""), words.get("ack", ""))
        code = consumer.end(60)
        report.check(code == 0, "another takes them in OpenCL, beside the two", f"{consumer.output}{consumer.errors}")
        code = producer.end(60)
        report.check(code == 0, "every frame is acknowledged", f"{producer.output}{producer.errors}")
        report.check(busy.end()[0] == 0, "the two end as well")


def broker_signal(number, name):
    with harness.Daemon("ring", ON) as daemon:
        tenants = Tenants(daemon, 3, LONG)
        report.check(see(daemon, 3, lambda turns: turns["had"] > 0), f"{name}: three sessions take turns", see.last)
        os.kill(daemon.process.pid, number)
        code, told = tenants.end()
        # Held back for good, they would have done nothing after it.
        report.check(code == 0 and told["max_us"] < 2e6, f"{name} of the broker: they go on without turns", told)
        if number == signal.SIGSTOP:
            os.kill(daemon.process.pid, signal.SIGCONT)
            report.check(Tenants(daemon, 2, 1).end()[0] == 0, "and the broker serves when it goes on")


def worker_dies():
    with harness.Daemon("ring", ON) as daemon:
        first = Tenants(daemon, 1, 20)
        harness.wait_until(daemon.workers, 20)
        victim = daemon.workers()[0]
        others = Tenants(daemon, 2, LONG)
        report.check(see(daemon, 3, lambda turns: turns["had"] > 0), "three sessions take turns", see.last)
        os.kill(victim, signal.SIGKILL)
        report.check(first.end()[0] != 0, "the killed worker's program is told")
        code, told = others.end()
        report.check(code == 0 and told["max_us"] < 2e6, "the others go on", told)


side_by_side()
stuck()
shared_resource()
broker_signal(signal.SIGKILL, "SIGKILL")
broker_signal(signal.SIGSTOP, "SIGSTOP")
worker_dies()
report.exit()
