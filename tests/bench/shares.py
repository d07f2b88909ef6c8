#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What tenants get of one device beside each other, without and with shares.

Usage: run.sh --shares [--quick] [--seconds S] [--only TEXT] [--kinds off,auto,on]

First four tenants with shares of 10, 20, 30 and 40, with light work (launch and wait), heavy work (kernels of 1 to 20
ms, four queued) and both. A tenant's part is its launches per second over what it reaches alone, of the sum of all
four; below it stands what the daemon has charged each. Then a tenant with light work beside others that flood the
device, each of the same share, and beside one of eight sessions: launches per second, and the part of its fair rate
(alone over the number of tenants). Last a tenant that launches every 10 ms, beside floods, as any other and as an
interactive one (interactive_percent): how long a launch takes. Numbers are reported, never asserted: it fails only if
something does not run. The rates alone are measured first, so a machine whose load changes meanwhile shows parts that
nobody got.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness

SHARES = (10, 20, 30, 40)
QUEUED = 4     # Of heavy work.
FLOOD = 32     # Of a flood's light kernels.
WARM = 1


class Daemon(harness.Daemon):
    """With so many listeners, of those shares."""

    def __init__(self, mode, shares, interactive_percent=0):
        self.mode, self.shares, self.interactive = mode, shares, interactive_percent
        super().__init__("ring", "max_sessions = 256\nmax_connections = 512")

    def _config_text(self, limits):
        listeners = "".join(f'[[listener]]\ntenant = "t{i}"\nmode = "0666"\nshare = {share}\n'
                            f"interactive_percent = {0 if i else self.interactive}\n"
                            for i, share in enumerate(self.shares))
        return super()._config_text(limits) + f'[scheduling]\nshares = "{self.mode}"\n{listeners}'

    def start_load(self, tenant, kernels, depth, seconds, every_ms=0):
        socket = self.directory / f"sluice-tenants/t{tenant}/broker.sock"
        harness.wait_until(lambda: harness.takes_clients(socket), 10)
        env = dict(self.environment(), SLUICE_ENDPOINT=f"unix:{socket}")
        command = [str(harness.built("share_load")), "run", ",".join(map(str, kernels)), str(depth), str(WARM), str(seconds),
                   str(every_ms)]
        return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def charged(daemon, tenants):
    """What the daemon has charged each of them so far, in us."""
    command = [str(harness.built("sluicectl")), "sessions", "--json", "--endpoint", f"unix:{daemon.admin_socket}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    of = {}
    for entry in json.loads(run.stdout)["sessions"]:
        of[entry["tenant"]] = of.get(entry["tenant"], 0) + entry["shares"]["device_us"]
    return [of.get(f"tenant:t{i}", 0) for i in range(tenants)]


def measure(mode, shares, loads, seconds, interactive_percent=0, every_ms=0):
    """loads: (tenant, kernels, depth) of each process. What each of them prints, and what each tenant was charged
    meanwhile, in us. The first tenant's may be interactive, the first process launch every so many ms."""
    with Daemon(mode, shares, interactive_percent) as daemon:
        running = [daemon.start_load(*load, seconds, 0 if i else every_ms) for i, load in enumerate(loads)]
        ready = [process.stdout.readline() for process in running]
        # To all at once: communicate() waits for one.
        for process in running:
            process.stdin.write(f"{time.time() + 0.2:.3f}\n")
            process.stdin.flush()
        time.sleep(0.2 + WARM)
        before = charged(daemon, len(shares))
        time.sleep(seconds)
        after = charged(daemon, len(shares))
        told = [process.communicate(timeout=120 + seconds)[0] for process in running]
        if ready != ["READY\n"] * len(loads) or any(process.returncode != 0 for process in running):
            sys.exit(f"FAIL shares: {mode}, {loads}: {daemon.log.read_text()[-2000:]}")
    return [json.loads(text) for text in told], [b - a for a, b in zip(before, after)]


class Loads:
    """Kernels by their length, and what each load reaches alone."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.iterations = {0: 1}
        self.rates = {}

    def kernel(self, ms):
        if ms not in self.iterations:
            with Daemon("off", ()) as daemon:
                run = subprocess.run([str(harness.built("share_load")), "calibrate", str(ms)], env=daemon.environment(),
                                     capture_output=True, text=True, timeout=120, check=True)
            self.iterations[ms] = json.loads(run.stdout)["iterations"]
        return self.iterations[ms]

    def load(self, tenant, lengths_ms, depth):
        return tenant, tuple(self.kernel(ms) for ms in lengths_ms), depth

    def alone(self, load):
        if load[1:] not in self.rates:
            self.rates[load[1:]] = measure("off", (100,), [(0, *load[1:])], self.seconds)[0][0]["per_s"]
        return self.rates[load[1:]]


CASES = {
    "light": [((0,), 0)] * 4,
    "heavy": [((20,), QUEUED), ((1,), QUEUED), ((5,), QUEUED), ((20,), QUEUED)],
    "mixed": [((20,), QUEUED), ((0,), 0), ((1, 20), QUEUED), ((0,), 0)],
    "mixed the other way": [((0,), 0), ((20,), QUEUED), ((0,), 0), ((5,), QUEUED)],
}


def row(name, parts, more):
    percent = [100 * part / sum(parts) for part in parts]
    worst = max(abs(got - share) for got, share in zip(percent, SHARES))
    print(f"{name:44} {' '.join(f'{got:5.1f}' for got in percent)}   {worst:5.1f} {more}", flush=True)


def held_shares(name, kinds, loads):
    chosen = [loads.load(i, *kernels) for i, kernels in enumerate(CASES[name])]
    alone = [loads.alone(load) for load in chosen]
    for mode in kinds:
        told, device_us = measure(mode, SHARES, chosen, loads.seconds)
        parts = [one["per_s"] / rate for one, rate in zip(told, alone)]
        row(f"{name}, shares {mode}", parts, f"{sum(parts):6.2f}")
        if sum(device_us) > 0:
            row("    as charged", device_us, "")


def victims(name, kinds, loads, others, sessions_each):
    """others: (lengths, depth) of what each of the other tenants does, in so many sessions."""
    victim = loads.load(0, (0,), 0)
    alone = loads.alone(victim)
    chosen = [victim] + [loads.load(i + 1, *kernels) for i, kernels in enumerate(others) for _ in range(sessions_each)]
    fair = alone / (len(others) + 1)
    for mode in kinds:
        told, _ = measure(mode, (100,) * (len(others) + 1), chosen, loads.seconds)
        print(f"{name + ', shares ' + mode:44} {alone:9,.0f} {told[0]['per_s']:9,.0f} {told[0]['per_s'] / fair:6.2f} "
              f"{told[0]['longest_us'] / 1e3:10.1f} {sum(one['per_s'] for one in told[1:]):11,.1f}", flush=True)


def rare(name, kinds, loads, others):
    """The first tenant launches every 10 ms. others: as those of victims()."""
    first = loads.load(0, (0,), 0)
    chosen = [first] + [loads.load(i + 1, *kernels) for i, kernels in enumerate(others)]
    told, _ = measure("off", (100,), [first], loads.seconds, every_ms=10)
    told[0]["name"] = "alone"
    rows = [told[0]]
    for mode, percent in [(mode, 0) for mode in kinds] + [("auto", 30)]:
        told, _ = measure(mode, (100,) * len(chosen), chosen, loads.seconds, percent, every_ms=10)
        rows.append(dict(told[0], name=f"{name}, shares {mode}" + (f", interactive {percent}%" if percent else ""),
                         others=sum(one["per_s"] for one in told[1:])))
    for one in rows:
        print(f"{one['name']:56} {one['p50_us']:9,.0f} {one['p99_us']:9,.0f} {one['longest_us']:10,.0f} "
              f"{one.get('others', 0):11,.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="run.sh --shares")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default="off,auto")
    options = parser.parse_args()
    os.environ.setdefault("SLUICE_TEST_KIND", "ring")
    loads = Loads(0.5 if options.quick else options.seconds)
    kinds = options.kinds.split(",")
    cases = [name for name in (["mixed"] if options.quick else CASES) if options.only in name]
    if cases:
        wanted = " ".join(f"{share:5}" for share in SHARES)
        print(f"{'part of the device in per cent, where it is':44} {wanted}   worst    sum", flush=True)
    for name in cases:
        held_shares(name, kinds, loads)
    beside = [(f"beside {n} floods of {what}", [kernels] * n, 1) for n in ((1,) if options.quick else (1, 3, 8))
              for what, kernels in (("light kernels", ((0,), FLOOD)), ("5 ms kernels", ((5,), QUEUED)))]
    beside += [] if options.quick else [("beside 1 tenant of 8 sessions", [((0,), FLOOD)], 8)]
    beside = [case for case in beside if options.only in case[0]]
    if beside:
        print(f"{'a light tenant, launches per s':44} {'alone':>9} {'got':>9} {'of fair':>6} {'longest ms':>10} "
              f"{'the others':>11}", flush=True)
    for name, others, sessions in beside:
        victims(name, kinds, loads, others, sessions)
    floods = [(f"every 10 ms beside 3 floods of {what}", [kernels] * 3)
              for what, kernels in (("light kernels", ((0,), FLOOD)), ("1 ms kernels", ((1,), QUEUED)),
                                    ("20 ms kernels", ((20,), QUEUED)))]
    floods = [case for case in floods if options.only in case[0]][:1 if options.quick else None]
    if floods:
        print(f"{'a launch every 10 ms, us':56} {'p50':>9} {'p99':>9} {'longest':>10} {'the others':>11}", flush=True)
    for name, others in floods:
        rare(name, kinds, loads, others)


main()
