#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Whole programs, natively and on the ring: hashcat's benchmark of its most used modes, and clpeak.

Usage: run.sh --programs [--rounds N] [--programs hashcat,clpeak] [--modes 0,100,...]

Prints a table of medians of interleaved rounds, with the least and the most of each, and the ratio of the ring to
native; native's own spread is what a ratio is to be held against. Of several devices the first is measured. Every run on the ring has a daemon of its own (sluicectl run --private). Numbers are reported, never
asserted: it fails only if a program does not run to its end.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness

MODES = "0,100,1000,1400,1700,500,1800,3200,5600,22000"
CLPEAK = ["--global-bandwidth", "--compute-sp", "--compute-intfast", "--transfer-bandwidth", "--kernel-latency"]


def run(kind, command, home, config):
    if kind == "ring":
        command = [str(harness.built("sluicectl")), "run", "--private", "--icd", str(harness.built("libsluice_icd.so")),
                   "--config", str(config), "--", *command]
    # hashcat keeps compiled kernels in its home: each kind its own.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    ran = subprocess.run(command, env={**environment, "HOME": str(home)}, capture_output=True, text=True,
                         errors="replace", timeout=600)
    if ran.returncode != 0:
        sys.exit(f"FAIL programs: {' '.join(command)} ended with {ran.returncode}: {ran.stdout}{ran.stderr}")
    return ran.stdout


def hashcat(kind, mode, home, config):
    """{row: (value, unit, more is better)}"""
    told = run(kind, ["hashcat", "-b", "-m", mode, "--machine-readable", "--backend-ignore-cuda", "--hwmon-disable",
                      "-D", "1,2", "-d", "1", "--force", "--quiet"], home, config)
    # Device, mode, clocks of processor and memory, milliseconds of a kernel, hashes per second.
    lines = [line.split(":") for line in told.splitlines() if re.match(r"\d+:\d+:", line)]
    if len(lines) != 1:
        sys.exit(f"FAIL programs: hashcat's benchmark of mode {mode} told of {len(lines)} devices: {told}")
    return {f"hashcat -m {mode}": (float(lines[0][-1]) / 1e6, "MH/s", True)}


def clpeak(kind, home, config):
    told = run(kind, ["clpeak", "-p", "0", "-d", "0", *CLPEAK], home, config)
    rows = {}
    title = unit = ""
    for line in told.splitlines():
        if heading := re.match(r"    (\S.*) \((\S+)\)\s*$", line):
            title, unit = heading[1], heading[2]
        elif value := re.match(r"      (\S.*?) *: ([\d.]+)\s*$", line):
            rows[f"clpeak, {title}, {value[1]}"] = (float(value[2]), unit, True)
        elif value := re.match(r"    (\S.*?) *: ([\d.]+) (us)\s*$", line):
            rows[f"clpeak, {value[1]}"] = (float(value[2]), value[3], False)
    if not rows:
        sys.exit(f"FAIL programs: no measurement of clpeak's was understood: {told}")
    return rows


def span(values):
    return f"{statistics.median(values):,.4g} ({min(values):,.4g} to {max(values):,.4g})"


def main():
    parser = argparse.ArgumentParser(prog="run.sh --programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", default="hashcat,clpeak")
    parser.add_argument("--modes", default=MODES, help="of hashcat; default: %(default)s")
    options = parser.parse_args()
    chosen = options.programs.split(",")
    if unknown := set(chosen) - {"hashcat", "clpeak"}:
        parser.error(f"--programs {' '.join(unknown)}: hashcat and clpeak are known")
    measures = [lambda *where, mode=mode: hashcat(where[0], mode, *where[1:]) for mode in options.modes.split(",")
                if "hashcat" in chosen]
    measures += [clpeak] if "clpeak" in chosen else []
    found = {}
    with tempfile.TemporaryDirectory(prefix="sluice-programs-") as directory:
        homes = {kind: pathlib.Path(directory) / kind for kind in ("native", "ring")}
        for home in homes.values():
            home.mkdir()
        config = pathlib.Path(directory) / "sluiced.toml"
        config.write_text('[worker]\nuser = "root"\n' if os.geteuid() == 0 else "")
        for number in range(options.rounds):
            for measure in measures:
                # Who is first in a round, so that a card that warms up meets both.
                for kind in ("native", "ring") if number % 2 == 0 else ("ring", "native"):
                    for row, (value, unit, more) in measure(kind, homes[kind], config).items():
                        found.setdefault((row, unit, more), {}).setdefault(kind, []).append(value)
                        print(f"{kind:6} {row}: {value:,.4g} {unit}", file=sys.stderr, flush=True)
    print("| row | native | ring | ring/native |\n| --- | ---: | ---: | ---: |")
    for (row, unit, more), values in found.items():
        if values.keys() != {"native", "ring"}:
            sys.exit(f"FAIL programs: {row} was measured {' and '.join(values)} only")
        ratio = statistics.median(values["ring"]) / statistics.median(values["native"])
        print(f"| {row}, {unit}{'' if more else ' (less is better)'} | {span(values['native'])} | {span(values['ring'])} "
              f"| {ratio:.3f} |")


main()
