#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""How often a program waits for the daemon over a network whose round trip takes 50 ms: for what only the worker
knows, and not for its creations.

Usage: waits.py
"""
import collections
import re
import socket
import subprocess
import threading
import time

import harness

ONE_WAY_S = 0.025
report = harness.Report("waits")


class SlowLink:
    """Passes TCP connections on to a port of this host; each byte is on its way for ONE_WAY_S."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.target))
            for source, sink in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link = collections.deque()
                arrived = threading.Semaphore(0)
                threading.Thread(target=self._take, args=(source, link, arrived), daemon=True).start()
                threading.Thread(target=self._give, args=(sink, link, arrived), daemon=True).start()

    @staticmethod
    def _take(source, link, arrived):
        data = b"more"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            link.append((time.monotonic() + ONE_WAY_S, data))
            arrived.release()

    @staticmethod
    def _give(sink, link, arrived):
        while True:
            arrived.acquire()
            due, data = link.popleft()
            time.sleep(max(0, due - time.monotonic()))  # The link is what is slow: nothing is waited for.
            try:
                if not data:
                    return sink.shutdown(socket.SHUT_WR)
                sink.sendall(data)
            except OSError:
                return None


def waits_of(daemon, link, *command):
    """(answers, commands) that the program waited for, by its driver's log; None if it failed."""
    env = dict(daemon.environment(), SLUICE_ENDPOINT=f"127.0.0.1:{link.port}", SLUICE_LOG="info")
    done = subprocess.run([str(harness.built(command[0])), *command[1:]], env=env, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    told = re.findall(r"calls waited (\d+) times for answers and (\d+) times for commands", done.stderr)
    if not report.check(done.returncode == 0 and told, f"{' '.join(command)} runs", done.stdout + done.stderr):
        return None
    return int(told[-1][0]), int(told[-1][1])


def main():
    with harness.Daemon("network") as daemon:
        link = SlowLink(daemon.port)
        # The context and the build; and the result.
        waits = waits_of(daemon, link, "vector_add")
        report.check(waits == (2, 1), "vector_add waits for its context, its build and its result", str(waits))
        # The first image and the first sampler besides.
        few = waits_of(daemon, link, "creator", "1")
        report.check(few == (4, 1), "creator waits for the first of each kind", str(few))
        many = waits_of(daemon, link, "creator", "100")
        report.check(few is not None and many == few, "making a hundred times as many objects waits no more often", f"{few} and {many}")


main()
report.exit()
