#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""cl_khr_initialize_memory is passed through where the worker's driver has it: the extension is advertised, a context
may ask for it, and the driver gets the bits that the application gave.

No driver at hand has it but tests/complete_driver. Usage: initialize_memory.py ring|network
"""
import re
import subprocess

import complete_driver
import harness

SECONDS = 120
TEST = "ContextTest.MemoryInitialize"
report = harness.Report("initialize_memory")


def main():
    with complete_driver.daemon(harness.kind_argument()) as daemon:
        done = subprocess.run([str(harness.built("sluice_conformance")), f"--gtest_filter={TEST}"],
                              env=daemon.environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS)
        report.check(done.returncode == 0 and f"[       OK ] {TEST}" in done.stdout, "contexts are made", done.stdout)
        told = re.findall(r"CL_CONTEXT_MEMORY_INITIALIZE_KHR (\d+)", daemon.log.read_text())
        report.check(told == ["1", "2", "3"], "the driver gets the bits", told or daemon.log.read_text())
    report.exit()


if __name__ == "__main__":
    main()
