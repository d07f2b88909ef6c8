#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite's tests of what PoCL lacks, on a driver that has it: pipes, SPIR-V and its constants,
sub-groups, timers, queues on the device (tests/complete_driver). None of them may be left out.

usage: complete_driver.py ring|network [GOOGLETEST_FILTER]
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import harness

TESTS = ("PipeTest.*", "PipesTest.*", "SpecialisationTest.*", "ProgramBinaryTest.IntermediateLanguage",
         "ExtensionsTest.*Il*", "*SubGroup*", "Image2dFrom*", "KernelArgTest.DeviceQueues", "QueueTest.*", "DeviceTest.*",
         "PlatformTest.HostTimer*", "*TheDevicesTimerIsTheirClock")


def run(environment, pattern):
    command = [str(harness.built("sluice_conformance")), "--gtest_filter=" + pattern]
    ended = subprocess.run(command, env=environment, text=True, capture_output=True)
    print(ended.stdout, end="")
    print(ended.stderr, end="", file=sys.stderr)
    # "[  SKIPPED ] Suite.Name (1 ms)", as opposed to the summary's lines.
    left_out = {line.split()[3] for line in ended.stdout.splitlines()
                if line.startswith("[  SKIPPED ] ") and line.endswith(" ms)")}
    for name in sorted(left_out):
        print(f"FAIL complete driver: {name} did not run")
    return 1 if ended.returncode or left_out else 0


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[0] not in ("ring", "network"):
        sys.exit("usage: complete_driver.py ring|network [GOOGLETEST_FILTER]")
    kind, pattern = arguments[0], ":".join(arguments[1:] or TESTS)
    with tempfile.TemporaryDirectory(prefix="sluice-test-") as folder:
        pathlib.Path(folder, "complete.icd").write_text(f"{harness.built('libsluice_complete_driver.so')}\n")
        os.chmod(folder, 0o755)
        with harness.Daemon(kind).start_with({"OCL_ICD_VENDORS": folder}) as daemon:
            return run(daemon.environment(), pattern)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
