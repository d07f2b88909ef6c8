#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Two sessions at once: neither sees the other's bytes, and the end of one does not touch the other.

Usage: failure_isolation.py ring|network
"""
import os
import pathlib
import shutil
import tempfile

import harness

SECONDS = 60

KIND = harness.kind_argument()
report = harness.Report(f"failure_isolation {KIND}")


# Fresh global and local memory carries nothing of another tenant, living or dead.
def check_memory(daemon):
    writer = harness.Application(daemon, "isolation", "write")
    if not report.check(writer.wait_for("READY", SECONDS), "the first tenant writes its pattern"):
        writer.end(0)
        return
    for state in ("lives", "was killed"):
        looker = harness.Application(daemon, "isolation", "look")
        code = looker.end(SECONDS)
        found = (looker.value("found_global"), looker.value("found_local"))
        report.check(code == 0 and found == (0, 0), f"no byte of a tenant that {state} is seen",
                     f"words found: global {found[0]}, local {found[1]}; exit {code}")
        if state == "lives":
            writer.process.kill()
            writer.end(1)
            harness.wait_until(lambda: not daemon.workers(), 5)


# One session's worker is killed: the other session computes on.
def check_neighbour(daemon):
    neighbour = harness.Application(daemon, "victim", "idle")
    neighbour.wait_for("READY", SECONDS)
    kept = daemon.workers()
    other = harness.Application(daemon, "victim", "kernel")
    other.wait_for("READY", SECONDS)
    for pid in daemon.workers():
        if pid not in kept:
            harness.os.kill(pid, harness.signal.SIGKILL)
    other.wait_for("DONE", SECONDS)
    other_code = other.end(1)
    neighbour.go_on()
    neighbour.wait_for("DONE", SECONDS)
    code = neighbour.end(1)
    later = [neighbour.value(key) for key in ("later_launch", "later_read", "later_create",
                                              "later_finish")]
    report.check(len(kept) == 1 and other_code == 0 and (other.value("ended_with") or 0) < 0,
                 "the killed session's application sees the end", other.value("ended_with"))
    report.check(code == 0 and later == [0, 0, 0, 0], "its neighbour goes on", later)


# The daemon's host has Sluice's ICD installed and SLUICE_ENDPOINT set: no worker may load it.
def check_no_recursion():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    for icd in pathlib.Path("/etc/OpenCL/vendors").glob("*.icd"):
        shutil.copy(icd, folder)
    (folder / "sluice.icd").write_text(f"{harness.built('libsluice_icd.so')}\n")
    daemon = harness.Daemon(KIND)
    with daemon.start_with({"OCL_ICD_VENDORS": str(folder), "SLUICE_ENDPOINT": daemon.endpoint()}):
        listing = harness.Application(daemon, "list_platforms")
        listing.end(SECONDS)
        names = [line[9:] for line in listing.output.splitlines() if line.startswith("platform ")]
        report.check(bool(names) and not any("Sluice (Sluice" in name for name in names),
                     "Sluice is not offered through itself", names)
        idle = harness.Application(daemon, "victim", "idle")
        idle.wait_for("READY", SECONDS)
        if os.geteuid() == 0:
            maps = "".join(pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in daemon.workers())
            report.check("libOpenCL" in maps and "libsluice_icd" not in maps,
                         "a worker has the loader and not Sluice's ICD in it")
        else:
            print("SKIP failure_isolation: what a worker has loaded: only root looks from inside")
        idle.end(SECONDS)
    shutil.rmtree(folder)


def main():
    with harness.Daemon(KIND) as daemon:
        check_memory(daemon)
        check_neighbour(daemon)
    check_no_recursion()
    report.exit()


if __name__ == "__main__":
    main()
