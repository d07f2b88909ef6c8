#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Every key of the configuration's [limits] does what it says: what is over it gets the documented code, at
once; what is within it works, and so does what comes after something was given back.

Usage: failure_limits.py ring|network
"""
import harness

KIND = harness.kind_argument()
report = harness.Report(f"failure_limits {KIND}")

OUT_OF_RESOURCES = -5
OUT_OF_HOST_MEMORY = -6
MEM_OBJECT_ALLOCATION_FAILURE = -4
BUILD_PROGRAM_FAILURE = -11
PROFILING_INFO_NOT_AVAILABLE = -7
EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14
INVALID_EVENT_WAIT_LIST = -57


def run(limits, *arguments, seconds=120):
    """The program's run under a daemon with these limits; a check fails if it does not end well."""
    with harness.Daemon(KIND, limits=limits) as daemon:
        application = harness.Application(daemon, "limits", *arguments)
        code = application.end(seconds)
        log = daemon.log.read_text()
    report.check(code == 0, f"{' '.join(arguments)} ends", f"exit {code}\n{application.errors.decode()}"
                 f"{application.output[-500:]}{log[-1500:] if code else ''}")
    return application, log


def in_flight():
    most = 64
    application, _ = run(f"in_flight_commands_per_session = {most}", "in-flight", str(most))
    for order, every in (("in_order", 1), ("in_order", 2 * most + 2), ("in_order", 7),
                         ("out_of_order", 1), ("out_of_order", 7)):
        accepted = application.value(f"accepted_{order}_{every}")
        refused = application.value(f"refused_{order}_{every}")
        report.check(accepted == most and refused == OUT_OF_RESOURCES,
                     f"in flight, {order}, an event every {every}: {most} and no more",
                     f"{accepted} accepted, then {refused}")
    report.check(application.value("used_again") == 1, "what has ended is in flight no more")
    application, _ = run("in_flight_commands_per_session = 0", "in-flight", "300")
    report.check(application.value("accepted_in_order_1") == 601, "in flight, 0: no limit",
                 application.value("accepted_in_order_1"))


def build_time():
    application, log = run("build_time_ms = 1500", "build")
    took = application.value("build_ms")
    report.check(application.value("build") == BUILD_PROGRAM_FAILURE, "an endless build fails",
                 application.value("build"))
    report.check(took is not None and 1400 <= took < 10000, "when its time is over", f"{took} ms")
    report.check(application.value("build_status") == -2 and application.value("log_code") == 0
                 and "build_time_ms" in application.output, "its log says why", application.output)
    report.check(application.value("notified") == 1, "the context is told of the session's end")
    report.check(application.value("new_context") == 0, "a new context works")
    report.check("build_time_ms" in log, "the daemon's log names the limit", log[-400:])


def kernel_time():
    limit = 1000
    application, log = run(f"kernel_time_ms = {limit}", "kernel", str(limit))
    for key, what in (("short", "short kernels for longer than that, in order"), ("held", "one that is held for longer"),
                      ("short_out_of_order", "short kernels for longer than that, out of order")):
        report.check(application.value(key) == 0, f"kernel_time_ms: {what}", application.value(key))
    took = application.value("endless_ms")
    report.check(application.value("endless") not in (0, None), "kernel_time_ms: clFinish says that an endless kernel failed",
                 application.value("endless"))
    report.check(took is not None and limit <= took < 10 * limit, "kernel_time_ms: when its time is over", f"{took} ms")
    report.check(application.value("notified") == 1 and "kernel_time_ms" in application.output,
                 "kernel_time_ms: the context is told, by the key's name", application.output[-500:])
    report.check(application.value("new_context") == 0, "kernel_time_ms: a new context works")
    report.check("kernel_time_ms" in log, "the daemon's log names kernel_time_ms", log[-400:])


def memory():
    size = 64 << 20
    application, _ = run(f"memory_bytes_per_session = {size}", "memory", str(size))
    made = application.value("buffers")
    report.check(made in (3, 4), "buffers up to the memory limit", made)
    report.check(application.value("refused") in (MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES),
                 "the one over it is refused", application.value("refused"))
    report.check(application.value("after_release") == 0, "memory given back can be had again")


