#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Kernels that write where nothing is, or never end, and applications killed in the middle of one, beside tenants
whose every result is checked.

The others lose nothing. Who wrote wild is told and goes on with a new context in the same process. An endless kernel
ends with its application. Afterwards no process, descriptor or memory file is left, nor memory of an NVIDIA device.
Usage: failure_kernels.py ring|network [KILLS]
"""
import shutil
import subprocess
import sys

import harness

HANG_SECONDS = 120
NEIGHBOURS = 3
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
DEVICE_SLACK_MIB = 64  # Drivers keep some of what a process had for a moment.
CODES = (-36, -5, -2, -14, -9999)  # Of a command queue, resources, a lost device, its wait list; NVIDIA's own.

sys.argv = sys.argv[:2]
KIND = harness.kind_argument()
report = harness.Report(f"failure_kernels {KIND}")


def device_memory():
    """In use on NVIDIA's devices, in MiB; None without them."""
    if shutil.which("nvidia-smi") is None:
        return None
    asked = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                           capture_output=True, text=True, check=False)
    return sum(int(line) for line in asked.stdout.split()) if asked.returncode == 0 else None


class Neighbour:
    """An application that checks all it computes until it is told to end (programs/chaos.c)."""

    def __init__(self, daemon, seed):
        self.application = harness.Application(daemon, "chaos", str(seed))

    def rounds(self):
        self.application.wait_for("never said", 0)
        return self.application.output.count("ROUND")

    def goes_on(self):
        before = self.rounds()
        return harness.wait_until(lambda: self.rounds() > before, HANG_SECONDS, 0.05)


def check_wild(daemon, neighbours):
    attacker = harness.Application(daemon, "bad_kernel", "wild")
    code = attacker.end(HANG_SECONDS)
    finish = attacker.value("finish")
    report.check(finish in CODES, "who writes wild is told so", finish)
    report.check(code == 0 and attacker.value("fresh_right") == 1, "and goes on with a new context",
                 f"exit {code}: {attacker.output}{attacker.errors.decode()}")
    report.check(all(one.goes_on() for one in neighbours), "the others compute on beside a wild write")


def check_endless(daemon, neighbours):
    before = set(daemon.workers())
    attacker = harness.Application(daemon, "bad_kernel", "endless")
    if not report.check(attacker.wait_for("READY", HANG_SECONDS), "a kernel that never ends is under way"):
        attacker.end(0)
        return
    report.check(all(one.goes_on() for one in neighbours), "the others compute on beside an endless kernel")
    attacker.process.kill()
    attacker.end(1)
    ended = harness.wait_until(lambda: set(daemon.workers()) <= before, HANG_SECONDS)
    report.check(ended, "it ends with its application", f"{daemon.workers()}, before {before}")


def check_kills(daemon, neighbours):
    for _ in range(KILLS):
        attacker = harness.Application(daemon, "bad_kernel", "endless")
        ready = attacker.wait_for("READY", HANG_SECONDS)
        attacker.process.kill()
        attacker.end(1)
        if not ready:
            report.check(False, "each attacker begins", attacker.output)
            return
    ended = harness.wait_until(lambda: len(daemon.workers()) <= NEIGHBOURS, HANG_SECONDS)
    report.check(ended, f"{KILLS} applications killed in an endless kernel: none of their workers is left",
                 daemon.workers())
    report.check(all(one.goes_on() for one in neighbours), "the others compute on after them")


with harness.Daemon(KIND) as daemon:
    warm = harness.Application(daemon, "victim", "idle")
    warm.wait_for("READY", HANG_SECONDS)
    warm.end(HANG_SECONDS)
    harness.wait_until(lambda: not daemon.workers(), 5)
    before, memory = daemon.settled_resources(), device_memory()
    neighbours = [Neighbour(daemon, seed) for seed in range(1, NEIGHBOURS + 1)]
    if report.check(all(one.goes_on() for one in neighbours), "tenants compute"):
        check_wild(daemon, neighbours)
        check_endless(daemon, neighbours)
        check_kills(daemon, neighbours)
    for one in neighbours:
        code = one.application.end(HANG_SECONDS)
        report.check(code == 0 and "LOST" not in one.application.output, "a neighbour had every result, and lost nothing",
                     f"exit {code}: {one.application.output[-300:]}{one.application.errors.decode()}")
    harness.wait_until(lambda: not harness.grown(before, daemon.resources()), 20)
    more = harness.grown(before, daemon.resources())
    report.check(not more, "nothing is left", f"more than before: {more}" if more else before)
    if memory is None:
        print("SKIP failure_kernels: device memory afterwards: nvidia-smi shows none here")
    else:
        harness.wait_until(lambda: device_memory() <= memory + DEVICE_SLACK_MIB, 20)
        report.check(device_memory() <= memory + DEVICE_SLACK_MIB, "the device's memory is free again",
                     f"{device_memory()} MiB, before {memory}")
report.exit()
