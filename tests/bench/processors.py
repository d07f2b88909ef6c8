#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Loops of launch and clFinish where the processors are few: which side may use how many, and how many are used.

Usage: run.sh --processors [--quick] [--rounds N] [--seconds S]

Prints a table for a kernel of nothing, and one for a kernel of some milliseconds: time of one launch with its clFinish,
and processors used by the program, its worker and its daemon together, medians of interleaved rounds. Every run has a
daemon of its own (sluicectl run --private). Numbers are reported, never asserted: it fails only if something does not
run, or a program's result is wrong.
"""
import argparse
import itertools
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness

KERNELS = [("launch + clFinish", "iters=0"), ("a kernel of 1,000,000 steps", "iters=1000000")]
ALL = sorted(os.sched_getaffinity(0))
ONE = ALL[:1]
# Name, processors of the daemon and its workers (None: the driver in the program), and of the program.
CASES = [("native", None, ALL), ("ring", ALL, ALL), ("native on one processor", None, ONE),
         ("ring, both on one processor", ONE, ONE), ("ring, the daemon on one of its own", ALL[-1:], ALL[:-1]),
         ("ring, the program on one of its own", ALL[:-1], ALL[-1:])]


def on(processors):
    return ["taskset", "--cpu-list", ",".join(map(str, processors))]


def run(daemon, program, seconds, kernel, config):
    """What the program told, and the processor time of all that ran."""
    command = [*on(program), str(harness.built("tenants")), "1", str(seconds), kernel]
    if daemon is not None:
        command = [*on(daemon), str(harness.built("sluicectl")), "run", "--private", "--icd",
                   str(harness.built("libsluice_icd.so")), "--config", str(config), "--", *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode != 0:
        sys.exit(f"FAIL processors: {' '.join(command)}: {ran.stdout}{ran.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(ran.stdout.splitlines()[-1]), used


def measure(daemon, program, seconds, kernel, config):
    """Time of a launch, 99 of 100, and processors; what the start takes is in the short run as well."""
    _, start = run(daemon, program, 0.05, kernel, config)
    told, used = run(daemon, program, 0.05 + seconds, kernel, config)
    return told["p50_us"], told["p99_us"], max(0.0, used - start) / seconds


def main():
    parser = argparse.ArgumentParser(prog="run.sh --processors")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    rounds, seconds = (1, 0.5) if options.quick else (options.rounds, options.seconds)
    cases = [case for case in CASES if all(case[1:]) or case[1] is None]  # On one processor, no two of their own.
    found = {}
    with tempfile.TemporaryDirectory(prefix="sluice-processors-") as directory:
        config = pathlib.Path(directory) / "sluiced.toml"
        config.write_text('[worker]\nuser = "root"\n' if os.geteuid() == 0 else "")
        for _ in range(rounds):
            for kernel, (name, daemon, program) in itertools.product(KERNELS, cases):
                told = measure(daemon, program, seconds, kernel[1], config)
                found.setdefault((kernel, name), []).append(told)
    for kernel in KERNELS:
        print(f"{kernel[0]:40} {'p50 us':>8} {'p99 us':>8} {'processors':>11}")
        for name, *_ in cases:
            p50, p99, used = (statistics.median(column) for column in zip(*found[kernel, name]))
            print(f"{name:40} {p50:8.1f} {p99:8.1f} {used:11.2f}")


main()
