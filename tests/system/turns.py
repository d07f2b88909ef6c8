#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Turns between sessions of one device, with turns = "on" also for a CPU: programs beside each other end with right
results, whatever happens to the broker or to one of the workers, and one that waits for somebody holds nobody up.
With `shares`: the same where it is two accounts of different shares that take turns, for their shares' sake.

Usage: turns.py [shares]
"""
import json
import os
import signal
import subprocess
import sys

import harness

SHARES = sys.argv[1:] == ["shares"]
if sys.argv[1:] and not SHARES:
    sys.exit(__doc__)
LIMITS = "max_sessions = 256"
OTHER = 'turns = "off"\n[[listener]]\ntenant = "other"\nmode = "0666"\nshare = 300'
TURNS_ON, TURNS_OFF = 'turns = "on"\nshares = "off"', 'turns = "off"'
ON = f'{LIMITS}\n[scheduling]\n{OTHER if SHARES else TURNS_ON}'
OFF = f'{LIMITS}\n[scheduling]\nshares = "off"\n{OTHER if SHARES else TURNS_OFF}'
# Seconds of programs that are to be seen taking turns: on a loaded machine that takes some.
LONG = 12
report = harness.Report("turns for shares" if SHARES else "turns")


class Other:
    """The environment of another account's programs, where it is accounts that take turns."""

    def __init__(self, daemon):
        self.daemon = daemon

    def environment(self):
        socket = self.daemon.directory / "sluice-tenants/other/broker.sock"
        harness.wait_until(lambda: harness.takes_clients(socket), 10)
        return dict(self.daemon.environment(), SLUICE_ENDPOINT=f"unix:{socket}")


class Tenants:
    """tests/bench/tenants under a daemon: it checks its own results. One is of the user's account, the others of another
    where it is accounts that take turns."""

    def __init__(self, daemon, count, seconds):
        split = [(daemon, 1), (Other(daemon), count - 1)] if SHARES and count > 1 else [(daemon, count)]
        self.processes = [subprocess.Popen([str(harness.built("tenants")), str(number), str(seconds)], text=True,
                                           env=of.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                          for of, number in split]

    def end(self):
        """(exit code, what it measured or said)"""
        told = [process.communicate(timeout=120) for process in self.processes]
        code = max((process.returncode for process in self.processes), key=abs)
        if code != 0:
            return code, "".join(errors for output, errors in told)
        return code, max((json.loads(output) for output, errors in told), key=lambda one: one["max_us"])


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


def see_shares(daemon, wanted):
    """True once every session's state of shares is so."""
    def seen():
        see_shares.last = [entry["shares"] for entry in sessions(daemon)]
        return see_shares.last and all(wanted(shares) for shares in see_shares.last)
    return harness.wait_until(seen, 20, 0.02)


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
        report.check(see_shares(daemon, lambda shares: shares == {"state": "off: by the configuration", "device_us": 0}),
                     "nor shares", see_shares.last)
        report.check(both.end()[0] == 0, "they end there too")


def accounts():
    """The sessions of one account share nothing out; beside another's they pay for their time."""
    with harness.Daemon("ring", ON) as daemon:
        one = [Tenants(daemon, 1, 4), Tenants(daemon, 1, 4)]
        report.check(see(daemon, 2, lambda turns: turns["state"] == "off: by the configuration") and
                     see_shares(daemon, lambda shares: shares["state"].startswith("off: no two accounts")),
                     "two sessions of one account have no shares", see_shares.last)
        report.check([tenants.end()[0] for tenants in one] == [0, 0], "they end")
        two = Tenants(daemon, 2, LONG)
        report.check(see_shares(daemon, lambda shares: shares["state"] == "on" and shares["device_us"] > 0),
                     "two accounts have, and are charged", see_shares.last)
        command = [str(harness.built("sluicectl")), "sessions", "--endpoint", f"unix:{daemon.admin_socket}"]
        text = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
        report.check("300 (on, had " in text and "100 (on, had " in text, "sluicectl shows it", text)
        def charged():
            return {entry["share"]: entry["shares"]["device_us"] for entry in sessions(daemon)}
        before = charged()
        harness.wait_until(lambda: sum(charged().values()) > sum(before.values()) + 3e6, LONG - 2, 0.1)
        few, most = ((charged().get(share, 0) - before.get(share, 0)) / 1e6 for share in (100, 300))
        # Each waits for its own launches: on a loaded machine it does not want the device at all times.
        report.check(few + most > 3 and 0.65 < most / (few + most) < 0.78, "three quarters and one, as their shares are",
                     f"{most:.2f} and {few:.2f} s")
        code, told = two.end()
        report.check(code == 0 and told["max_us"] < 2e6, "none of them is kept waiting", told)


def stuck():
    """Its queue cannot go on before its user event is set: it wants no turn, and gets one when it can go on."""
    with harness.Daemon("ring", ON) as daemon:
        waiting = harness.Application(daemon, "stuck")
        report.check(waiting.wait_for("READY", 60), "a program waits for its user event", waiting.output)
        beside = Tenants(daemon, 1, 2)
        idle = "off: by the configuration" if SHARES else "off: no two are at work"
        report.check(see(daemon, 2, lambda turns: turns["state"] == idle), "it wants no turn meanwhile", see.last)
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
        consumer = harness.Application(Other(daemon) if SHARES else daemon, "cl_frames", "30", words.get("frames", ""), words.get("ack", ""))
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
if SHARES:
    accounts()
stuck()
shared_resource()
broker_signal(signal.SIGKILL, "SIGKILL")
broker_signal(signal.SIGSTOP, "SIGSTOP")
worker_dies()
report.exit()
