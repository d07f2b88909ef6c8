#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""cl_sluice_shared_resource is offered exactly where it works: by a daemon on this machine that shares resources.

Usage: failure_no_resources.py ring|network
"""
import shutil
import signal
import subprocess

import harness

KIND = harness.kind_argument()
report = harness.Report(f"failure_no_resources {KIND}")

FAILED = 1
INVALID_OPERATION = -59
INVALID_SHARED_RESOURCE = -0x534C0102
OFF = "[resources]\nenabled = false\n"


def offered(daemon):
    """(what a new program is told, what it gets that calls the extension all the same)"""
    program = harness.Application(daemon, "resource_offer")
    code = program.end(60)
    if code != 0:
        report.check(False, "the program ends", f"exit {code}\n{program.output}{program.errors.decode()}")
    return [program.value(key) for key in ("platform", "device", "versioned", "functions")], program.value("create")


def listed(daemon, *arguments):
    run = subprocess.run([str(harness.built("sluicectl")), "resources", *arguments, "--admin-socket",
                          str(daemon.admin_socket)], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout, run.stderr


def check_off(daemon, when):
    told, code = offered(daemon)
    report.check(told == [0, 0, 0, 0], f"{when}: the extension is hidden, its functions too", told)
    report.check(code == INVALID_OPERATION, f"{when}: who calls it all the same is refused", code)
    for arguments in ((), ("--json",)):
        ended, output, errors = listed(daemon, *arguments)
        text = errors or output
        report.check(ended == FAILED and "enabled = true" in text and "[resources]" in text and "IDENTITY" not in text,
                     " ".join((f"{when}: sluicectl says so", *arguments)), f"exit {ended}\n{output}{errors}")


def main():
    with harness.Daemon(KIND) as daemon:
        told, code = offered(daemon)
        there, refused = ([1, 1, 1, 3], INVALID_SHARED_RESOURCE) if KIND == "ring" else ([0] * 4, INVALID_OPERATION)
        report.check(told == there and code == refused, "resources on", f"{told} {code}")
        ended, output, errors = listed(daemon)
        report.check(ended == 0 and "IDENTITY" in output, "resources on: sluicectl lists none", output + errors)
        daemon.config.write_text(daemon.config.read_text() + OFF)
        daemon.process.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: listed(daemon)[0] == FAILED, 20)
        check_off(daemon, "turned off by a reload")
    with harness.Daemon(KIND) as daemon:
        vendors = daemon.directory / "vendors"
        shutil.copy(harness.built("libsluice_icd.so"), daemon.directory)
        if KIND == "network":
            shutil.copy(harness.built("libsluice_remote.so"), daemon.directory)
        for file in vendors.iterdir():
            file.write_text(f"{daemon.directory}/libsluice_icd.so\n")
        told, code = offered(daemon)
        report.check(told == [0, 0, 0, 0], "without libsluice beside the driver: the extension is hidden", told)
    daemon = harness.Daemon(KIND)
    daemon.config.write_text(daemon.config.read_text() + OFF)
    with daemon.start():
        check_off(daemon, "off")


main()
report.exit()
