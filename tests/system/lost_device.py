#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A device that is lost and comes back, of a made-up driver (tests/complete_driver/lost.cc): applications get the
driver's codes, a new context CL_DEVICE_NOT_AVAILABLE; the daemon says that it has no devices, asks again by itself,
and once the device is back the same applications go on. Also a daemon that was started before its driver was there.

Usage: lost_device.py ring|network
"""
import subprocess

import harness

OUT_OF_RESOURCES = -5
DEVICE_NOT_AVAILABLE = -2
SECONDS = 30  # Far above what any of this takes.

KIND = harness.kind_argument()
report = harness.Report(f"lost_device {KIND}")


class Application(harness.Application):
    """programs/again.c."""

    def __init__(self, daemon):
        super().__init__(daemon, "again")
        self.asked = 0

    def ask(self):
        """What a launch in its first context and one in a new context say now."""
        self.asked += 1
        self.go_on()
        harness.wait_until(lambda: self.wait_for("", 1) and self.output.count("\nnew ") == self.asked, SECONDS)
        codes = [int(line.split()[1]) for line in self.output.splitlines() if line.startswith(("old ", "new "))]
        return codes[-2:] if len(codes) == 2 * self.asked else self.output


def devices(daemon):
    listed = subprocess.run(["clinfo", "-l"], env=daemon.environment(), text=True, capture_output=True, check=False)
    return "Device #0" in listed.stdout


def start(lost):
    daemon = harness.Daemon(KIND)
    drivers = daemon.directory / "drivers"
    drivers.mkdir()
    (drivers / "complete.icd").write_text(f"{harness.built('libsluice_complete_driver.so')}\n")
    daemon.lost = daemon.directory / "lost"
    if lost:
        daemon.lost.touch()
    text = daemon.config.read_text()
    # The driver looks for a file of the test's.
    worker = f'[worker]\nprivate_root = false\nenvironment = {{ COMPLETE_DRIVER_LOST = "{daemon.lost}" }}\n'
    daemon.config.write_text(text.replace("[worker]\n", worker) if "[worker]\n" in text else
                             text.replace("[broker]\n", worker + "[broker]\n", 1))
    return daemon.start_with({"OCL_ICD_VENDORS": str(drivers)})


def count(daemon, line):
    return daemon.log.read_text().count(line)


def check_lost_and_back():
    with start(lost=False) as daemon:
        application = Application(daemon)
        if not report.check(application.wait_for("READY", SECONDS), "an application works", application.output):
            application.end(0)
            return
        report.check(application.ask() == [0, 0], "and makes another context")
        daemon.lost.touch()
        seen = application.ask()
        report.check(seen == [OUT_OF_RESOURCES, DEVICE_NOT_AVAILABLE], "lost: the driver's code, and no new context", seen)
        gone = harness.wait_until(lambda: count(daemon, "no devices to offer") == 1, SECONDS)
        report.check(gone, "the daemon finds out by itself", daemon.log.read_text() if not gone else "")
        report.check(not devices(daemon), "new programs see no device")
        doctor = subprocess.run([str(harness.built("sluicectl")), "doctor"], env=daemon.environment(), text=True,
                                capture_output=True, check=False)
        report.check(doctor.returncode != 0 and "allowed device" in doctor.stdout, "doctor says why", doctor.stdout)
        seen = application.ask()
        report.check(seen[-1] == DEVICE_NOT_AVAILABLE, "a new context is still refused", seen)
        daemon.lost.unlink()
        back = harness.wait_until(lambda: count(daemon, "devices found") == 2, SECONDS)
        report.check(back, "the daemon sees that it is back", daemon.log.read_text() if not back else "")
        report.check(devices(daemon), "new programs see it again")
        seen = application.ask()
        report.check(seen[-1] == 0, "the same application makes a context again", seen)
        report.check(application.end(SECONDS) == 0, "and ends well", application.errors)
        report.check(count(daemon, "no devices to offer") == 1, "of many looks the log has what is new", "")


# As at a boot: the daemon is there before the driver's module is.
def check_late_driver():
    with start(lost=True) as daemon:
        report.check(not devices(daemon), "started without a device")
        daemon.lost.unlink()
        found = harness.wait_until(lambda: devices(daemon), SECONDS, 0.2)
        report.check(found, "a device that comes later is found", daemon.log.read_text() if not found else "")


def main():
    check_lost_and_back()
    check_late_driver()
    report.exit()


if __name__ == "__main__":
    main()