def objects():
    application, _ = run("objects_per_session = 500", "objects", "500")
    made = application.value("objects")
    report.check(made is not None and 450 <= made <= 500, "objects up to the limit", made)
    report.check(application.value("refused") == OUT_OF_RESOURCES, "the one over it is refused",
                 application.value("refused"))
    report.check(application.value("after_release") == 0, "an object given back makes room")


def events():
    """Each call's codes are of its section, or say that there is no room; clEnqueue* have no code for it but later."""
    application, _ = run("objects_per_session = 100", "events", "100")
    no_room = {0, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY}
    failed_list = no_room | {EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST}
    for call, allowed in (("enqueue", no_room), ("user", no_room), ("finish", no_room), ("wait", failed_list),
                          ("read", failed_list), ("profile", no_room | {PROFILING_INFO_NOT_AVAILABLE})):
        codes = [line.split()[1:] for line in application.output.splitlines() if line.startswith(f"codes_{call} ")]
        report.check(len(codes) == 1 and codes[0] and set(map(int, codes[0])) <= allowed,
                     f"commands beyond the limit: {call}", codes)
    report.check(f"error {INVALID_EVENT_WAIT_LIST} " not in application.output, "no wait list is blamed",
                 application.output[-500:])
    report.check(application.value("after_release") == 0, "events given back make room",
                 application.value("after_release"))


def program_bytes():
    application, _ = run('program_bytes = "1MiB"', "program", str(1 << 20))
    report.check(application.value("within") == 0, "a source of program_bytes", application.value("within"))
    report.check(application.value("over") == OUT_OF_HOST_MEMORY, "one byte more is refused",
                 application.value("over"))


def waits():
    """One pending event, named so often that the command would be larger than the daemon takes."""
    application, _ = run("program_bytes = 1024", "waits", str(8 << 20), seconds=60)
    codes = [application.value(key) for key in ("enqueue", "wait", "status", "finish")]
    report.check(codes == [0, 0, 0, 0], "a wait list may name an event eight million times", codes)


def sessions():
    """max_sessions, max_sessions_per_user and max_network_sessions: the second context is refused."""
    keys = ["max_sessions", "max_sessions_per_user"] + ["max_network_sessions"] * (KIND == "network")
    for key in keys:
        with harness.Daemon(KIND, limits=f"{key} = 1") as daemon:
            first = harness.Application(daemon, "limits", "context")
            held = first.wait_for("READY", 30)
            second = harness.Application(daemon, "limits", "context")
            second.end(30)
            refused = second.value("context")
            first.end(30)

            def room():  # The broker hears of a worker's end a moment after that.
                third = harness.Application(daemon, "limits", "context")
                third.end(30)
                return third.value("context") == 0
            again = harness.wait_until(room, 10)
        report.check(held and refused not in (0, None), f"{key} = 1: the second is refused", refused)
        report.check(again, f"{key} = 1: there is room again afterwards", refused)


def connections():
    """A connection over the limit sees no platform; the first one is not harmed."""
    if KIND != "ring":
        return
    for key in ("max_connections", "max_connections_per_user"):
        with harness.Daemon(KIND, limits=f"{key} = 1") as daemon:
            held = False
            # The harness's own connection may not have been seen to end yet.
            for _ in range(20):
                first = harness.Application(daemon, "limits", "context")
                held = first.wait_for("READY", 30)
                if held:
                    break
            second = harness.Application(daemon, "limits", "context")
            code = second.end(30)
            ended = first.end(30)
        report.check(held and ended == 0 and code == 1, f"{key} = 1: the second finds no platform",
                     f"{held} {ended} {code}")


def worker_memory():
    """The kernel holds a worker to its memory; sessions of ordinary size work within it."""
    with harness.Daemon(KIND, limits='worker_memory_bytes = "4GiB"') as daemon:
        application = harness.Application(daemon, "limits", "context")
        ready = application.wait_for("READY", 30)
        held = [line.split()[3:5] for pid in daemon.workers()
                for line in (harness.pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines())
                if line.startswith("Max data size")]
        application.end(30)
    report.check(ready and held == [[str(4 << 30)] * 2], "worker_memory_bytes is the worker's RLIMIT_DATA", held)


in_flight()
build_time()
kernel_time()
worker_memory()
memory()
objects()
events()
program_bytes()
waits()
sessions()
connections()
report.exit()
