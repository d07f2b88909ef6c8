#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What sharing costs by each way, beside the same work without the extension, in interleaved rounds of one run.

sharing.py [--quick] [--rounds N] [--platform TEXT] [--record [FILE]]

Prints the table; --record writes it, with the machine's facts, to results/sharing-cpu.md or results/sharing-gpu.md.
Numbers are reported, never asserted: it fails only when something does not run. Python 3 standard library only.
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

import bench
import harness  # bench knows where it is.

# What is measured, in columns: a name, the transport, and the one way that objects may go.
COLUMNS = {
    "without": ("native", None),
    "import": ("ring", "import"),
    "staging": ("ring", "staging"),
    "shadow": ("ring", "shadow"),
    "network": ("network", "staging"),
}
SIZES = {"64k": ("64 KiB", 1 << 16), "1m": ("1 MiB", 1 << 20), "16m": ("16 MiB", 1 << 24)}

# Label; the row with the extension; what to divide by: a row of the column "without".
ROWS = [
    ("texture, acquire", "texture_acquire", "texture_in_without"),
    ("texture, release", "texture_release", "texture_out_without"),
    ("buffer, acquire", "buffer_acquire", "buffer_in_without"),
    ("buffer, release", "buffer_release", "buffer_out_without"),
]


def measure(daemon, column, options):
    """The rows of one round of one column, and where they were measured."""
    kind, way = COLUMNS[column]
    env = dict(os.environ if kind == "native" else daemon.environment(), SLUICE_TEST_KIND=kind)
    if kind == "ring":
        env["SLUICE_ENDPOINT"] = f"unix:{daemon.socket}"
    if way:
        env["SLUICE_SHARING"] = way
    if options.platform:
        env["SLUICE_TEST_PLATFORM"] = options.platform
    where = bench.run_json([harness.built("gl_bench"), *(["--quick"] if options.quick else [])], env)
    return where.pop("rows"), where


