#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Pools: sessions of one isolation domain in one worker, here on a CPU device, whose context they share. Each has right
results, its own text and its own end; none is leaked; one that harms the others harms nobody else.

Usage: pools.py [--quick]
"""
import json
import os
import signal
import subprocess
import sys
import time

import harness

QUICK = "--quick" in sys.argv[1:]
LIMITS = "max_sessions = 256\nmax_sessions_per_user = 128"
POOL = f"{LIMITS}\n[pool]\nenabled = true\ncpu_devices = true\nidle_seconds = 60"
OTHERS = '[[listener]]\ntenant = "other"\nmode = "0666"'
report = harness.Report("pools")


def sessions(daemon):
    run = subprocess.run([str(harness.built("sluicectl")), "sessions", "--json", "--endpoint", f"unix:{daemon.admin_socket}"],
                         capture_output=True, text=True, timeout=30)
    return json.loads(run.stdout)["sessions"] if run.returncode == 0 else []


def start(daemon, name, *arguments, **environment):
    return subprocess.Popen([str(harness.built(name)), *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, stdin=subprocess.PIPE, env=dict(daemon.environment(), **environment))


def ends(processes, seconds=120):
    """(worst exit code, what they said)"""
    told = [process.communicate(timeout=seconds) for process in processes]
    return max((abs(process.returncode) for process in processes), default=0), told


def pools_of(entries):
    return {entry["pool"]["id"] for entry in entries if entry["pool"]["id"]}


def side_by_side(daemon, count):
    members = [start(daemon, "tenants", 1, 3) for _ in range(count)]
    seen = harness.wait_until(lambda: len([one for one in sessions(daemon) if one["pool"]["id"]]) == count, 60, 0.1)
    entries = sessions(daemon)
    report.check(seen and len(pools_of(entries)) == 1 and len({one["worker_pid"] for one in entries}) == 1,
                 f"{count} programs are in one pool, one process", [one["pool"] for one in entries][:3])
    code, told = ends(members)
    report.check(code == 0, f"{count} programs in a pool end with right results", "" if code == 0 else told)
    gone = harness.wait_until(lambda: not sessions(daemon), 20, 0.05)
    report.check(gone and len(daemon.workers()) == 1, "their sessions end, and the pool stays for a while", sessions(daemon))


def own_workers(daemon):
    both = [start(daemon, "tenants", 1, 3, SLUICE_POOL="off"), start(daemon, "tenants", 1, 3)]
    seen = harness.wait_until(lambda: len(sessions(daemon)) == 2, 30, 0.05)
    reasons = sorted(one["pool"]["no_pool_because"] for one in sessions(daemon))
    report.check(seen and reasons[0] == "" and "refuses" in reasons[1], "one that refuses has a worker of its own", reasons)
    report.check(ends(both)[0] == 0, "both end with right results")


def device_types(daemon):
    run = subprocess.run([str(harness.built("sluicectl")), "devices", "--json"], env=daemon.environment(),
                         capture_output=True, text=True, timeout=60)
    return {device["type"] for platform in json.loads(run.stdout)["platforms"] for device in platform["devices"]}


def prints_apart(daemon):
    tags = [f"tag{number}" for number in range(4)]
    launches = 40
    code, told = ends([start(daemon, "printer", tag, launches) for tag in tags])
    right = [output.splitlines() == [f"{tag} {number}" for number in range(launches)]
             for tag, (output, errors) in zip(tags, told)]
    report.check(code == 0 and all(right), "each prints its own text, whole and in order",
                 "" if code == 0 and all(right) else [output[:300] + errors[-300:] for output, errors in told])


def killed(daemon):
    stay = [start(daemon, "tenants", 1, 5) for _ in range(2)]
    go = [start(daemon, "tenants", 1, 60) for _ in range(2)]
    harness.wait_until(lambda: len(sessions(daemon)) == 4, 30, 0.05)
    pool = pools_of(sessions(daemon))
    for process in go:
        # The program starts one process for its tenant.
        for pid in [*harness.descendants(process.pid), process.pid]:
            os.kill(pid, signal.SIGKILL)
    gone = harness.wait_until(lambda: len(sessions(daemon)) == 2, 10, 0.05)
    report.check(gone and pools_of(sessions(daemon)) == pool, "the sessions of killed programs end, the pool does not")
    ends(go)
    code, told = ends(stay)
    report.check(code == 0, "those beside them end with right results", "" if code == 0 else told)


def endless(daemon):
    """Its program is killed while its kernel runs: that ends the pool, and no other domain."""
    elsewhere = daemon.directory / "sluice-tenants/other/broker.sock"
    harness.wait_until(lambda: harness.takes_clients(elsewhere), 10)
    other = start(daemon, "tenants", 1, 12, SLUICE_ENDPOINT=f"unix:{elsewhere}")
    bad = start(daemon, "bad_kernel", "endless")
    bad.stdout.readline()
    # Its own kernel does not end either, so that nothing but the pool's end can be what clFinish reports.
    neighbour = start(daemon, "bad_kernel", "finish")
    def own():
        return [one for one in sessions(daemon) if one["tenant"] != "tenant:other"]
    harness.wait_until(lambda: len(pools_of(own())) == 1 and len(own()) == 2, 20, 0.05)
    before = pools_of(own())
    bad.kill()
    begin = time.monotonic()
    ended = harness.wait_until(lambda: not pools_of(sessions(daemon)) & before, 15, 0.05)
    report.check(ended, "a killed program's endless kernel ends its pool within the bound", f"{time.monotonic() - begin:.1f} s")
    code, told = ends([neighbour])
    report.check(code != 0, "a session beside it is told", told[0])
    ends([bad])
    report.check(ends([start(daemon, "vector_add")])[0] == 0, "a new program works, in a new pool")
    code, told = ends([other])
    report.check(code == 0, "another domain's goes on unharmed", "" if code == 0 else told)


def wild(daemon):
    elsewhere = daemon.directory / "sluice-tenants/other/broker.sock"
    other = start(daemon, "tenants", 1, 4, SLUICE_ENDPOINT=f"unix:{elsewhere}")
    bad = start(daemon, "bad_kernel", "wild")
    code, told = ends([bad])
    report.check("right 1" in told[0][0] or code == 0, "after a wild write a new context works", told[0])
    code, told = ends([other])
    report.check(code == 0, "another domain's session is unharmed", "" if code == 0 else told)


def churn(daemon, rounds):
    """Nothing of a session is left in the pool's process."""
    def one_round():
        members = [start(daemon, "vector_add"), start(daemon, "printer", "x", 3)]
        return ends(members)[0]

    def size():
        harness.wait_until(lambda: not sessions(daemon), 20, 0.05)
        worker = daemon.workers()[0]
        maps = len(open(f"/proc/{worker}/maps").readlines())
        threads = len(os.listdir(f"/proc/{worker}/task"))
        return worker, harness.resident_bytes(worker) / 2**20, len(harness.descriptors(worker)), maps, threads
    codes = [one_round() for _ in range(10)]
    before = size()
    codes += [one_round() for _ in range(rounds)]
    after = size()
    report.check(not any(codes), "every program of the churn ends well", [code for code in codes if code])
    # PoCL 3.1 keeps a reference to a buffer now and then, and with it the heap, rings and descriptors of its session.
    held = daemon.log.read_text().count("the driver keeps memory of a session that has ended")
    grown = [now - then for now, then in zip(after[1:], before[1:])]
    most = (8 + rounds * 0.02 + 2 * held, 2 + 16 * held, 12 + 24 * held, 2 + held)
    report.check(after[0] == before[0] and all(one <= bound for one, bound in zip(grown, most)) and held <= 1 + rounds / 25,
                 f"{rounds} rounds leave nothing behind (pid, MiB, descriptors, mappings, threads)",
                 f"{before} -> {after}; held by the driver: {held}")


def main():
    with harness.Daemon("ring", f"{POOL}\n{OTHERS}") as daemon:
        side_by_side(daemon, 2)
        if not QUICK:
            side_by_side(daemon, 16)
        own_workers(daemon)
        prints_apart(daemon)
        killed(daemon)
        churn(daemon, 10 if QUICK else 100)
        wild(daemon)
        endless(daemon)
    with harness.Daemon("ring", f"{LIMITS}\n[pool]\nenabled = true") as daemon:
        if device_types(daemon) != {"CPU"}:
            print("SKIP pools: no processors unless the policy says so: there are other devices")
            report.exit()
        member = start(daemon, "tenants", 1, 2)
        harness.wait_until(lambda: sessions(daemon), 20, 0.05)
        reasons = [one["pool"]["no_pool_because"] for one in sessions(daemon)]
        report.check(bool(reasons) and all("devices" in one for one in reasons), "no processors unless the policy says so", reasons)
        report.check(ends([member])[0] == 0, "it ends with right results")
    report.exit()


main()
