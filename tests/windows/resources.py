#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Daemon-owned resources of sluiced.exe under Wine: sluice.dll's own tests, and two programs in C that exchange frames
through a section in turns, every pixel of each verified.

usage: resources.py
SLUICE_WINDOWS_BUILD_DIR is the Windows build (default: build-windows/).
"""
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ.get("SLUICE_WINDOWS_BUILD_DIR") or harness.ROOT / "build-windows").resolve()
BIN = BUILD / "bin"
PIPE = r"\\.\pipe\sluice-resources-py"
ENDPOINT = "pipe:" + PIPE
FRAMES = 50
SECONDS = 120
REPORT = harness.Report("windows resources")


def program(wine, *arguments):
    """resource_frames, whose output we read: Wine's services live in the idle process, so that the pipe ends."""
    return subprocess.Popen([str(wine.launcher(BIN / "resource_frames.exe")), *map(str, arguments)],
                            env={**wine.environment, "SLUICE_ENDPOINT": ENDPOINT}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[0]
    return process.returncode, output


def capability(process, name):
    line = process.stdout.readline().split()
    if len(line) == 2 and line[0] == name:
        return line[1]
    REPORT.check(False, f"the producer says its capability for {name}", f"{line} {finish(process)[1]}")
    return REPORT.exit()


def listed(wine):
    code, output = wine.run([BIN / "sluicectl.exe", "resources", "--json", "--endpoint", ENDPOINT], seconds=60)
    return json.loads(output)["resources"] if code == 0 else output


def exchange(wine, width, height):
    name = f"{FRAMES} frames of {width}x{height} between two processes"
    producer = program(wine, "produce", FRAMES, width, height)
    frames, ack = capability(producer, "frames"), capability(producer, "ack")
    entries = listed(wine)
    labels = {entry["label"]: entry for entry in entries} if isinstance(entries, list) else {}
    REPORT.check(labels.get("frames", {}).get("size_bytes") == width * height * 4, "sluicectl lists the resource",
                 entries)
    consumer = program(wine, "consume", FRAMES, frames, ack)
    code, output = finish(consumer)
    REPORT.check(code == 0, f"{name}: every pixel verified", output)
    code, output = finish(producer)
    REPORT.check(code == 0, f"{name}: every frame acknowledged", output)


def own_tests(wine, name, **variables):
    """One verdict for each test of a GoogleTest program."""
    code, output = wine.run_tests([BIN / f"{name}.exe"], seconds=300, **variables)
    verdicts = re.findall(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+) \(", output, re.M)
    for verdict, test in verdicts:
        if verdict == "SKIPPED":
            reason = re.search(r"Skipped\n(.*)\n\[ +SKIPPED \] " + re.escape(test), output)
            print(f"SKIP windows resources: {test}: {reason.group(1) if reason else 'no reason'}")
        else:
            REPORT.check(verdict == "OK", test)
    REPORT.check(code == 0 and bool(verdicts), f"{name} ends well", "" if code == 0 else output[-4000:])


def main():
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows resources: {reason}")
        return
    with wine_module.Wine() as wine:
        wine.environment["WINEDLLOVERRIDES"] = "mscoree,mshtml="  # The probe's OpenCL is Wine's own.
        for name in ("libsluice_test", "resource_ticket_test"):
            own_tests(wine, name)
        log = wine.directory / "sluiced.log"
        with open(log, "wb") as output:
            daemon = subprocess.Popen(["wine", str(BIN / "sluiced.exe"), "--console", "--socket", PIPE],
                                      env=wine.environment, stdin=subprocess.DEVNULL, stdout=output,
                                      stderr=subprocess.STDOUT)
        try:
            if not REPORT.check(harness.wait_until(lambda: listed(wine) == [], 60), "sluiced.exe answers",
                                log.read_text(errors="replace")):
                REPORT.exit()
            exchange(wine, 64, 48)
            exchange(wine, 640, 480)
            wine.register_driver(BIN / "sluice_icd.dll")
            print("not run, the worker sees that behind Wine's OpenCL.dll no buffer lies in the host's memory: import")
            own_tests(wine, "shared_resource_test", SLUICE_ENDPOINT=ENDPOINT, SLUICE_TEST_KIND="ring",
                      SLUICE_TEST_WITHOUT_WAY="import", WINEDLLOVERRIDES="mscoree,mshtml=;opencl=n")
            code, output = finish(program(wine, "time-turns", 500))
            REPORT.check(code == 0, "five hundred turns of one program", output)
            REPORT.check(harness.wait_until(lambda: listed(wine) == [], 10), "no resource outlives its users",
                         listed(wine))
        finally:
            daemon.kill()
            daemon.wait()
    REPORT.exit()


if __name__ == "__main__":
    main()
