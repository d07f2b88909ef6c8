#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A hundred applications at once: each gets its own worker and the right result, and nothing stays behind.

Every application waits inside an open session until all of them have one, so that the sessions really
exist at the same time. Usage: failure_crowd.py ring|network
"""
import harness

CLIENTS = 100
SECONDS = 240

KIND = harness.kind_argument()
report = harness.Report(f"failure_crowd {KIND}")


def main():
    limits = f"max_sessions = 256\nmax_sessions_per_user = {CLIENTS + 20}\n"
    with harness.Daemon(KIND, limits) as daemon:
        warm = harness.Application(daemon, "churn", "10")
        code = warm.end(60)
        if not report.check(code == 0, "a first session works", warm.errors.decode() if code else ""):
            report.exit()
        harness.wait_until(lambda: not daemon.workers(), 5)
        before = daemon.settled_resources()
        start = harness.time.monotonic()
        crowd = [harness.Application(daemon, "churn", "10") for _ in range(CLIENTS)]
        ready = sum(one.wait_for("AT 1\n", max(1, start + SECONDS - harness.time.monotonic()))
                    for one in crowd)
        took = harness.time.monotonic() - start
        report.check(ready == CLIENTS, f"{ready} of {CLIENTS} sessions open and computing at once",
                     f"after {took:.1f} s")
        workers = len(daemon.workers())
        report.check(workers == CLIENTS, "one worker each", f"{workers} workers")
        codes = [one.end(60) for one in crowd]
        done = sum("DONE" in one.output for one in crowd)
        wrong = [one.errors.decode().strip() for one, code in zip(crowd, codes) if code != 0]
        report.check(codes.count(0) == CLIENTS and done == CLIENTS, f"{done} of {CLIENTS} ended well",
                     wrong[:3])
        harness.wait_until(lambda: not harness.grown(before, daemon.resources()), 10)
        more = harness.grown(before, daemon.resources())
        report.check(not more, "nothing leaked", f"more than before: {more}" if more else before)
    report.exit()


if __name__ == "__main__":
    main()
