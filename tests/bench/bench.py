#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Runs sluice_bench natively, over the ring and over the loopback network in interleaved rounds, takes the
median of each row, judges each against its budget and writes a Markdown table and JSON.

Usage: see run.sh. Python 3 standard library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness  # noqa: E402

KINDS = ("native", "ring", "network")
# What a clock tick and a busy neighbour move a call of some nanoseconds by.
CALL_NOISE_NS = 20


# --- budgets ---------------------------------------------------------------------------------------------
# Each returns (allowed value as text, whether the measured one is within it).


def at_most(limit, unit=""):
    return lambda value, native, row: (f"<= {number(limit)}{unit}", value <= limit)


def native_plus(extra):
    return lambda value, native, row: (f"<= native + {extra}", value <= native + extra)


def launch_budget(value, native, row):
    return "<= 1 and <= native", value <= min(1.0, native)


def call_budget(value, native, row):
    """Native means native up to clock noise."""
    return f"native (+10 % + {CALL_NOISE_NS} ns)", value <= native * 1.1 + CALL_NOISE_NS


def bandwidth(of_gpu):
    """At least 0.9 of native on a CPU device; on a GPU `of_gpu` times native."""
    def judge(value, native, row):
        factor = of_gpu if row["type"] == "gpu" else 0.9
        return f">= {factor} x native", value >= factor * native
    return judge


def on_cpu(judge):
    """Without a budget on a GPU."""
    return lambda value, native, row: judge(value, native, row) if row["type"] == "cpu" else None


def beats(published, text):
    """Better than what PoCL-Remote measured over loopback (issue 2, Speed)."""
    return lambda value, native, row: (f"beat PoCL-Remote: {text}", published(value))


# name -> (what a reader calls it, ring budget, network budget); None: reported without a budget.
ROWS = {
    "launch_host_us": ("clEnqueueNDRangeKernel, host time, amortised over 1000 (us)", launch_budget, None),
    "launch_finish_us": ("clEnqueueNDRangeKernel + clFinish (us)", native_plus(6),
                         beats(lambda v: v < 134, "< 134")),
    "marker_wait_us": ("marker + clWaitForEvents (us)", None, None),
    "write_4b_us": ("blocking 4-byte write (us)", native_plus(6), None),
    "read_4b_us": ("blocking 4-byte read (us)", native_plus(6), None),
    "write_kernel_read_4b_us": ("write, kernel, read of 4 bytes (us)", None, None),
    "set_arg_value_ns": ("clSetKernelArg, a number (ns)", call_budget, None),
    "set_arg_buffer_ns": ("clSetKernelArg, a buffer (ns)", call_budget, None),
    "retain_release_ns": ("clRetainMemObject + clReleaseMemObject (ns)", call_budget, None),
    "get_mem_info_ns": ("clGetMemObjectInfo (ns)", call_budget, None),
    "get_device_info_ns": ("clGetDeviceInfo (ns)", call_budget, None),
    "get_kernel_work_group_info_ns": ("clGetKernelWorkGroupInfo (ns)", call_budget, None),
    "launches_per_s": ("pipelined empty launches per second", None, beats(lambda v: v > 4400, "> 4400")),
    "launches_local_per_s": ("the same with a local size", None, None),
    "writes_4kib_per_s": ("4 KiB writes per second, pipelined", None, None),
    "create_write_release_per_s": ("create + write + release per second", None, None),
    "create_release_per_s": ("create + release per second", None, None),
    "event_chain_1000_us": ("chain of 1000 dependent events (us)", None, None),
    "event_chain_in_order_1000_us": ("the same in a queue in order (us)", None, None),
    "long_kernel_200us_over_us": ("launch + clFinish of 0.2 ms, over the kernel's time (us)", None, None),
    "long_kernel_500us_over_us": ("of 0.5 ms (us)", None, None),
    "long_kernel_1000us_over_us": ("of 1 ms (us)", None, None),
    "long_kernel_2000us_over_us": ("of 2 ms (us)", None, None),
    "long_kernel_5000us_over_us": ("of 5 ms (us)", None, None),
    "long_kernel_10000us_over_us": ("of 10 ms (us)", None, None),
    "long_kernel_100000us_over_us": ("of 100 ms (us)", None, None),
    "create_context_ms": ("clCreateContext + release beside another (ms)", None, None),
    "build_ms": ("clBuildProgram, unseen source (ms)", None, None),
    "write_64kib_gbs": ("write 64 KiB (GB/s)", None, None),
    "read_64kib_gbs": ("read 64 KiB (GB/s)", None, None),
    "write_1mib_gbs": ("write 1 MiB (GB/s)", None, None),
    "read_1mib_gbs": ("read 1 MiB (GB/s)", None, None),
    "write_16mib_gbs": ("write 16 MiB (GB/s)", bandwidth(2.0), beats(lambda v: v > 0.7, "> 0.7")),
    "read_16mib_gbs": ("read 16 MiB (GB/s)", bandwidth(1.3), beats(lambda v: v > 0.7, "> 0.7")),
    "write_256mib_gbs": ("write 256 MiB (GB/s)", bandwidth(2.0), beats(lambda v: v > 0.7, "> 0.7")),
    "read_256mib_gbs": ("read 256 MiB (GB/s)", bandwidth(1.3), beats(lambda v: v > 0.7, "> 0.7")),
    "write_pinned_16mib_gbs": ("write 16 MiB from ALLOC_HOST_PTR memory (GB/s)", bandwidth(0.9), None),
    "read_pinned_16mib_gbs": ("read 16 MiB into ALLOC_HOST_PTR memory (GB/s)", bandwidth(0.9), None),
    "map_unmap_16mib_us": ("map + unmap 16 MiB (us)", None, None),
    # "native, no copy": a wait each way is what the two synchronisation points cost.
    "map_unmap_host_16mib_us": ("map + unmap 16 MiB of ALLOC_HOST_PTR memory (us)", native_plus(12), None),
    "write_image_16mib_gbs": ("write an image of 16 MiB (GB/s)", on_cpu(bandwidth(None)), None),
    "read_image_16mib_gbs": ("read an image of 16 MiB (GB/s)", on_cpu(bandwidth(None)), None),
    "map_unmap_image_16mib_us": ("map + unmap an image of 16 MiB (us)", on_cpu(native_plus(12)), None),
    "first_query_ms": ("first platform and device query of a process (ms)", native_plus(30), None),
    "start_to_device_ms": ("process start to first device (ms)", None, beats(lambda v: v < 3000, "< 3000")),
    "client_memory_mib": ("client memory over a plain process, heap apart (MiB)", at_most(16), None),
    "client_written_mib": ("of it, pages that were written (MiB)", None, None),
    "client_threads": ("threads over a plain process", None, None),
    "remote_latency_us": ("marker + wait, over the round-trip time (us)", None, at_most(30)),
}
# Rows that only some kinds have, or only some devices.
ONLY = {"remote_latency_us": ("network",)}
OPTIONAL = {"write_image_16mib_gbs", "read_image_16mib_gbs", "map_unmap_image_16mib_us"}


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


