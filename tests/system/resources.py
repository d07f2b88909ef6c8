#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Programs in namespaces of their own exchange frames through daemon-owned resources.

Each runs in its own user, mount, PID, IPC and network namespace (contained.sh) with nothing but the daemon's
socket and Sluice's libraries; the capabilities are what one tells the other. Every pixel of every frame is verified.
A producer that is killed while it writes leaves contents that the consumer knows to be indeterminate. The
daemon is afterwards as it was. Usage: resources.py
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import harness

SECONDS = 60
FRAMES = 100
report = harness.Report("resources")


CONTAINED = str(pathlib.Path(__file__).with_name("contained.sh"))


def environment(daemon):
    return {**os.environ, "SLUICE_BUILD_DIR": str(harness.build_dir()), "SLUICE_ENDPOINT": f"unix:{daemon.socket}"}


def start(daemon, program, *arguments):
    return subprocess.Popen([CONTAINED, program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment(daemon))


def finish(process):
    """(exit code, output) or (None, what there was)."""
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        return None, output + errors
    return process.returncode, output + errors


def capability(process, name):
    line = process.stdout.readline().split()
    if len(line) != 2 or line[0] != name:
        report.check(False, f"the producer says its capability for {name}", f"{line} {finish(process)[1]}")
        report.exit()
    return line[1]


def list_resources(daemon, *flags):
    return subprocess.run([str(harness.built("sluicectl")), "resources", *flags, "--admin-socket",
                           str(daemon.admin_socket)], capture_output=True, text=True, timeout=SECONDS)


def listed(daemon):
    reply = list_resources(daemon, "--json")
    return json.loads(reply.stdout)["resources"] if reply.returncode == 0 else reply.stderr


# Two programs in separate namespaces exchange frames; each is verified, and sluicectl shows the resource.
def exchange(daemon, width, height):
    name = f"{FRAMES} frames of {width}x{height}"
    producer = start(daemon, "resource_frames", "produce", FRAMES, width, height)
    frames, ack = capability(producer, "frames"), capability(producer, "ack")
    entries = {entry["label"]: entry for entry in listed(daemon)}
    report.check(entries.get("frames", {}).get("size_bytes") == width * height * 4,
                 f"{name}: sluicectl lists the resource", entries)
    report.check(frames not in json.dumps(entries), f"{name}: and not what opens it")
    table = list_resources(daemon).stdout
    report.check("acknowledged \u2713" in entries and "acknowledged \u2713" in table, f"{name}: labels are shown as they are",
                 f"{list(entries)} {table}")
    consumer = start(daemon, "resource_frames", "consume", FRAMES, frames, ack)
    code, output = finish(consumer)
    report.check(code == 0, f"{name}: every pixel verified by the consumer", output)
    code, output = finish(producer)
    report.check(code == 0, f"{name}: every frame acknowledged", output)


# One renders with OpenGL, the other computes with OpenCL, neither has a device node, and every pixel of
# every frame is what it must be.
def render_and_compute(daemon, width, height):
    name = f"{FRAMES} frames of {width}x{height} from GL to OpenCL"
    producer = start(daemon, "gl_frames", FRAMES, width, height)
    frames, ack = capability(producer, "frames"), capability(producer, "ack")
    consumer = start(daemon, "cl_frames", FRAMES, frames, ack)
    code, output = finish(consumer)
    report.check(code == 0, f"{name}: every pixel verified by a kernel", output)
    code, output = finish(producer)
    report.check(code == 0, f"{name}: every frame acknowledged", output)


# A pair beside each other, which hands the capabilities over by a pipe; and what neither takes.
def samples(daemon):
    producer = start(daemon, "gl_frames", 10, 64, 48)
    consumer = subprocess.run([CONTAINED, "cl_frames", "10"], stdin=producer.stdout, capture_output=True, text=True,
                              timeout=SECONDS, env=environment(daemon))
    code, output = finish(producer)
    report.check(consumer.returncode == 0 and code == 0, "gl_frames | cl_frames",
                 f"{consumer.stdout}{consumer.stderr}{output}")
    producer = start(daemon, "gl_frames", 1, 64, 48)
    frames, ack = capability(producer, "frames"), capability(producer, "ack")
    code, output = finish(start(daemon, "cl_frames", 1, ack, frames))
    report.check(code == 1 and "gl_frames prints FRAMES, then ACK" in output, "cl_frames COUNT ACK FRAMES is told the order",
                 f"exit {code} {output}")
    producer.kill()
    finish(producer)
    for program, *arguments in (("gl_frames",), ("gl_frames", "-1", 64, 48), ("gl_frames", 10, 0, 48),
                                ("gl_frames", 10, 64, "48x"), ("gl_frames", 10, 64, 99999),
                                ("gl_frames", 10, 64, 48, "metal"), ("cl_frames",), ("cl_frames", 0, "a", "b"),
                                ("cl_frames", 1, "a"), ("cl_frames", 1)):
        code, output = finish(start(daemon, program, *arguments))
        report.check(code == 2 and "usage: " in output, " ".join(map(str, (program, *arguments, "is told the usage"))),
                     f"exit {code} {output}")


# The same through Vulkan's memory: OpenGL writes to it by its own import, the worker's OpenCL works in it, and
# neither program ever maps it for itself.
def render_to_vulkan_memory(daemon, width, height):
    name = f"{FRAMES} frames of {width}x{height} from GL to OpenCL in Vulkan's memory"
    producer = start(daemon, "gl_frames", FRAMES, width, height, "vulkan")
    line = producer.stdout.readline().split()
    if not line or line[0] != "frames":
        code, output = finish(producer)
        if code == 77:
            print(f"SKIP {name}: {' '.join(line)} {output}")
        else:
            report.check(False, f"{name}: the producer makes it", f"{line} {output}")
        return
    frames, ack = line[1], capability(producer, "ack")
    entries = {entry["label"]: entry for entry in listed(daemon)}
    report.check(entries.get("rendered", {}).get("backing") == "vulkan", f"{name}: sluicectl names the backing", entries)
    consumer = start(daemon, "cl_frames", FRAMES, frames, ack)
    code, output = finish(consumer)
    report.check(code == 0, f"{name}: every pixel verified by a kernel", output)
    report.check(", by import" in output, f"{name}: by import", output)
    code, output = finish(producer)
    report.check(code == 0, f"{name}: every frame acknowledged", output)


# A producer that is killed while it writes: the consumer gets its turn, and is told.
def producer_killed(daemon):
    producer = start(daemon, "resource_frames", "die-writing")
    frames = capability(producer, "frames")
    consumer = start(daemon, "resource_frames", "look", frames)
    first = consumer.stdout.readline().strip()
    report.check(first == "determinate", "before the kill the contents are good", first)
    producer.stdin.write("\n")
    producer.stdin.flush()
    held = producer.stdout.readline().strip() == "holding"
    report.check(held, "the producer holds it half-written")
    consumer.stdin.write("\n")
    consumer.stdin.flush()
    # The sandbox's first process dies with bwrap, and with it everything in the PID namespace.
    producer.kill()
    producer.communicate()
    code, output = finish(consumer)
    report.check(code == 0 and "indeterminate" in output.split(), "after it the consumer is told", output)


# A number for people; never judged.
def time_turns(daemon):
    code, output = finish(start(daemon, "resource_frames", "time-turns", 2000))
    report.check(code == 0, "two thousand turns of one program", output)


def main():
    refusal = subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], capture_output=True,
                             text=True) if shutil.which("bwrap") else None
    if refusal is None or refusal.returncode != 0:
        print(f"SKIP resources: bubblewrap cannot make namespaces here: {refusal and refusal.stderr}")
        return
    with harness.Daemon("ring") as daemon:
        exchange(daemon, 64, 48)  # The allocator is started; from here on nothing may grow.
        harness.wait_until(lambda: listed(daemon) == [], 5)
        render_to_vulkan_memory(daemon, 642, 480)  # What drivers make once and keep: Mesa 25.0 a memory file.
        before = daemon.settled_resources()
        exchange(daemon, 1920, 1080)
        render_and_compute(daemon, 640, 480)
        samples(daemon)
        render_to_vulkan_memory(daemon, 642, 480)
        producer_killed(daemon)
        time_turns(daemon)
        report.check(harness.wait_until(lambda: listed(daemon) == [], 5),
                     "no resource outlives its users", listed(daemon))
        harness.wait_until(lambda: not harness.grown(before, daemon.resources()), 5)
        more = harness.grown(before, daemon.resources())
        report.check(not more, "nothing leaked in the daemon", more or before)


main()
report.exit()
