#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The conformance suite's tests of what PoCL lacks, on a driver that has it: pipes, SPIR-V and its constants,
sub-groups, timers, queues on the device, CL_RG images, cleared memory (tests/complete_driver). None of them may be left
out.

usage: complete_driver.py ring|network [GOOGLETEST_FILTER]
"""
import re
import subprocess
import sys

import harness

TESTS = ("PipeTest.*", "PipesTest.*", "SpecialisationTest.*", "ProgramBinaryTest.IntermediateLanguage",
         "ExtensionsTest.*", "*SubGroup*", "Image2dFrom*", "ImageTransferTest.*", "KernelArgTest.DeviceQueues", "QueueTest.*", "DeviceTest.*",
         "PlatformTest.HostTimer*", "*TheDevicesTimerIsTheirClock", "ContextTest.MemoryInitialize")

# As clinfo tells what the driver says of itself (tests/complete_driver/driver.cc).
SAYS = {"CL_DEVICE_UUID_KHR": "10111213-1415-1617-1819-1a1b1c1d1e1f",
        "CL_DRIVER_UUID_KHR": "40414243-4445-4647-4849-4a4b4c4d4e4f",
        "CL_DEVICE_LUID_KHR": "7071-727374757677", "CL_DEVICE_NODE_MASK_KHR": "0x4",
        "CL_DEVICE_PCI_BUS_INFO_KHR": "0012:34:1d.5", "CL_DEVICE_IL_VERSION": "SPIR-V_1.0",
        "CL_DEVICE_MAX_PIPE_ARGS": "16", "CL_DEVICE_PIPE_MAX_PACKET_SIZE": "1024",
        "CL_DEVICE_MAX_NUM_SUB_GROUPS": "64", "CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE": "65536",
        "CL_DEVICE_IMAGE_PITCH_ALIGNMENT": "16", "CL_PLATFORM_HOST_TIMER_RESOLUTION": "1"}


def check_identity(environment):
    listed = subprocess.run(["clinfo", "--raw"], env=environment, text=True, capture_output=True).stdout
    wrong = 0
    for name, value in SAYS.items():
        line = next((line for line in listed.splitlines() if f" {name} " in line), "")
        wrong += value not in line
        print(f"{'PASS' if value in line else 'FAIL'} complete driver: {name} is {value}: {line.strip()}")
    return 1 if wrong else 0


def check_initialized(told):
    """What the driver has said, in the daemon's log, that contexts were made with."""
    bits = re.findall(r"CL_CONTEXT_MEMORY_INITIALIZE_KHR (\d+)", told)
    right = bits == ["1", "2", "3"]
    print(f"{'PASS' if right else 'FAIL'} complete driver: contexts asked for cleared memory by the bits 1, 2, 3: {bits}")
    return 0 if right else 1


def run(environment, pattern):
    command = [str(harness.ROOT / "tests" / "to_the_end.sh"), str(harness.built("sluice_conformance")), "--gtest_filter=" + pattern]
    ended = subprocess.run(command, env=environment, text=True, capture_output=True)
    print(ended.stdout, end="")
    print(ended.stderr, end="", file=sys.stderr)
    # "[  SKIPPED ] Suite.Name (1 ms)", as opposed to the summary's lines.
    left_out = {line.split()[3] for line in ended.stdout.splitlines()
                if line.startswith("[  SKIPPED ] ") and line.endswith(" ms)")}
    for name in sorted(left_out):
        print(f"FAIL complete driver: {name} did not run")
    return 1 if ended.returncode or left_out else 0


def daemon(kind):
    """A daemon whose workers have it for a driver."""
    made = harness.Daemon(kind)
    drivers = made.directory / "drivers"
    drivers.mkdir()
    (drivers / "complete.icd").write_text(f"{harness.built('libsluice_complete_driver.so')}\n")
    return made.start_with({"OCL_ICD_VENDORS": str(drivers)})


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[0] not in ("ring", "network"):
        sys.exit("usage: complete_driver.py ring|network [GOOGLETEST_FILTER]")
    kind, pattern = arguments[0], ":".join(arguments[1:] or TESTS)
    with daemon(kind) as started:
        failed = check_identity(started.environment()) | run(started.environment(), pattern)
        return failed if arguments[1:] else failed | check_initialized(started.log.read_text())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
