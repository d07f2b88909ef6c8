#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the worker, the application and the broker, while idle, in a long kernel, in big transfers, in a
build, while a buffer is mapped, and while a shared object is acquired.

No hang, no crash, the codes of a lost session (client_icd/session/README.md), and afterwards no process,
descriptor or memory file more than before. Usage: failure_kill.py ring|network
"""
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import tempfile

import harness

HANG_SECONDS = 60  # Far above what any of this takes; only a hang reaches it.
GONE_SECONDS = 1.0  # A dead application's worker ends within that (README.md).
DEVICE_NOT_AVAILABLE = -2
EVENTS_IN_WAIT_LIST = -14
BUILD_ERROR = -2
MOMENTS = ("idle", "kernel", "transfer", "build", "map", "acquired")
WAITING = ("idle", "map", "acquired")  # Until they are told to go on.

KIND = harness.kind_argument()
report = harness.Report(f"failure_kill {KIND}")


def start_victim(daemon, moment, *rounds):
    victim = harness.Application(daemon, "victim", moment, *rounds)
    if not victim.wait_for("READY", HANG_SECONDS):
        victim.end(0)
        report.check(False, f"victim {moment} reaches its moment", victim.output + victim.errors.decode())
        return None
    return victim


def check_restored(daemon, before, name):
    """All that the session used is given back."""
    harness.wait_until(lambda: not harness.grown(before, daemon.resources()), 5)
    more = harness.grown(before, daemon.resources())
    report.check(not more, f"{name}: nothing leaked", f"more than before: {more}" if more else before)


# The worker dies: commands in flight fail, later calls say that the device is gone, the notify callback
# fires, releases work, and a new context opens a new session.
def kill_worker(daemon, moment):
    name = f"worker killed, {moment}"
    before = daemon.settled_resources()
    victim = start_victim(daemon, moment)
    if victim is None:
        return
    workers = daemon.workers()
    if not report.check(len(workers) == 1, f"{name}: one worker for one session", f"found {workers}"):
        victim.end(0)
        return
    harness.os.kill(workers[0], harness.signal.SIGKILL)
    harness.wait_until(lambda: not harness.alive(workers[0]), 5)
    if moment in WAITING:
        victim.go_on()
    victim.wait_for("DONE", HANG_SECONDS)
    code = victim.end(1)
    if not report.check(code == 0, f"{name}: the application neither hangs nor crashes",
                        f"exit {code}\n{victim.output}{victim.errors.decode()}" if code != 0 else ""):
        return
    ended = {"idle": (0,), "acquired": (DEVICE_NOT_AVAILABLE,), "kernel": (EVENTS_IN_WAIT_LIST, DEVICE_NOT_AVAILABLE),
             "transfer": (DEVICE_NOT_AVAILABLE, EVENTS_IN_WAIT_LIST), "build": (BUILD_ERROR,),
             "map": (DEVICE_NOT_AVAILABLE,)}[moment]
    report.check(victim.value("ended_with") in ended, f"{name}: the call in flight",
                 f"{victim.value('ended_with')}, expected one of {ended}")
    if moment == "kernel":
        status = victim.value("event_status")
        report.check(status is not None and status < 0, f"{name}: the event in flight failed", status)
    if moment == "map":
        report.check(victim.value("mapped_bytes_right") == 1, f"{name}: the mapped memory is still there",
                     victim.output)
    later = {key: victim.value(key) for key in ("later_read", "later_create", "later_finish")}
    report.check(set(later.values()) == {DEVICE_NOT_AVAILABLE}, f"{name}: later calls", later)
    # A launch waits for nothing, so right after the kill it may still have been accepted.
    report.check(victim.value("later_launch") in (0, DEVICE_NOT_AVAILABLE), f"{name}: a later launch",
                 victim.value("later_launch"))
    report.check(victim.value("release") == 0, f"{name}: releases work", victim.value("release"))
    report.check(victim.value("notified") == 1, f"{name}: the context's notify callback was called")
    report.check(victim.value("new_context") == 0, f"{name}: a new context works",
                 victim.value("new_context"))
    # Another worker does what the next context asks; a sub-device was this one's.
    available = {key: victim.value(key) for key in ("later_available", "later_part_available")}
    report.check(available == {"later_available": 1, "later_part_available": 0},
                 f"{name}: the device is available, its sub-device is not", available)
    check_restored(daemon, before, name)


# The application dies: its worker is gone within a second, whatever it was doing.
def kill_worker_of_new_context(daemon):
    """Its worker ends while clCreateContext waits for it: the application sees the context that it asked for."""
    application = harness.Application(daemon, "again")
    report.check(application.wait_for("READY", HANG_SECONDS), "an application with a context", application.output)
    worker = daemon.workers()[0]
    os.kill(worker, signal.SIGSTOP)  # It answers nothing, so that nothing is over before it is killed.
    application.process.stdin.write(b"new\n")
    application.process.stdin.flush()
    # The main thread waits, and no longer for its input (read, 0 on x86-64).
    harness.wait_until(lambda: pathlib.Path(f"/proc/{application.process.pid}/syscall").read_text().split()[0] not in
                       ("0", "running"), HANG_SECONDS, 0.01)
    os.kill(worker, signal.SIGKILL)
    seen = application.wait_for("new ", HANG_SECONDS)
    report.check(seen and "new 0" in application.output, "a context asked of a worker that dies is made in another",
                 application.output)
    application.end(HANG_SECONDS)


def kill_application(daemon, moment):
    name = f"application killed, {moment}"
    before = daemon.settled_resources()
    victim = start_victim(daemon, moment)
    if victim is None:
        return
    workers = daemon.workers()
    report.check(len(workers) == 1, f"{name}: one worker for one session", f"found {workers}")
    victim.process.kill()
    start = harness.time.monotonic()
    gone = harness.wait_until(lambda: not any(map(harness.alive, workers)), 10)
    took = harness.time.monotonic() - start
    victim.end(1)
    report.check(gone and took <= GONE_SECONDS, f"{name}: its worker is gone within a second",
                 f"after {took:.2f} s")
    check_restored(daemon, before, name)


# The application dies while its worker is stopped (a debugger, or a kernel that stops it): killed after the grace.
def kill_application_of_stopped(daemon):
    name = "application killed, its worker stopped"
    before = daemon.settled_resources()
    victim = start_victim(daemon, "idle")
    if victim is None:
        return
    workers = daemon.workers()
    for pid in workers:
        harness.os.kill(pid, harness.signal.SIGSTOP)
    victim.process.kill()
    victim.end(1)
    gone = harness.wait_until(lambda: not any(map(harness.alive, workers)), 10)
    report.check(len(workers) == 1 and gone, f"{name}: its worker is gone", workers)
    check_restored(daemon, before, name)


# The application dies and leaves a forked child behind that uses no OpenCL: its worker goes all the same.
def kill_parent(daemon):
    name = "application killed, its child left"
    before = daemon.settled_resources()
    forker = harness.Application(daemon, "forker")
    if not report.check(forker.wait_for("READY", HANG_SECONDS), f"{name}: it runs", forker.output):
        forker.end(0)
        return
    workers = daemon.workers()
    children = harness.descendants(forker.process.pid)
    report.check(len(workers) == 1 and len(children) == 1, f"{name}: one worker, one child", (workers, children))
    forker.process.kill()
    start = harness.time.monotonic()
    gone = harness.wait_until(lambda: not any(map(harness.alive, workers)), 10)
    took = harness.time.monotonic() - start
    report.check(all(map(harness.alive, children)), f"{name}: the child is still there", children)
    report.check(gone and took <= GONE_SECONDS, f"{name}: its worker is gone within a second",
                 f"after {took:.2f} s")
    forker.end(5)
    check_restored(daemon, before, name)


# A client that leaves before its session is made is no event: the log says that it ended, and nothing else of it.
def leave_at_once(daemon):
    name = "left at once"
    before = len(daemon.log.read_text())
    with harness.socket.socket(harness.socket.AF_UNIX, harness.socket.SOCK_SEQPACKET) as client:
        client.settimeout(HANG_SECONDS)
        client.connect(str(daemon.socket))
        client.send(b"SLCE\1\0\x48\1" + bytes(320))  # Hello
        harness.socket.recv_fds(client, 536, 1)
        client.send(b"SLCE\3\0\x18\0" + bytes(16))  # OpenSession
        opened, descriptors, _, _ = harness.socket.recv_fds(client, 320, 1)
        for fd in descriptors:
            harness.os.close(fd)
        report.check(len(descriptors) == 1, f"{name}: a session was opened", opened[:24])
        lines = []

        def ended():
            lines[:] = daemon.log.read_text()[before:].splitlines()
            return any('"session ended"' in line for line in lines)
        report.check(harness.wait_until(ended, 20), f"{name}: its worker ends", lines)
    loud = [line for line in lines if " info " not in line]
    report.check(not loud, f"{name}: the log has no warning of it", loud or lines)


# The broker dies and is started again on the same socket: running local sessions go on and new ones open.
# A network session may end with its gateway, but with a documented code and without a hang.
def kill_broker(moment):
    name = f"broker killed, {moment}"
    with harness.Daemon(KIND) as daemon:
        victim = start_victim(daemon, moment, "3")  # Kernels.
        if victim is None:
            return
        daemon.kill_broker()
        daemon.start()
        if moment not in ("kernel", "build"):
            victim.go_on()
        victim.wait_for("DONE", HANG_SECONDS)
        code = victim.end(1)
        if not report.check(code == 0, f"{name}: the application neither hangs nor crashes",
                            f"exit {code}\n{victim.output}{victim.errors.decode()}" if code != 0 else ""):
            return
        seen = {key: victim.value(key) for key in ("ended_with", "later_launch", "later_read",
                                                   "later_create", "later_finish")}
        allowed = {0} if KIND == "ring" else {0, DEVICE_NOT_AVAILABLE, EVENTS_IN_WAIT_LIST}
        report.check(set(seen.values()) <= allowed, f"{name}: the running session", seen)
        report.check(victim.value("new_context") == 0, f"{name}: a new context works",
                     victim.value("new_context"))
        gone = harness.wait_until(lambda: not daemon.workers(), 5)
        report.check(gone, f"{name}: no worker outlives its application", daemon.workers())


# A driver holds a worker while it starts, so that the worker does not come to look after its client. It ends soon after
# its client all the same, with the broker and without.
def leave_hung_start(broker_dies):
    name = f"a start that hangs, {'its broker gone' if broker_dies else 'with its broker'}"
    with tempfile.TemporaryDirectory(prefix="sluice-test-") as folder:
        os.chmod(folder, 0o755)
        shutil.copytree("/etc/OpenCL/vendors", folder, dirs_exist_ok=True)
        pathlib.Path(folder, "hang.icd").write_text(f"{harness.built('libsession_hang_driver.so')}\n")
        with harness.Daemon(KIND).start_with({"OCL_ICD_VENDORS": folder}) as daemon:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.settimeout(HANG_SECONDS)
                client.connect(str(daemon.socket))

                def ask(kind, body):
                    client.send(struct.pack("<IHH", 0x45434c53, kind, 8 + len(body)) + body)
                    return socket.recv_fds(client, 1024, 4)[1]
                for fd in ask(1, b"".ljust(256, b"\0") + b"hung".ljust(64, b"\0")):
                    os.close(fd)
                channel = ask(3, struct.pack("<IIQ", 0, 0, 1))
                workers = harness.wait_until(daemon.workers, 5)
                hangs = channel and not select.select(channel, [], [], 3)[0]
                report.check(hangs and workers, f"{name}: the worker hangs", daemon.log.read_text()[-1000:])
                if broker_dies:
                    daemon.kill_broker()
                for fd in channel:
                    os.close(fd)
            gone = harness.wait_until(lambda: not daemon.workers(), 10)
            report.check(gone, f"{name}: it does not outlive its client", daemon.workers())
            for pid in daemon.workers():
                os.kill(pid, signal.SIGKILL)
            if broker_dies:
                daemon.start()


# The broker dies with all resources while an application holds one. With the next broker the first of everything
# works: of what the application made before, only the old resource and the old connection are lost.
def kill_broker_of_resources():
    name = "broker killed, a resource held"
    lost = 8  # SLUICE_LOST
    with harness.Daemon(KIND) as daemon:
        application = harness.Application(daemon, "resource_restart")
        if not report.check(application.wait_for("READY", HANG_SECONDS), f"{name}: it runs", application.output):
            application.end(0)
            return
        daemon.kill_broker()
        daemon.start()
        application.go_on()
        application.wait_for("DONE", HANG_SECONDS)
        code = application.end(10)
        report.check(code == 0, f"{name}: the application neither hangs nor crashes",
                     f"exit {code}\n{application.output}{application.errors.decode()}" if code != 0 else "")
        report.check(application.value("old_connection") == lost, f"{name}: its connection is lost", application.output)
        anew = {key: application.value(key) for key in ("connect", "held_resource", "held_object", "held_use",
                                                        "later_resource", "later_object", "later_use")}
        report.check(set(anew.values()) == {0}, f"{name}: everything works at the first attempt", anew)
        report.check(application.value("old_release") not in (0, None), f"{name}: the old turn's release says so",
                     application.value("old_release"))


# A second SIGTERM ends the sessions at once, and they are told why.
def stop_at_once():
    name = "told to stop at once"
    with harness.Daemon(KIND) as daemon:
        harness.os.environ["SLUICE_LOG"] = "warning"
        forker = harness.Application(daemon, "forker")
        del harness.os.environ["SLUICE_LOG"]
        if not report.check(forker.wait_for("READY", HANG_SECONDS), f"{name}: it runs", forker.output):
            forker.end(0)
            return
        draining = "draining: no new sessions"
        daemon.process.terminate()
        heard = harness.wait_until(lambda: draining in daemon.log.read_text(), 5)
        report.check(heard, f"{name}: the daemon has heard the first SIGTERM", "" if heard else daemon.log.read_text())
        report.check(bool(daemon.workers()), f"{name}: the first SIGTERM leaves the session", daemon.workers())
        daemon.process.terminate()
        ended = harness.wait_until(lambda: daemon.process.poll() is not None, 5)
        report.check(ended, f"{name}: the daemon ends")
        report.check(harness.wait_until(lambda: not daemon.workers(), 5), f"{name}: its workers end", daemon.workers())
        forker.end(5)
        said = forker.errors.decode()
        report.check("told to stop at once" in said, f"{name}: the application is told why", said)


# The broker comes back on a machine that has lost a device (PoCL's two drivers stand for two devices): the
# one that is gone says so, and the other is still itself, though it has another place in the list.
def lose_device():
    name = "device lost"
    with harness.Daemon(KIND) as daemon:
        daemon.stop()
        daemon.start_with({"POCL_DEVICES": "basic pthread"})
        devices = harness.Application(daemon, "devices")
        if not report.check(devices.wait_for("READY", HANG_SECONDS) and devices.value("before_1") == 0,
                            f"{name}: two devices at first", devices.output):
            devices.end(0)
            return
        workers = daemon.workers()
        daemon.kill_broker()
        for pid in filter(harness.alive, workers):  # A session that runs would go on.
            harness.os.kill(pid, harness.signal.SIGKILL)
        daemon.start_with({"POCL_DEVICES": "pthread"})
        devices.go_on()
        code = devices.end(HANG_SECONDS)
        report.check(code == 0, f"{name}: the application ends", devices.output + devices.errors.decode())
        report.check(devices.value("after_0") == DEVICE_NOT_AVAILABLE, f"{name}: it is not available",
                     devices.output)
        report.check(devices.value("after_1") == 0, f"{name}: the other one is", devices.output)
        told = {f"{when}_{i}": devices.value(f"{when}_available_{i}") for when in ("before", "after") for i in (0, 1)}
        report.check(told == {"before_0": 1, "before_1": 1, "after_0": 0, "after_1": 1},
                     f"{name}: CL_DEVICE_AVAILABLE says so", told)


def main():
    with harness.Daemon(KIND) as daemon:
        # One whole session first, so that what a daemon keeps after its first client is not a leak.
        warm = harness.Application(daemon, "vector_add")
        code = warm.end(HANG_SECONDS)
        if not report.check(code == 0, "a first session works", warm.errors.decode() if code else ""):
            report.exit()
        harness.wait_until(lambda: not daemon.workers(), 5)
        for moment in MOMENTS:
            kill_worker(daemon, moment)
        kill_worker_of_new_context(daemon)
        for moment in MOMENTS:
            kill_application(daemon, moment)
        kill_application_of_stopped(daemon)
        kill_parent(daemon)
        leave_at_once(daemon)
        left = daemon.stop()
        report.check(not left, "SIGTERM ends the daemon and all of its processes", f"left {left}")
    for moment in MOMENTS:
        kill_broker(moment)
    if KIND == "ring":  # Resources are shared on the daemon's machine.
        kill_broker_of_resources()
        for broker_dies in (False, True):
            leave_hung_start(broker_dies)
    stop_at_once()
    lose_device()
    report.exit()


if __name__ == "__main__":
    main()