# --- measuring -------------------------------------------------------------------------------------------


def run_json(command, env):
    result = subprocess.run([str(part) for part in command], env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, check=False)
    if result.returncode != 0:
        sys.exit(f"FAIL bench: {command[0]} ({env.get('SLUICE_TEST_KIND')}) ended with "
                 f"{result.returncode}: {result.stderr.decode()}")
    return json.loads(result.stdout)


def measure(kind, env, options):
    """One round of one kind: the rows, and where they were measured."""
    env = dict(env, SLUICE_TEST_KIND=kind)
    if options.platform:
        env["SLUICE_TEST_PLATFORM"] = options.platform
    probe = harness.built("startup_probe")
    started = time.monotonic()
    query = run_json([probe, "query"], env)
    quick = ["--quick"] if options.quick else []
    where = run_json([harness.built("sluice_bench"), *quick], env)
    rows = where.pop("rows")
    rows["first_query_ms"] = query["first_query_ms"]
    rows["start_to_device_ms"] = (query["device_known_s"] - started) * 1e3
    rows.update(run_json([probe, "memory"], env))
    if kind == "network":
        rtt = run_json([harness.built("sluice_bench"), "--rtt", *quick], env)["rtt_us"]
        rows["remote_latency_us"] = rows["marker_wait_us"] - rtt
    return rows, where


def measure_rounds(options):
    """kind -> row -> one number per round; kind -> where."""
    samples = {kind: {} for kind in options.kinds}
    where = {}
    daemon = harness.Daemon("network").start() if set(options.kinds) - {"native"} else None
    try:
        environments = {"native": dict(os.environ)}
        if daemon:
            # One daemon serves both transports.
            environments["network"] = daemon.environment()
            environments["ring"] = dict(daemon.environment(), SLUICE_ENDPOINT=f"unix:{daemon.socket}")
        for number_of_round in range(options.rounds):
            for kind in options.kinds:  # Interleaved, so that a drift of the machine meets all kinds.
                rows, where[kind] = measure(kind, environments[kind], options)
                for name, value in rows.items():
                    samples[kind].setdefault(name, []).append(value)
            print(f"round {number_of_round + 1} of {options.rounds} done", file=sys.stderr, flush=True)
    finally:
        if daemon:
            daemon.clean()
    return samples, where


# --- reporting -------------------------------------------------------------------------------------------