def run_program(daemon, name, *arguments):
    env = dict(daemon.environment(), SLUICE_TEST_KIND="ring", SLUICE_ENDPOINT=f"unix:{daemon.socket}")
    return subprocess.Popen([str(harness.built(name)), *map(str, arguments)], env=env, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def number_in(process, pattern):
    output, errors = process.communicate(timeout=600)
    found = re.search(pattern, output + errors)  # A producer may leave its stdout to the consumer.
    if process.returncode != 0 or found is None:
        sys.exit(f"FAIL sharing: {process.args[0]} ended with {process.returncode}: {output}{errors}")
    return float(found.group(1))


def pair(daemon, producer, consumer, frames):
    """Frames per second of a pair of programs at 1920x1080, every pixel verified by the consumer."""
    first = run_program(daemon, producer[0], *producer[1:], frames, 1920, 1080)
    capabilities = [first.stdout.readline().split()[-1] for _ in range(2)]
    second = run_program(daemon, consumer[0], *consumer[1:], frames, *capabilities)
    number_in(second, r"verified (\d+) frames")
    return number_in(first, r"([\d.]+) per second")


def measure_resources(daemon, options):
    turns = 200 if options.quick else 3000
    frames = 10 if options.quick else 100
    return {
        "create + destroy (us)": number_in(run_program(daemon, "resource_frames", "time-lives", turns // 5),
                                           r"take ([\d.]+) us"),
        "acquire + release (us)": number_in(run_program(daemon, "resource_frames", "time-turns", turns),
                                            r"take ([\d.]+) us"),
        "frames/s at 1920x1080, C to C, every pixel written and verified by the CPU":
            pair(daemon, ("resource_frames", "produce"), ("resource_frames", "consume"), frames),
        "frames/s at 1920x1080, OpenGL to OpenCL, every pixel verified by a kernel":
            pair(daemon, ("gl_frames",), ("cl_frames",), frames),
    }


def table_of(size, medians):
    label, size_bytes = SIZES[size]
    shown = [column for column in COLUMNS if column != "without"]

    def without(row):
        return medians["without"][f"{row}_{size}_us"]

    lines = [f"| {label} | without the extension (us) | " + " | ".join(f"{c} (us) | to without | to memcpy | GB/s"
                                                                       for c in shown) + " |",
             "| --- | ---: |" + " ---: | ---: | ---: | ---: |" * len(shown)]
    for name, row, base in ROWS:
        cells = [name, bench.number(without(base))]
        for column in shown:
            value = medians[column].get(f"{row}_{size}_us")
            cells += ["", "", "", ""] if value is None else [
                bench.number(value), f"{value / without(base):.2f}", f"{value / without('memcpy'):.2f}",
                bench.number(size_bytes / value / 1e3)]
        lines.append("| " + " | ".join(cells) + " |")
    names = {"memcpy": "memcpy", "glReadPixels": "read_pixels", "glGetTexImage": "get_tex_image",
             "a texture in by glGetTexImage and clEnqueueWriteImage": "texture_in_without_by_get"}
    return lines + ["", f"Of {label}: " + ", ".join(f"{name} {bench.number(without(row))} us"
                                                  for name, row in names.items()) + ".", ""]


def table(medians, resources):
    without = medians["without"]
    framed = [column for column in COLUMNS if column != "import"]
    lines = [line for size in SIZES for line in table_of(size, medians)]
    lines += ["A buffer that is imported is gralloc's: nothing of OpenGL's is.", "",
              "| frames/s at 1920x1080, rendered, inverted by a kernel | " + " | ".join(framed) + " |",
              "| --- |" + " ---: |" * len(framed)]
    rates = {column: medians[column].get("frames_per_s", without["frames_without_per_s"]) for column in framed}
    lines.append("| rate | " + " | ".join(bench.number(rates[column]) for column in framed) + " |")
    lines.append("| to without | " + " | ".join(f"{rates[c] / rates['without']:.2f}" for c in framed) + " |")
    lines += ["", "| daemon-owned resources, through the broker | |", "| --- | ---: |"]
    lines += [f"| {label} | {bench.number(value)} |" for label, value in resources.items()]
    return "\n".join(lines) + "\n"


def facts(where, options):
    first = where["staging"]
    return (f"OpenCL on {first['device']} ({first['type']}), driver {first['driver']}; OpenGL on {first['renderer']}; "
            f"{bench.processor()}, {os.cpu_count()} processors, Linux {platform.release()}; commit {bench.commit()}, "
            f"{datetime.date.today().isoformat()}, load {options.load:.1f} at the start; medians of {options.rounds} "
            f"interleaved rounds{' (quick: a smoke test, not a measurement)' if options.quick else ''}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smoke test: one round, few repetitions")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--platform", default="", help="text in the real platform's name")
    parser.add_argument("--record", type=pathlib.Path, nargs="?", const=bench.DEFAULT_RECORD, metavar="FILE")
    options = parser.parse_args()
    options.load = os.getloadavg()[0]
    options.rounds = options.rounds or (1 if options.quick else 3)
    samples = {column: {} for column in COLUMNS}
    resources = {}
    where = {}
    with harness.Daemon("network") as daemon:  # One daemon serves both transports.
        for number in range(options.rounds):
            for column in COLUMNS:
                rows, where[column] = measure(daemon, column, options)
                for name, value in rows.items():
                    samples[column].setdefault(name, []).append(value)
            for name, value in measure_resources(daemon, options).items():
                resources.setdefault(name, []).append(value)
            print(f"round {number + 1} of {options.rounds} done", file=sys.stderr, flush=True)
    medians = {column: {name: statistics.median(values) for name, values in rows.items()}
               for column, rows in samples.items()}
    text = facts(where, options) + "\n\n" + table(medians, {name: statistics.median(values)
                                                            for name, values in resources.items()})
    print(text)
    if options.record:
        kind = where["staging"]["type"]
        path = (options.record if options.record != bench.DEFAULT_RECORD
                else pathlib.Path(__file__).resolve().parent / "results" / f"sharing-{kind}.md")
        path.write_text(f"<!-- Written by tests/bench/run.sh --sharing --record: do not edit. -->\n{text}")
        print(f"recorded in {path}")


if __name__ == "__main__":
    main()
