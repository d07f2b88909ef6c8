#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Ten thousand lives of every object kind in one session: neither the worker nor the client grows.

Usage: failure_leak.py ring|network
"""
import harness

CYCLES = 10000
# What the driver itself keeps per object is the same natively; see native_growth().
ALLOWED_BYTES = 6 << 20

KIND = harness.kind_argument()
report = harness.Report(f"failure_leak {KIND}")


class Native:
    """The environment of the system's own driver, for the comparison."""

    @staticmethod
    def environment():
        return dict(harness.os.environ, SLUICE_TEST_KIND="native")


def samples(application, pids):
    """Resident bytes of each process at each tenth of the way."""
    seen = []
    for tenth in range(1, 11):
        if not application.wait_for(f"AT {CYCLES // 10 * tenth}\n", 120):
            break
        seen.append([harness.resident_bytes(pid) for pid in pids(application)])
        application.go_on()
    return seen


def growth(seen):
    """Bytes from the second tenth, when caches are warm, to the end; per process."""
    return [last - first for first, last in zip(seen[1], seen[-1])]


def native_growth():
    application = harness.Application(Native, "churn", str(CYCLES))
    seen = samples(application, lambda app: [app.process.pid])
    application.end(30)
    return growth(seen)[0]


def main():
    native = native_growth()
    with harness.Daemon(KIND) as daemon:
        application = harness.Application(daemon, "churn", str(CYCLES))
        started = harness.time.monotonic()
        seen = samples(application, lambda app: [app.process.pid, *daemon.workers()])
        took = harness.time.monotonic() - started
        descriptors = [len(harness.descriptors(pid)) for pid in daemon.workers()]
        code = application.end(60)
        good = code == 0 and len(seen) == 10 and all(len(row) == 2 for row in seen)
        if not report.check(good, f"{CYCLES} cycles", f"{took:.1f} s" if good else
                            f"exit {code}, samples {seen}\n{application.errors.decode()}"):
            report.exit()
        client, worker = growth(seen)
        report.check(client <= ALLOWED_BYTES, "the client does not grow", f"{client >> 10} KiB")
        report.check(worker <= max(native, 0) + ALLOWED_BYTES, "the worker does not grow",
                     f"{worker >> 10} KiB (the driver alone, natively: {native >> 10} KiB)")
        report.check(max(descriptors, default=0) < 100, "the worker keeps no descriptors", descriptors)
    report.exit()


if __name__ == "__main__":
    main()
