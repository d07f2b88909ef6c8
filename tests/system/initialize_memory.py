#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""cl_khr_initialize_memory is passed through where the worker's driver has it: the extension is advertised, a context
may ask for it, and the driver gets the bits that the application gave.

The driver is the system's with a layer of the loader before it (programs/memory_layer.c); an application sees what one
does without. Usage: initialize_memory.py ring|network
"""
import re
import shutil
import subprocess

import harness

SECONDS = 120
TEST = "ContextTest.MemoryInitialize"
report = harness.Report("initialize_memory")


class LayeredDaemon(harness.Daemon):
    def _config_text(self, limits):
        # A worker reads nothing but what it needs: the folder names the layer as if it were a driver, which the loader
        # then leaves out.
        layer, vendors = harness.built("libmemory_layer.so"), self.directory / "drivers"
        shutil.copytree("/etc/OpenCL/vendors", vendors)
        (vendors / "layer.icd").write_text(f"{layer}\n")
        text = super()._config_text(limits)
        if "[worker]\n" not in text:
            text += "[worker]\n"
        return text.replace("[worker]\n", '[worker]\nenvironment = '
                            f'{{ OPENCL_LAYERS = "{layer}", OCL_ICD_VENDORS = "{vendors}" }}\n')


def main():
    with LayeredDaemon(harness.kind_argument()) as daemon:
        done = subprocess.run([str(harness.built("sluice_conformance")), f"--gtest_filter={TEST}"],
                              env=daemon.environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS)
        report.check(done.returncode == 0 and f"[       OK ] {TEST}" in done.stdout, "contexts are made", done.stdout)
        told = re.findall(r"memory_layer: CL_CONTEXT_MEMORY_INITIALIZE_KHR (\d+)", daemon.log.read_text())
        report.check(told == ["1", "2", "3"], "the driver gets the bits", told or daemon.log.read_text())
    report.exit()


if __name__ == "__main__":
    main()
