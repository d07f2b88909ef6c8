#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Programs beside each other on one device: each natively, in sessions of their own without turns, with turns, and in
one pool.

Usage: run.sh --tenants [--quick] [--rounds N] [--seconds S]

Prints a table: launches per second in sum and how long one takes, medians of interleaved rounds. Every run has a
daemon of its own (sluicectl run --private). Numbers are reported, never asserted: it fails only if something does not
run, or a program's result is wrong.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness

KINDS = ("native", "ring without turns", "ring with turns", "ring in a pool")
# Beside 2 and more the sum of one alone is the measure. 50 us: of an H200; the flood lasts 20 ms on any device.
LIGHT = [([str(tenants)], f"{tenants} light") for tenants in (1, 2, 4, 8)]
OTHERS = [(["1", "iters=10000"], "1 of a longer kernel"), (["4", "iters=10000"], "4 of a longer kernel"),
          (["8", "pause_us=2000"], "7 light, 1 with a launch every 2 ms"),
          (["2", "flood_ms=20"], "2 light beside a flood of 20 ms kernels")]


def measure(kind, arguments, seconds, directory):
    command = [str(harness.built("tenants")), arguments[0], str(seconds), *arguments[1:]]
    if kind != "native":
        turns = "on" if kind == "ring with turns" else "off"
        pool = "[pool]\nenabled = true\ncpu_devices = true\n" if kind == "ring in a pool" else ""
        config = directory / f"{kind.replace(' ', '-')}.toml"
        worker = '[worker]\nuser = "root"\n' if os.geteuid() == 0 else ""
        config.write_text(f'[scheduling]\nturns = "{turns}"\n{worker}{pool}')
        command = [str(harness.built("sluicectl")), "run", "--private", "--icd", str(harness.built("libsluice_icd.so")),
                   "--config", str(config), "--", *command]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        sys.exit(f"FAIL tenants: {kind}, {' '.join(arguments)}: {run.stdout}{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def row(name, runs):
    def of(key):
        return statistics.median(one[key] for one in runs)
    return (f"{name:42} {of('per_s'):9,.0f} {of('fairness'):6.2f} {of('p50_us'):9.1f} {of('p99_us'):9.1f} "
            f"{of('first_p99_us'):9.1f} {of('flood_per_s'):8.2f}")


def main():
    parser = argparse.ArgumentParser(prog="run.sh --tenants")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    cases = LIGHT[:2] if options.quick else LIGHT + OTHERS
    rounds, seconds = (1, 0.5) if options.quick else (options.rounds, options.seconds)
    found = {}
    with tempfile.TemporaryDirectory(prefix="sluice-tenants-") as directory:
        for _ in range(rounds):
            for arguments, name in cases:
                for kind in KINDS:
                    told = measure(kind, arguments, seconds, pathlib.Path(directory))
                    found.setdefault((name, kind), []).append(told)
    print(f"{'':42} {'launches':>9} {'least/':>6} {'':>9} {'':>9} {'first':>9} {'flood':>8}")
    print(f"{'':42} {'per s':>9} {'most':>6} {'p50 us':>9} {'p99 us':>9} {'p99 us':>9} {'per s':>8}")
    for arguments, name in cases:
        for kind in KINDS:
            print(row(f"{name}: {kind}" if kind == KINDS[0] else f"    {kind}", found[name, kind]))


main()
