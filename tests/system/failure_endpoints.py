#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A real OpenCL program and where its daemons are: several endpoints, dead ones beside living ones, TLS and mutual
TLS; and that the daemon's helpers have no rights: what serves the network, and what loads graphics drivers.

Usage: failure_endpoints.py
"""
import ctypes
import json
import os
import pathlib
import re
import socket
import subprocess
import unittest.mock

import failure_config
import harness
import inside

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
    told = run(dict(env, SLUICE_ENDPOINT=f"{dead['no socket']},{first.endpoint()}", SLUICE_LOG="warning"), "list_platforms")[1]
    report.check("] warning: " in told and "/none.sock: " in told, "the dead one's reason is a warning", told)
    every = ",".join([*dead.values(), first.endpoint(), second.endpoint()])
    report.check(len(platforms(dict(env, SLUICE_ENDPOINT=every))) == 2, "all of them beside two living ones")


# Who takes the connection and says nothing holds a program's start as long as SLUICE_CONNECT_TIMEOUT_MS says, which the
# log tells with the endpoint's name, and no longer; the daemon beside it is used.
def check_silent():
    with harness.Daemon("ring") as living, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as local, \
            socket.socket() as network:
        path = f"{living.directory}/silent.sock"
        local.bind(path)
        network.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{network.getsockname()[1]}"
        for listener, endpoint, name in ((local, f"unix:{path}", path), (network, address, address)):
            listener.listen(8)
            env = dict(living.environment(), SLUICE_ENDPOINT=f"{endpoint},{living.endpoint()}", SLUICE_LOG="info",
                       SLUICE_CONNECT_TIMEOUT_MS="3000")
            _, output = run(env, "list_platforms")
            told = re.search(rf"{re.escape(name)}: .*within 3000 ms", output)
            report.check(output.count("platform Sluice (") == 1 and told, f"{endpoint.split('/')[0]} that is silent is given "
                         "up when SLUICE_CONNECT_TIMEOUT_MS says", output)


# gRPC aborts a process whose GRPC_POLL_STRATEGY names no way to wait that it has. That ends none of ours, and no
# application: daemon, driver, libsluice and sluicectl work as without the variable, which is the application's to keep.
def check_poll_strategy():
    for value in ("epollex", "none", "", "poll"):
        with unittest.mock.patch.dict(os.environ, GRPC_POLL_STRATEGY=value), \
                harness.Daemon("ring") as local, harness.Daemon("network") as remote:
            where = f"with GRPC_POLL_STRATEGY={value}"
            for daemon in (local, remote):
                env = daemon.environment()
                report.check(adds(env), f"a program computes on a {daemon.kind} endpoint {where}", run(env, "vector_add"))
                told = subprocess.run([str(harness.built("sluicectl")), "devices"], env=env, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
                report.check(told.returncode == 0, f"sluicectl lists the devices of a {daemon.kind} endpoint {where}", told)
            both = dict(local.environment(), SLUICE_ENDPOINT=f"{remote.endpoint()},{local.endpoint()}")
            report.check(len(platforms(both)) == 2, f"both are in a list {where}", platforms(both))
            with subprocess.Popen([str(harness.built("resource_frames")), "produce", "1", "16", "16"],
                                  env=local.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT) as producer:
                told = producer.stdout.readline()
                report.check(told.startswith(b"frames "), f"libsluice makes a resource {where}", told)
                producer.kill()
            warned = f'"GRPC_POLL_STRATEGY={value} ' in local.log.read_text()
            report.check(warned == (value != "poll"), f"the daemon's log says that it is ignored {where}",
                         local.log.read_text())
    with unittest.mock.patch.dict(os.environ, GRPC_POLL_STRATEGY="epollex"):
        code = subprocess.run([str(harness.built("sluicectl")), "run", "--private", "--", "sh", "-c",
                               'test "$GRPC_POLL_STRATEGY" = epollex'], timeout=SECONDS, check=False).returncode
        report.check(code == 0, "a program that `sluicectl run --private` starts keeps the variable", code)
        with harness.Daemon("network") as daemon:
            told = subprocess.run([str(harness.built("sluicectl")), "run", "--endpoint", daemon.endpoint(), "--",
                                   str(harness.built("vector_add"))], env=daemon.environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
            report.check(told.returncode == 0 and b"no daemon" not in told.stdout, "`sluicectl run` reaches a network "
                         "endpoint with it", told)


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
    harness.let_others_run()
    daemon = harness.Daemon("network")
    daemon.config.write_text(daemon.config.read_text().replace('[worker]\nuser = "root"\n', ""))
    os.environ.pop("POCL_CACHE_DIR", None)  # The suite's is root's; each worker has its own.
    with daemon:
        application = harness.Application(daemon, "limits", "context")
        report.check(application.wait_for("READY", SECONDS), "a program with a session over the network",
                     application.output + daemon.log.read_text())
        gateways = [pid for pid in daemon.processes() if harness.program(pid).endswith("sluice-gateway")]
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


def landlock_version():
    create_ruleset, version = 444, 1  # The same number on every processor.
    return ctypes.CDLL(None).syscall(create_ruleset, None, 0, version)


def process_named(daemon, name):
    found = [pid for pid in daemon.processes() if harness.program(pid).endswith(name)]
    return found[0] if len(found) == 1 else None


# Whoever takes over the gateway or the allocator reads none of the host's files, also those that their users may, and
# reaches nobody by TCP; and can do what it is there for.
def check_helpers_files():
    reason = inside.MISSING or ("" if os.geteuid() == 0 else "only root looks from inside") or (
        "" if landlock_version() > 0 else "this kernel has no landlock")
    if reason:
        print(f"SKIP failure_endpoints: what the helpers reach: {reason}")
        return
    daemon = harness.Daemon("network")
    with daemon:
        outside = daemon.directory / "everybodys"
        outside.write_text("text")
        producer = subprocess.Popen([str(harness.built("resource_frames")), "produce", "1", "16", "16"],
                                    env=dict(daemon.environment(), SLUICE_ENDPOINT=f"unix:{daemon.socket}"),
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = producer.stdout.readline()  # What opens its resource: the allocator has made the memory.
        for name in ("gateway", "allocator"):
            pid = process_named(daemon, f"sluice-{name}")
            if not report.check(pid is not None, f"there is a process of the {name}", said):
                continue
            with inside.Inside(pid) as it:
                opened = {path: it.open(path) for path in (str(outside), "/etc/passwd", f"/proc/{os.getpid()}/status")}
                report.check(set(opened.values()) <= {"EACCES", "ENOENT"}, f"the {name} opens none of the host's files", opened)
                made = it.open(f"{daemon.temporary}/{name}", os.O_CREAT | os.O_WRONLY)
                report.check(made in ("EACCES", "ENOENT"), f"the {name} makes no file", made)
                report.check(it.open("/usr/lib/os-release") == "ok", f"the {name} opens what libraries need")
                ports = it.connect(daemon.port), it.bind(harness.free_port())
                report.check(ports == ("EPERM", "EPERM"), f"the {name} connects to no port, and listens on no other",
                             ports)
                made = {kind: it.socket(*kind) for kind in (
                    (socket.AF_INET, socket.SOCK_STREAM, 262),  # MPTCP
                    (socket.AF_INET6, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM),
                    (socket.AF_NETLINK, socket.SOCK_RAW), (socket.AF_VSOCK, socket.SOCK_STREAM))}
                report.check(set(made.values()) == {"EPERM"}, f"the {name} makes no socket of any kind", made)
        producer.kill()
        producer.wait()
        report.check(adds(daemon.environment()), "a program computes over the network as before")


# A virtual machine's memory changes while the daemon runs: who connects later is told what there is, on every way.
def check_memory():
    if os.geteuid() != 0:
        print("SKIP failure_endpoints: the machine's memory: only root makes another of it")
        return
    daemon = harness.Daemon("network")
    told = {}  # Each file that drivers read, and ours in its place.
    mounts = []
    for number, name in enumerate(["/proc/meminfo", *map(str, pathlib.Path("/sys/devices/system/node").glob("node*/meminfo"))]):
        told[name] = daemon.directory / f"meminfo{number}"
        mounts.append(f"mount --bind {told[name]} {name}")

    def give(kibibytes):
        for name, ours in told.items():
            text = pathlib.Path(name).read_text()
            ours.write_text(re.sub(r"(MemTotal: +)\d+", rf"\g<1>{kibibytes}", text))

    def memory(endpoint):
        listed = subprocess.run([str(harness.built("sluicectl")), "devices", "--json", "--endpoint", endpoint],
                                stdout=subprocess.PIPE, timeout=SECONDS, check=False)
        return [device["global_memory_bytes"] for platform in json.loads(listed.stdout)["platforms"]
                for device in platform["devices"]]

    give(4 << 20)
    daemon.prefix = ["unshare", "-m", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]
    with daemon:
        harness.wait_until(lambda: harness.accepts(daemon.address, daemon.port), SECONDS)
        endpoints = (f"unix:{daemon.socket}", daemon.endpoint())
        before = [memory(endpoint) for endpoint in endpoints]
        give(6 << 20)
        for endpoint, first in zip(endpoints, before):
            grown = harness.wait_until(lambda where=endpoint, least=max(first): min(memory(where)) > least, 30, 0.5)
            report.check(grown and max(first) < 4 << 30, f"{endpoint.split('/')[0]}: the machine's memory has grown, and "
                         "its device's", (first, memory(endpoint)))
        probes = daemon.log.read_text().count("devices found")
        report.check(probes == 2, "the devices were asked once again", probes)


# Groups open device nodes, which are no business of the gateway's.
def check_gateways_groups():
    if os.geteuid() != 0:
        print("SKIP failure_endpoints: the gateway's groups: the daemon is not root's")
        return
    harness.let_others_run()
    daemon = harness.Daemon("network")
    groups = daemon.directory / "group"
    groups.write_text(pathlib.Path("/etc/group").read_text() + "sluice-test:x:54321:nobody\n")
    (daemon.directory / "cache").mkdir()
    daemon.prefix = ["unshare", "-m", "sh", "-c", f'mount --bind {groups} /etc/group && exec "$@"', "sh"]
    daemon.config.write_text(daemon.config.read_text().replace(
        'user = "root"', f'user = "nobody"\ncache_directory = "{daemon.directory}/cache"'))
    os.environ.pop("POCL_CACHE_DIR", None)
    with daemon:
        harness.wait_until(lambda: harness.accepts(daemon.address, daemon.port), SECONDS)
        application = harness.Application(daemon, "limits", "context")
        report.check(application.wait_for("READY", SECONDS), "a program with a session of a named user's",
                     application.output + daemon.log.read_text())
        gateway = process_named(daemon, "sluice-gateway")
        found = {pid: status_of(pid)["Groups"] for pid in (gateway, *daemon.workers()) if pid is not None}
        application.end(SECONDS)
        report.check(found.pop(gateway, None) == [], "the gateway has no supplementary group", found)
        report.check(["54321" in one for one in found.values()] == [True], "its session's worker has its user's", found)


def main():
    check_several()
    check_silent()
    check_poll_strategy()
    check_tls(mutual=False)
    check_tls(mutual=True)
    check_gateway()
    check_gateways_groups()
    check_helpers_files()
    check_memory()
    report.exit()


if __name__ == "__main__":
    main()
