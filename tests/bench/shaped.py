#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Remote sustained transfer against iperf3, on loopback and on links shaped to 1 and to 10 Gbit/s.

    tests/bench/shaped.py [--rates 1,10] [--out FILE]      as root

Two network namespaces joined by a veth pair stand for two hosts; tbf shapes both directions. In one run and
per link, iperf3 and then sluice_bench --sustained move data both ways. The budget is 0.9 of what iperf3
moves on a shaped link; on loopback the processor is the limit, so the ratio is only
reported. Everything that is set up is taken down again. Python 3 standard library only.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
import harness  # noqa: E402

SERVER_ADDRESS, CLIENT_ADDRESS = "10.203.77.1", "10.203.77.2"
BUDGET = 0.9


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


class Link:
    """Two namespaces and a shaped veth pair between them."""

    def __init__(self, gigabits):
        self.server, self.client = f"sluice-{os.getpid()}-s", f"sluice-{os.getpid()}-c"
        self.gigabits = gigabits

    def __enter__(self):
        for name in (self.server, self.client):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "veth-s", "netns", self.server, "type", "veth", "peer", "name", "veth-c",
            "netns", self.client)
        for name, device, address in ((self.server, "veth-s", SERVER_ADDRESS),
                                      (self.client, "veth-c", CLIENT_ADDRESS)):
            run("ip", "-n", name, "address", "add", f"{address}/30", "dev", device)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", device, "up")
            # A burst of 2 ms of the rate: smaller starves a fast link, larger hides the shaping.
            run("tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", "rate",
                f"{self.gigabits}gbit", "burst", str(self.gigabits * 250_000), "latency", "20ms")
        return self

    def __exit__(self, *unused):
        for name in (self.server, self.client):
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def on_server(self):
        return ["ip", "netns", "exec", self.server]

    def on_client(self):
        return ["ip", "netns", "exec", self.client]


class Loopback:
    """This machine talking to itself: no namespaces."""

    gigabits = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        pass

    def on_server(self):
        return []

    on_client = on_server


def iperf_gbs(link, address, port, reverse):
    """GB/s of one TCP stream; reverse: from the server to the client."""
    server = subprocess.Popen(link.on_server() + ["iperf3", "-s", "-1", "-B", address, "-p", str(port)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    command = link.on_client() + ["iperf3", "-c", address, "-p", str(port), "-t", "4", "-O", "1", "-J"]
    answer = {}

    def measured():
        result = subprocess.run(command + (["-R"] if reverse else []), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, check=False)
        answer.update(json.loads(result.stdout or b"{}"))
        return "error" not in answer and result.returncode == 0

    try:
        if not harness.wait_until(lambda: answer.clear() or measured(), 20, 0.1):
            sys.exit(f"FAIL shaped: iperf3 says {answer.get('error')}")
    finally:
        if server.poll() is None:
            server.terminate()
        server.wait()
    return answer["end"]["sum_received"]["bits_per_second"] / 8e9


def sluice_gbs(link, address):
    """GB/s of writes and of reads through the network transport."""
    with harness.Daemon("network", prefix=link.on_server(), address=address) as daemon:
        env = dict(daemon.environment(), SLUICE_ALLOW_PLAINTEXT="1")
        command = link.on_client() + [str(harness.built("sluice_bench")), "--sustained"]
        if not harness.wait_until(lambda: subprocess.run(
                link.on_client() + ["bash", "-c", f": </dev/tcp/{address}/{daemon.port}"],
                stderr=subprocess.DEVNULL, check=False).returncode == 0, 30, 0.1):
            sys.exit(f"FAIL shaped: nobody listens on {address}:{daemon.port}\n{daemon.log.read_text()}")
        result = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=300, check=False)
        if result.returncode != 0:
            sys.exit(f"FAIL shaped: sluice_bench: {result.stderr.decode()}\n{daemon.log.read_text()}")
        return json.loads(result.stdout)


def measure(link, address):
    rows = []
    with link:
        sluice = sluice_gbs(link, address)
        for name, reverse in (("write", False), ("read", True)):
            iperf = iperf_gbs(link, address, harness.free_port(), reverse)
            value = sluice[f"sustained_{name}_gbs"]
            good = value >= BUDGET * iperf
            rows.append({"link": f"{link.gigabits} Gbit/s" if link.gigabits else "loopback",
                         "direction": name, "iperf3_gbs": iperf, "sluice_gbs": value,
                         "ratio": value / iperf, "budget": BUDGET if link.gigabits else None,
                         "verdict": ("pass" if good else "MISS") if link.gigabits else "reported"})
    return rows


def main():
    parser = argparse.ArgumentParser(description="Network transfer against iperf3 on shaped links.")
    parser.add_argument("--rates", default="1,10", help="Gbit/s, comma-separated; empty: loopback only")
    parser.add_argument("--out", type=pathlib.Path, help="also write the rows as JSON")
    options = parser.parse_args()
    rates = [int(rate) for rate in options.rates.split(",") if rate]
    if rates and os.geteuid() != 0:
        parser.error("network namespaces need root; --rates '' measures loopback only")
    rows = measure(Loopback(), "127.0.0.1")
    for rate in rates:
        rows += measure(Link(rate), SERVER_ADDRESS)
    print("| link | direction | iperf3 (GB/s) | Sluice (GB/s) | ratio | budget | |")
    print("| --- | --- | ---: | ---: | ---: | --- | --- |")
    for row in rows:
        print(f"| {row['link']} | {row['direction']} | {row['iperf3_gbs']:.3g} | {row['sluice_gbs']:.3g} | "
              f"{row['ratio']:.2f} | {'>= 0.9' if row['budget'] else ''} | {row['verdict']} |")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
