#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A real OpenCL program and where its daemons are: several endpoints, dead ones beside living ones, TLS and mutual
TLS; and that what serves the network has no rights.

Usage: failure_endpoints.py
"""
import os
import pathlib
import re
import subprocess

import failure_config
import harness

SECONDS = 60

report = harness.Report("failure_endpoints")


def run(env, name, *arguments):
    done = subprocess.run([str(harness.built(name)), *arguments], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
    return done.returncode, done.stdout.decode()


def platforms(env):
    """The names of Sluice's platforms that a program sees."""
    return re.findall(r"^platform (Sluice \(.*)$", run(env, "list_platforms")[1], re.M)


def sessions(daemon):
    return daemon.log.read_text().count('"session opened"')


def adds(env, number=0):
    """True when a program gets right results from the device of Sluice's platform of this number."""
    code, output = run(env, "vector_add", str(number))
    return code == 0 and "every element right" in output


# One platform for each endpoint, in the list's order, and what a program does on one is done by its daemon.
def check_several():
    with harness.Daemon("ring") as first, harness.Daemon("network") as second:
        env = dict(first.environment(), SLUICE_ENDPOINT=f"{first.endpoint()},{second.endpoint()}")
        report.check(len(platforms(env)) == 2, "two endpoints are two platforms", platforms(env))
        for number, (used, other) in enumerate(((first, second), (second, first))):
            before = sessions(used), sessions(other)
            right = adds(env, number)
            after = sessions(used), sessions(other)
            report.check(right and after[0] > before[0] and after[1] == before[1],
                         f"a program on platform {number} is served by its daemon", (right, before, after))
        again = f"{first.endpoint()},{second.endpoint()},{first.endpoint()}"
        report.check(len(platforms(dict(env, SLUICE_ENDPOINT=again))) == 2, "an endpoint that is named twice counts once")
        check_dead(env, first, second)
        # The same list, one of whose daemons has died.
        second.kill_broker()
        env = dict(env, SLUICE_ENDPOINT=f"{second.endpoint()},{first.endpoint()}")
        report.check(len(platforms(env)) == 1 and adds(env), "a daemon that has died takes its platform only",
                     platforms(env))


# An endpoint where nobody answers is no platform, and no harm to the others, wherever in the list it is.
def check_dead(env, first, second):
    dead = {"no socket": f"unix:{first.directory}/none.sock", "nobody at the address":
            f"127.0.0.1:{harness.free_port()}", "an unknown host": "dns:///sluice-test.invalid:7466"}
    for what, endpoint in dead.items():
        for living in (first, second):
            for where in (f"{endpoint},{living.endpoint()}", f"{living.endpoint()},{endpoint}"):
                seen = dict(env, SLUICE_ENDPOINT=where)
                report.check(len(platforms(seen)) == 1 and adds(seen),
                             f"{what} {'before' if where.startswith(endpoint) else 'behind'} a living "
                             f"{living.kind} endpoint", platforms(seen))
    every = ",".join([*dead.values(), first.endpoint(), second.endpoint()])
    report.check(len(platforms(dict(env, SLUICE_ENDPOINT=every))) == 2, "all of them beside two living ones")


# A program computes over TLS, and over mutual TLS only with a certificate that the daemon's authority has signed.
def check_tls(mutual):
    daemon = harness.Daemon("network")
    folder = daemon.directory
    failure_config.make_certificates(folder, "server", "client", "stranger")
    text = daemon.config.read_text() + f'certificate = "{folder}/server.pem"\nkey = "{folder}/server.key"\n'
    if mutual:
        text += f'client_ca = "{folder}/client.pem"\n'
    daemon.config.write_text(text)
    with daemon:
        plain = {name: value for name, value in daemon.environment().items() if not name.startswith("SLUICE_TLS")}
        authority = dict(plain, SLUICE_TLS_CA=f"{folder}/server.pem")
        client, stranger = (dict(authority, SLUICE_TLS_CERT=f"{folder}/{name}.pem",
                                 SLUICE_TLS_KEY=f"{folder}/{name}.key") for name in ("client", "stranger"))
        good = {"mutual TLS": client} if mutual else {"TLS": authority}
        bad = {"plaintext": plain, "another authority": dict(plain, SLUICE_TLS_CA=f"{folder}/stranger.pem")}
        if mutual:
            bad.update({"no certificate": authority, "a stranger's certificate": stranger})
        kind = "mutual TLS" if mutual else "TLS"
        for what, env in good.items():
            report.check(adds(env), f"a program computes over {what}", run(env, "vector_add")[1])
        before = sessions(daemon)
        for what, env in bad.items():
            report.check(not platforms(env) and not adds(env), f"{what} where the daemon takes {kind}: no platform",
                         platforms(env))
        report.check(sessions(daemon) == before, f"none of them got a session of the daemon with {kind}")


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


# What reads bytes of the network's runs as nobody that matters: not root, no capability, none to be had, and not the
# user of a session's worker either.
def check_gateway():
    if os.geteuid() != 0:
        print("SKIP failure_endpoints: the gateway's user: the daemon is not root's, so all is its own user's")
        return
    daemon = harness.Daemon("network")
    daemon.config.write_text(daemon.config.read_text().replace('[worker]\nuser = "root"\n', ""))
    os.environ.pop("POCL_CACHE_DIR", None)  # The suite's is root's; each worker has its own.
    with daemon:
        application = harness.Application(daemon, "limits", "context")
        report.check(application.wait_for("READY", SECONDS), "a program with a session over the network",
                     application.output + daemon.log.read_text())
        gateways = [pid for pid in daemon.processes() if harness.command_line(pid)[:1] and
                    harness.command_line(pid)[0].endswith("sluice-gateway")]
        workers = daemon.workers()
        found = {pid: status_of(pid) for pid in gateways + workers}
        application.end(SECONDS)
        users = [found[pid]["Uid"][0] for pid in gateways + workers]
        report.check(len(gateways) == 1 and len(workers) == 1, "one gateway and one worker", users)
        for pid, status in found.items():
            name = "gateway" if pid in gateways else "worker"
            ids = {status[key][i] for key in ("Uid", "Gid") for i in range(4)}
            sets = {key: int(status[key][0], 16) for key in ("CapPrm", "CapEff", "CapInh", "CapAmb")}
            report.check("0" not in ids and "0" not in status["Groups"], f"the {name} is not root", (ids, status["Groups"]))
            report.check(not any(sets.values()) and status["NoNewPrivs"] == ["1"],
                         f"the {name} has no capability and gets none", (sets, status["NoNewPrivs"]))
        report.check(len(set(users)) == 2, "the gateway is not its session's worker's user", users)


def main():
    check_several()
    check_tls(mutual=False)
    check_tls(mutual=True)
    check_gateway()
    report.exit()


if __name__ == "__main__":
    main()
