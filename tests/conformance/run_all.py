#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance suite to its end even when a test crashes or hangs.

The program runs all tests in one process, but for those of APART. When that process dies, the test
that was running is counted as failed and the program is started again with the tests that have not
run yet. Exit code 0 if every test passed or was skipped.

usage: run_all.py PROGRAM [--filter=PATTERN] [--codes=FILE] [further arguments for PROGRAM]
  PROGRAM   may be several words, as "driver_root.py ROOT native -- sluice_conformance"
  --filter  a GoogleTest filter; default all tests
  --codes   record every checked code in FILE, for compare_codes.py
The platform and the kind are chosen by the environment (see harness.h).
"""
import os
import re
import shlex
import subprocess
import sys


# Each has a process to itself. After programs of a context with sub-devices, PoCL 3.1's compiler crashes in
# the next program's build, whoever builds it: natively in 4 and 1 of 25 runs of one of these and another test.
APART = ("SubDeviceTest.ProgramsOfTheParent", "SubDeviceTest.ProgramsRunWhereTheyAreBuilt")


def list_tests(program, pattern):
    out = subprocess.run([*program, "--gtest_list_tests", "--gtest_filter=" + pattern],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    tests, suite = [], ""
    for line in out.splitlines():
        name = line.split("#")[0].strip()
        if not line.startswith(" ") and name.endswith("."):
            suite = name
        elif name and suite:
            tests.append(suite + name)
    return tests


def run_once(program, tests, extra, result):
    """Runs `tests` until the end or the first crash; returns the tests that have not run."""
    child = subprocess.Popen([*program, "--gtest_filter=" + ":".join(tests)] + extra,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace")
    running, ended = None, set()
    for line in child.stdout:
        if line.startswith("Note: Google Test filter"):
            continue
        sys.stdout.write(line)
        match = re.match(r"\[( RUN     |       OK|  FAILED |  SKIPPED) \] ([\w/.]+)", line)
        if match is None:
            continue
        state, name = match.group(1).strip(), match.group(2)
        if name not in tests:
            continue
        if state == "RUN":
            running = name
        elif name == running:
            result[{"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[state]].append(name)
            ended.add(name)
            running = None
    code = child.wait()
    if running is not None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        print(f"[  CRASHED ] {running} ended the process with {how}", flush=True)
        result["crashed"].append(running)
        ended.add(running)
    elif code not in (0, 1):
        print(f"[  CRASHED ] the program ended with {code} outside a test", flush=True)
        result["crashed"].append("(outside a test)")
        if not ended:
            return []
    return [name for name in tests if name not in ended]


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    program, pattern, extra = shlex.split(sys.argv[1]), "*", []
    for argument in sys.argv[2:]:
        if argument.startswith("--filter="):
            pattern = argument[len("--filter="):]
        elif argument.startswith("--codes="):
            path = os.path.abspath(argument[len("--codes="):])
            open(path, "w").close()
            os.environ["SLUICE_TEST_RECORD"] = path
        else:
            extra.append(argument)
    result = {"passed": [], "failed": [], "skipped": [], "crashed": []}
    tests = list_tests(program, pattern)
    if not tests:
        result["crashed"].append("(no test is listed)")
    for left in ([name for name in tests if name not in APART],
                 *([name] for name in tests if name in APART)):
        while left:
            before = len(left)
            left = run_once(program, left, extra, result)
            if len(left) == before:
                result["crashed"].append("(no test ran)")
                break
    print("conformance: " + ", ".join(f"{len(names)} {what}" for what, names in result.items()))
    for what in ("failed", "crashed"):
        for name in result[what]:
            print(f"  {what}: {name}")
    return 1 if result["failed"] or result["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
