#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Many applications of mixed behaviour, locally and over a network that delays and cuts, while applications, workers,
the gateway and the broker are killed and stopped at random.

Every result is checked (programs/chaos.c). A lost session has a documented code, and a new context works. Once the
storm is over nothing more is lost, and when all have left there is no process, descriptor, memory file, SysV object,
temporary file or memory of the broker's more than before. The same seed makes the same choices, not the same moments.

Usage: chaos.py [--clients N] [--seconds S] [--seed NUMBER]
"""
import argparse
import asyncio
import collections
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

import harness

CALM_SECONDS = 15
HANG_SECONDS = 120
NO_PLATFORM = 6
BROKER_GROWS_BYTES = 16 << 20
BROKER_PAUSE = 20  # Seconds between two ends of the broker.


class Links:
    """A proxy before the gateway: every connection is delayed by a few milliseconds, and may be cut."""

    def __init__(self, port, generator):
        self.target, self.random = port, generator
        self.port = harness.free_port()
        self.writers = set()
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        ready.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        try:
            there = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, there[1])
        self.writers.add(pair)
        await asyncio.gather(self._pump(reader, pair[1]), self._pump(there[0], pair[0]))
        for one in pair:
            one.transport.abort()
        self.writers.discard(pair)

    async def _pump(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                await asyncio.sleep(self.random.random() * 0.004)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.transport.abort()

    def cut(self, part):
        """Cuts this part of the connections, 0 to 1."""
        def now():
            for pair in list(self.writers):
                if self.random.random() < part:
                    for one in pair:
                        one.transport.abort()
        self.loop.call_soon_threadsafe(now)


class Client:
    def __init__(self, environment, seed, output):
        self.seed, self.output = seed, output
        self.started = time.monotonic()
        with open(output, "wb") as file:
            self.process = subprocess.Popen([str(harness.built("chaos")), str(seed)], env=environment,
                                            stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT)

    def lines(self, beginning):
        return [line for line in self.output.read_text(errors="replace").splitlines() if line.startswith(beginning)]

    def last_words(self):
        return self.output.read_text(errors="replace")[-600:]

    def end(self, seconds):
        """Its exit code once it has been told to end; None if it did not."""
        self.process.stdin.close()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def sysv_objects():
    return sum(len(pathlib.Path(f"/proc/sysvipc/{kind}").read_text().splitlines()) for kind in ("shm", "sem", "msg"))


class Storm:
    def __init__(self, daemon, arguments, report):
        self.daemon, self.report = daemon, report
        self.random = random.Random(arguments.seed)
        self.links = Links(daemon.port, random.Random(arguments.seed + 1))
        self.count = arguments.clients
        self.clients = []
        self.done = collections.Counter()
        self.faults = []
        self.rounds = self.losses = 0
        self.next_seed = arguments.seed * 100000
        self.outage = time.monotonic()  # When clients last may have found no daemon,
        self.broker_began = self.outage  # and when this broker began.

    def start_client(self):
        self.next_seed += 1
        environment = self.daemon.environment()
        local = self.next_seed % 3 != 0
        environment["SLUICE_ENDPOINT"] = f"unix:{self.daemon.socket}" if local else f"127.0.0.1:{self.links.port}"
        output = self.daemon.directory / f"chaos-{self.next_seed}.txt"
        self.clients.append(Client(environment, self.next_seed, output))

    def account(self, client, code, expected):
        """Of a client that has ended."""
        rounds = client.lines(("ROUNDS", "DONE"))
        if rounds:
            self.rounds += int(re.search(r"\d+", rounds[-1]).group())
        self.losses += len(client.lines("LOST"))
        # One that was starting while there was no daemon to be found has no device, and says so.
        excused = code == NO_PLATFORM and client.started <= self.outage + 5
        if code not in expected and not excused:
            self.faults.append(f"client {client.seed} ended with {code}: {client.last_words()}")

    def look_after_clients(self):
        for client in list(self.clients):
            code = client.process.poll()
            if code is not None:
                self.clients.remove(client)
                self.account(client, code, expected=())
        while len(self.clients) < self.count:
            self.start_client()

    def kill_client(self):
        client = self.random.choice(self.clients)
        client.process.kill()
        self.clients.remove(client)
        self.account(client, client.process.wait(), expected=(-signal.SIGKILL,))

    def signal_worker(self, number):
        workers = self.daemon.workers()
        if not workers:
            return None
        pid = self.random.choice(workers)
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return None
        return pid

    def kill_worker(self):
        self.signal_worker(signal.SIGKILL)

    def pause_worker(self):
        pid = self.signal_worker(signal.SIGSTOP)
        if pid is not None:
            time.sleep(self.random.random() * 0.3)
            if harness.alive(pid):
                os.kill(pid, signal.SIGCONT)

    def pause_client(self):
        client = self.random.choice(self.clients)
        client.process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.random() * 0.3)
        client.process.send_signal(signal.SIGCONT)

    def cut_links(self):
        self.outage = time.monotonic()
        self.links.cut(self.random.choice((0.2, 1)))

    def kill_gateway(self):
        self.outage = time.monotonic()
        for pid in self.daemon.processes():
            if harness.program(pid).endswith("sluice-gateway"):
                os.kill(pid, signal.SIGKILL)

    def kill_broker(self):
        if time.monotonic() - self.broker_began < BROKER_PAUSE:
            return
        self.daemon.kill_broker()
        self.daemon.start()
        self.outage = self.broker_began = time.monotonic()

    def reload(self):
        self.daemon.process.send_signal(signal.SIGHUP)

    def ctl(self, *arguments):
        return subprocess.run([str(harness.built("sluicectl")), *arguments, "--admin-socket",
                               str(self.daemon.admin_socket)], capture_output=True, text=True,
                              timeout=HANG_SECONDS, check=False)

    def list_sessions(self):
        listed = self.ctl("sessions", "--json")
        if listed.returncode != 0:
            self.faults.append(f"sluicectl sessions: {listed.stdout}{listed.stderr}")

    def kill_session(self):
        sessions = json.loads(self.ctl("sessions", "--json").stdout or "{}").get("sessions")
        if sessions:
            self.ctl("kill", self.random.choice(sessions)["session"])

    def rage(self, seconds):
        actions = {self.kill_client: 6, self.kill_worker: 6, self.pause_client: 3, self.pause_worker: 3,
                   self.cut_links: 2, self.kill_gateway: 1, self.kill_broker: 2, self.reload: 1,
                   self.list_sessions: 2, self.kill_session: 3}
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.faults) < 10:
            self.look_after_clients()
            action = self.random.choices(list(actions), list(actions.values()))[0]
            action()
            self.done[action.__name__] += 1
            time.sleep(self.random.random() * 0.5)
        self.look_after_clients()

    def check_calm(self):
        """No session is lost once nobody ends any, and all go on."""
        time.sleep(CALM_SECONDS)  # For those that are beginning again, or find no daemon.
        self.look_after_clients()
        time.sleep(CALM_SECONDS)
        before = {client: (len(client.lines("LOST")), len(client.lines("ROUND"))) for client in self.clients}
        harness.wait_until(lambda: all(len(client.lines("ROUND")) > rounds for client, (_, rounds) in before.items()),
                           HANG_SECONDS, 0.5)
        still = [client.last_words() for client, (_, rounds) in before.items() if len(client.lines("ROUND")) == rounds]
        self.report.check(not still, "afterwards all go on", f"{len(still)} stand still: {still[:2]}" if still else "")
        lost = [client.lines("LOST")[-1] for client, (losses, _) in before.items()
                if len(client.lines("LOST")) > losses]
        self.report.check(not lost, "afterwards nothing is lost", lost[:3])

    def end_clients(self):
        clients, self.clients = self.clients, []
        for client in clients:
            client.process.stdin.close()
        for client in clients:
            code = client.end(HANG_SECONDS)
            if code is None:
                self.faults.append(f"client {client.seed} does not end: {client.last_words()}")
                client.process.kill()
                client.process.wait()
            else:
                self.account(client, code, expected=(0,))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    report = harness.Report("chaos")
    limits = f"max_sessions = {8 * arguments.clients}\nmax_sessions_per_user = {8 * arguments.clients}\n"
    with harness.Daemon("network", limits) as daemon:
        storm = Storm(daemon, arguments, report)
        storm.start_client()
        warm = storm.clients.pop()
        harness.wait_until(lambda: warm.lines("ROUNDS") or warm.process.poll() is not None, HANG_SECONDS)
        if not report.check(warm.end(HANG_SECONDS) == 0, "a first client works", warm.last_words()):
            report.exit()
        harness.wait_until(lambda: not daemon.workers(), 5)
        before = dict(daemon.settled_resources(), sysv=sysv_objects())
        memory = harness.resident_bytes(daemon.process.pid)
        storm.rage(arguments.seconds)
        storm.check_calm()
        storm.end_clients()
        report.check(not storm.faults, f"{arguments.clients} clients for {arguments.seconds} s: every result is right, "
                     "every code documented", "\n".join(storm.faults) or
                     f"{storm.rounds} rounds, {storm.losses} sessions lost and begun again; {dict(storm.done)}")
        report.check(storm.rounds > 10 * arguments.clients and storm.losses > 0, "there was work, and a storm",
                     f"{storm.rounds} rounds, {storm.losses} losses")

        def now():
            return dict(daemon.settled_resources(), sysv=sysv_objects())
        harness.wait_until(lambda: not harness.grown(before, now()), 20)
        more = harness.grown(before, now())
        report.check(not more, "nothing is left", f"more than before: {more}" if more else before)
        growth = harness.resident_bytes(daemon.process.pid) - memory
        report.check(growth < BROKER_GROWS_BYTES, "the broker has not grown", f"{growth >> 10} KiB")
        print(f"chaos: {storm.rounds} rounds, {storm.losses} sessions lost, "
              + ", ".join(f"{name} {count}" for name, count in sorted(storm.done.items())), flush=True)
        left = daemon.stop()
        report.check(not left, "the daemon stops by itself", left)
    report.exit()


if __name__ == "__main__":
    main()