def judge(name, medians, where):
    """One row of the report."""
    label, ring_budget, network_budget = ROWS[name]
    native = medians.get("native", {}).get(name)
    row = {"row": name, "label": label, "native": native, "type": next(iter(where.values()))["type"]}
    for kind, budget in (("ring", ring_budget), ("network", network_budget)):
        value = medians.get(kind, {}).get(name)
        row[kind] = value
        row[f"{kind}_ratio"] = value / native if value is not None and native else None
        row[f"{kind}_budget"], row[f"{kind}_verdict"] = None, None
        if budget and value is not None and (native is not None or name in ONLY):
            verdict = budget(value, native, row)
            if verdict is not None:
                row[f"{kind}_budget"] = verdict[0]
                row[f"{kind}_verdict"] = "pass" if verdict[1] else "MISS"
    return row


def processor():
    """The host's processor by name."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"


def commit():
    """The commit that was measured; a star if the tree has other changes."""
    root = pathlib.Path(__file__).resolve().parents[2]
    result = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty=*", "--exclude=*"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return result.stdout.decode().strip() or "unknown"


def facts(where, options):
    """Where and when, as one Markdown paragraph."""
    first = next(iter(where.values()))
    return (f"{first['device']} ({first['type']}), driver {first['driver']}, on {processor()}, "
            f"{os.cpu_count()} processors, Linux {platform.release()}; commit {commit()}, "
            f"{datetime.date.today().isoformat()}, load {options.load:.1f} at the start; medians of "
            f"{options.rounds} interleaved rounds"
            f"{' (quick: a smoke test, not a measurement)' if options.quick else ''}.")


def table(rows, where, options):
    lines = [facts(where, options), "",
             "| row | native | ring | ring/native | budget | | network | network/native | target | |",
             "| --- | ---: | ---: | ---: | --- | --- | ---: | ---: | --- | --- |"]
    for row in rows:
        lines.append("| " + " | ".join([
            row["label"], number(row["native"]), number(row["ring"]), number(row["ring_ratio"]),
            row["ring_budget"] or "", row["ring_verdict"] or "", number(row["network"]),
            number(row["network_ratio"]), row["network_budget"] or "", row["network_verdict"] or "",
        ]) + " |")
    return "\n".join(lines) + "\n"


def missing_rows(medians):
    """Rows that a kind should have and has not; the only thing that fails."""
    return [f"{kind}: {name}" for kind, rows in medians.items() for name in ROWS
            if name not in rows and name not in OPTIONAL and kind in ONLY.get(name, KINDS)]


def record(text, where, options):
    """Writes what README.md shows: the table, and the links if this machine can shape any."""
    here = pathlib.Path(__file__).resolve().parent
    kind = next(iter(where.values()))["type"]
    path = options.record if options.record != DEFAULT_RECORD else here / "results" / f"{kind}.md"
    links = subprocess.run([sys.executable, "-B", str(here / "shaped.py")], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    shaped = (links.stdout.decode() if links.returncode == 0 else
              f"Not measured: {links.stderr.decode().strip().splitlines()[-1:] or 'no reason given'}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<!-- Written by tests/bench/run.sh --record: do not edit. -->\n{text}\n"
                    f"Sustained transfer over the network against iperf3, one stream each:\n\n{shaped}")
    print(f"recorded in {path}")


DEFAULT_RECORD = pathlib.Path("results")


def main():
    parser = argparse.ArgumentParser(prog="run.sh", description="Measures native, ring and network.")
    parser.add_argument("--quick", action="store_true", help="smoke test: one round, few repetitions")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 5; quick: 1)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="which of native,ring,network")
    parser.add_argument("--platform", default="", help="text in the real platform's name")
    parser.add_argument("--out", type=pathlib.Path, help="folder for table.md and results.json")
    parser.add_argument("--record", type=pathlib.Path, nargs="?", const=DEFAULT_RECORD, metavar="FILE",
                        help="also measure the links and write the table, with the machine's facts, as "
                             "Markdown (default: results/cpu.md or results/gpu.md beside this program)")
    options = parser.parse_args()
    options.load = os.getloadavg()[0]
    options.kinds = options.kinds.split(",")
    if set(options.kinds) - set(KINDS):
        parser.error(f"--kinds takes some of {', '.join(KINDS)}")
    options.rounds = options.rounds or (1 if options.quick else 5)
    out = options.out or harness.build_dir() / "bench"

    samples, where = measure_rounds(options)
    out.mkdir(parents=True, exist_ok=True)
    medians = {kind: {name: statistics.median(values) for name, values in rows.items()}
               for kind, rows in samples.items()}
    rows = [judge(name, medians, where) for name in ROWS]
    text = table(rows, where, options)
    (out / "table.md").write_text(text)
    (out / "results.json").write_text(json.dumps({"where": where, "rounds": options.rounds, "rows": rows,
                                                  "samples": samples}, indent=1) + "\n")
    print(text)
    print(f"written to {out}/table.md and {out}/results.json")
    if options.record:
        record(text, where, options)
    missing = missing_rows(medians)
    if missing:
        sys.exit("FAIL bench: rows without a number: " + ", ".join(missing))


if __name__ == "__main__":
    main()
