#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""No daemon where the endpoint points: a prompt answer, silence, and no harm to other drivers.

The time is reported (the budget is 50 ms for a local endpoint); only a generous bound is asserted, since
the machine may be busy. Usage: failure_no_daemon.py ring|network
"""
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import harness

KIND = harness.kind_argument()
BOUND_MS = {"ring": 1000, "network": 4000}[KIND]
PLATFORM_NOT_FOUND = -1001

report = harness.Report(f"failure_no_daemon {KIND}")


def list_platforms(vendors, endpoint, **variables):
    env = dict(harness.os.environ, OCL_ICD_VENDORS=str(vendors), SLUICE_ENDPOINT=endpoint, **variables)
    run = subprocess.run([str(harness.built("list_platforms"))], env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    text = run.stdout.decode()
    values = dict(re.findall(r"^(query_ms|code|count) (-?[\d.]+)$", text, re.M))
    return run, values, re.findall(r"^platform (.*)$", text, re.M)


# Whoever asks for the driver's log is told why there is no platform: once, though a loader asks twice, and at any level.
def expect_reason(vendors, what, endpoint, **variables):
    for level in ("info", "warning", "error"):
        run, values, _ = list_platforms(vendors, endpoint, SLUICE_LOG=level, **variables)
        said = [line for line in run.stderr.decode().splitlines() if line.startswith("sluice-icd[") and "] error: " in line]
        report.check(values.get("code") == str(PLATFORM_NOT_FOUND) and len(said) == 1,
                     f"{what}: SLUICE_LOG={level} says why, once", run.stderr.decode())


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    alone, beside = folder / "alone", folder / "beside"
    for vendors in (alone, beside):
        vendors.mkdir()
        (vendors / "sluice.icd").write_text(f"{harness.built('libsluice_icd.so')}\n")
    for icd in pathlib.Path("/etc/OpenCL/vendors").glob("*.icd"):
        if "sluice" not in icd.name:
            shutil.copy(icd, beside)
    stale = folder / "stale.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left_behind:
        left_behind.bind(str(stale))
    endpoints = {"no socket": f"unix:{folder}/none.sock", "a stale socket": f"unix:{stale}",
                 "not even a directory": "unix:/nonexistent/sluice/broker.sock"}
    if KIND == "network":
        endpoints = {"nobody listens": f"127.0.0.1:{harness.free_port()}",
                     "an unknown host": "dns:///sluice-test.invalid:7466"}
    for what, endpoint in endpoints.items():
        # Alone: no platform, by the code that the loader gives for none.
        run, values, names = list_platforms(alone, endpoint)
        report.check(run.returncode == 0 and values.get("code") == str(PLATFORM_NOT_FOUND) and not names,
                     f"{what}: no platform", run.stdout.decode() + run.stderr.decode())
        report.check(run.stderr == b"", f"{what}: nothing on stderr", run.stderr.decode())
        took = float(values.get("query_ms", "inf"))
        report.check(took < BOUND_MS, f"{what}: prompt", f"{took:.1f} ms")
        expect_reason(alone, what, endpoint)
        # Beside a native driver: that one is there as ever.
        run, values, names = list_platforms(beside, endpoint)
        report.check(run.returncode == 0 and len(names) >= 1 and not run.stderr and
                     not any(name.startswith("Sluice (") for name in names),
                     f"{what}: the native driver is still there", names)
    # A variable that is no number is not passed over in silence; one that is stays unmentioned.
    endpoint = next(iter(endpoints.values()))
    for value, wrong in (("abc", True), ("0", True), ("-5", True), ("90000000", True), ("1500", False)):
        run, _, _ = list_platforms(alone, endpoint, SLUICE_LOG="debug", SLUICE_CONNECT_TIMEOUT_MS=value)
        named = [line for line in run.stderr.decode().splitlines()
                 if f"SLUICE_CONNECT_TIMEOUT_MS={value} " in line and "10000, is taken" in line]
        report.check(len(named) == (1 if wrong else 0), f"SLUICE_CONNECT_TIMEOUT_MS={value} is {'named' if wrong else 'taken'}",
                     run.stderr.decode())
    expect_reason(alone, "a text that is no endpoint", "http://127.0.0.1:7466")
    if KIND == "network":
        expect_reason(alone, "a token file that is not there", "127.0.0.1:1", SLUICE_TOKEN_FILE=f"{folder}/none")
        expect_reason(alone, "an authority that is not there", "127.0.0.1:1", SLUICE_TLS_CA=f"{folder}/none")
    with harness.Daemon(KIND, limits='[devices]\nallow = "no such device*"\n') as daemon:
        expect_reason(alone, "a daemon without devices", daemon.endpoint())
    shutil.rmtree(folder)
    report.exit()


if __name__ == "__main__":
    main()
