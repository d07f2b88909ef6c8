#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The network endpoint of sluiced.exe under Wine: the gateway's parts, what a bad [[network]] is told, TLS and tokens
with Linux and Windows clients, and what each side sees when worker, application, gateway or broker is killed, and when
the daemon stops.

usage: gateway.py [PART...]
SLUICE_BUILD_DIR is the Linux build, SLUICE_WINDOWS_BUILD_DIR the Windows one (default: build-windows/).
"""
import concurrent.futures
import hashlib
import os
import pathlib
import signal
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "system"), str(HERE.parent)]

import certificates  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
import limit  # noqa: E402  pylint: disable=wrong-import-position
import wine as wine_module  # noqa: E402  pylint: disable=wrong-import-position
from windows_daemon import BIN, WindowsDaemon  # noqa: E402  pylint: disable=wrong-import-position

HANG_SECONDS = 60  # Above what any of this takes; only a hang reaches it. A victim's are those of an idle machine.
GONE_SECONDS = 2.0  # One for the design's promise, one for Wine.
DEVICE_NOT_AVAILABLE = -2
EVENTS_IN_WAIT_LIST = -14
RIGHT = "every element right"
TOKENS = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210")
REPORT = harness.Report("windows gateway")


def quoted(path):
    """A path as a string of TOML that keeps backslashes."""
    return f"'{wine_module.windows_path(path)}'"


# --- clients of both systems


def on_linux(daemon, program="vector_add", **variables):
    done = subprocess.run(["timeout", "-k", "5", str(HANG_SECONDS), str(harness.built(program))],
                          env={**daemon.environment(), **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def on_windows(daemon, program="vector_add", **variables):
    paths = {name: wine_module.windows_path(value) if os.path.isabs(value) else value
             for name, value in variables.items()}
    return daemon.wine.run([BIN / f"{program}.exe"], seconds=HANG_SECONDS, SLUICE_ENDPOINT=daemon.endpoint(),
                           SLUICE_TEST_KIND="network", **paths)


CLIENTS = (("Linux client", on_linux), ("Windows client", on_windows))


def works(daemon, run, name, **variables):
    code, output = run(daemon, **variables)
    return REPORT.check(code == 0 and RIGHT in output, name, "" if code == 0 else f"{code} {output} {log_of(daemon)}")


def refused(daemon, run, name, why, **variables):
    code, output = run(daemon, SLUICE_LOG="info", **variables)
    good = code not in (0, 124, 137) and why in output
    REPORT.check(good, name, "" if good else f"{code} {output}")


def log_of(daemon):
    return daemon.log.read_text(errors="replace")[-3000:]


# --- its parts


def units(wine):
    """What is held of a session at most, and who is let in, without a network: the Linux tests of it (tests/unit/gateway)."""
    code, output = wine.run_tests([BIN / "gateway_test.exe"], seconds=120)
    REPORT.check(code == 0, "gateway_test", output[-3000:])


# --- what a person is told


def check_config(wine, text):
    file = wine.directory / "checked.toml"
    file.write_text(f"[broker]\nsocket = '\\\\.\\pipe\\sluice-checked'\n[[network]]\n{text}\n")
    return wine.run([BIN / "sluiced.exe", "--check-config", wine_module.windows_path(file)], seconds=60)


def configuration(wine):
    folder = wine.directory / "configuration"
    folder.mkdir()
    certificates.make(folder)
    (folder / "none.txt").write_text("# no token\r\n")
    (folder / "utf16.txt").write_text("0123456789abcdef0123456789abcdef\r\n", encoding="utf-16")
    own = f"certificate = {quoted(folder / 'localhost.pem')}\n"
    for name, text, said in (
            ("a good entry", f'listen = "0.0.0.0:7466"\n{own}key = {quoted(folder / "localhost.key")}', None),
            ("no TLS beyond this machine", 'listen = "0.0.0.0:7466"', "without TLS is refused"),
            ("a file that is not there", f'listen = "127.0.0.1:7466"\ntoken_file = {quoted(folder / "absent")}',
             "absent"),
            ("a key of another certificate", f'listen = "127.0.0.1:7466"\n{own}key = {quoted(folder / "client.key")}',
             "it is not the key of the certificate"),
            ("a token file without tokens", f'listen = "127.0.0.1:7466"\ntoken_file = {quoted(folder / "none.txt")}',
             "it holds no token"),
            ("a token file in UTF-16", f'listen = "127.0.0.1:7466"\ntoken_file = {quoted(folder / "utf16.txt")}',
             "save the file as plain text"),
            ("an address of another machine", 'listen = "192.0.2.1:7466"\nallow_plaintext = true', "ipconfig")):
        code, output = check_config(wine, text)
        REPORT.check((code == 0) == (said is None) and (said or "") in output, f"--check-config: {name}", output)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        file = wine.directory / "taken.toml"
        file.write_text("[broker]\nsocket = '\\\\.\\pipe\\sluice-taken'\n[[network]]\nlisten = "
                        f'"127.0.0.1:{taken.getsockname()[1]}"\n')
        code, output = wine.run([BIN / "sluiced.exe", "--console", "--config", wine_module.windows_path(file)],
                                seconds=60)
        REPORT.check(code not in (0, 124) and "netstat" in output and ":  (" not in output, "a port in use: no start, and the way to find whose",
                     output)


class EverywhereDaemon(WindowsDaemon):
    """On all addresses of the machine."""

    def _config_text(self, limits):
        self.network = "allow_plaintext = true"
        return super()._config_text(limits).replace(f'"{self.address}:', '"0.0.0.0:')


def everywhere(wine):
    with EverywhereDaemon(wine, "network") as daemon:
        for name, run in CLIENTS:
            works(daemon, run, f"all addresses, {name}")
        if not harness.accepts("::1", daemon.port):
            print("SKIP windows gateway: all addresses, IPv6: nobody listens there, or this machine has none")
            return
        code, output = on_linux(daemon, SLUICE_ENDPOINT=f"[::1]:{daemon.port}")
        REPORT.check(code == 0 and RIGHT in output, "all addresses, IPv6 too", output if code else "")


# --- who is let in


class TlsDaemon(WindowsDaemon):
    """With certificates of its own, and the client's asked for."""

    def _config_text(self, limits):
        certificates.make(self.directory)
        self.network = "\n".join(f"{key} = {quoted(self.directory / name)}" for key, name in (
            ("certificate", "localhost.pem"), ("key", "localhost.key"), ("client_ca", "ca.pem")))
        return super()._config_text(limits)

    def endpoint(self):
        return f"localhost:{self.port}"


def tls(wine):
    with TlsDaemon(wine, "network") as daemon:
        authority = {"SLUICE_TLS_CA": str(daemon.directory / "ca.pem")}
        own = {f"SLUICE_TLS_{key}": str(daemon.directory / name)
               for key, name in (("CERT", "client.pem"), ("KEY", "client.key"))}
        for name, run in CLIENTS:
            works(daemon, run, f"mutual TLS, {name}", **authority, **own)
            refused(daemon, run, f"no certificate, {name}: refused, and said why", "set SLUICE_TLS_CERT", **authority)
            refused(daemon, run, f"no authority, {name}: the daemon is not believed", "certificate", **own)
        gone = harness.wait_until(lambda: '"sessions":[]' in "".join(daemon.ctl("sessions", "--json")[1].split()), 10)
        REPORT.check(gone, "TLS: no session is left", log_of(daemon))


def tokens(wine):
    folder = wine.directory / "tokens"
    folder.mkdir()
    # As Windows' editors write.
    (folder / "tokens.txt").write_bytes(b"\xef\xbb\xbf# ours\r\n" + "\r\n".join(TOKENS).encode() + b"\r\n")
    for name, text in (("first", TOKENS[0]), ("second", TOKENS[1]), ("wrong", TOKENS[0][:-1] + "0")):
        (folder / name).write_text(text + "\r\n")
    with WindowsDaemon(wine, "network", network=f"token_file = {quoted(folder / 'tokens.txt')}") as daemon:
        for name, run in CLIENTS:
            for token in ("first", "second"):
                works(daemon, run, f"{token} token, {name}", SLUICE_TOKEN_FILE=str(folder / token))
            refused(daemon, run, f"no token, {name}", "asks for a bearer token")
            refused(daemon, run, f"wrong token, {name}", "does not know the token",
                    SLUICE_TOKEN_FILE=str(folder / "wrong"))
        name = f"token {hashlib.sha256(TOKENS[1].encode()).hexdigest()[:12]}"
        REPORT.check(rf'peer=\"{name}\"' in daemon.log.read_text(errors="replace"), "the log names the token by its hash",
                     log_of(daemon))


# --- who dies


def says(victim, text):
    """Victim's wait_for, by limit.py's clock: the moment "transfer" comes after 256 MiB, a busy machine's minute."""
    clock = limit.Clock()
    while victim.process.poll() is None and clock.passed() <= HANG_SECONDS:
        if victim.wait_for(text, 1):
            return True
    return victim.wait_for(text, 0)


def start_victim(daemon, moment, *rounds):
    victim = harness.Application(daemon, "victim", moment, *rounds)
    if says(victim, "READY"):
        return victim
    victim.end(0)
    REPORT.check(False, f"victim {moment} reaches its moment", victim.output + victim.errors.decode() + log_of(daemon))
    return None


def finish(victim, name, codes):
    """Its end, and what its calls returned after somebody was killed."""
    says(victim, "DONE")
    code = victim.end(5)
    told = victim.output + victim.errors.decode()
    if REPORT.check(code == 0, f"{name}: the application neither hangs nor crashes", told if code else ""):
        seen = {key: victim.value(key) for key in ("ended_with", "later_read", "later_create", "later_finish")}
        REPORT.check(set(seen.values()) <= codes, f"{name}: its calls", seen)
    return told


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    harness.wait_until(lambda: not any(map(harness.alive, pids)), 5)


def deaths(wine):
    lost = {DEVICE_NOT_AVAILABLE, EVENTS_IN_WAIT_LIST, 0}
    with WindowsDaemon(wine, "network") as daemon:
        works(daemon, on_linux, "a first session")
        harness.wait_until(lambda: not daemon.workers(), 5)
        gateways = daemon.gateways()
        REPORT.check(len(gateways) == 1, "one gateway for one entry", gateways)
        for moment in ("idle", "kernel", "transfer"):
            worker_killed(daemon, moment, lost)
            application_killed(daemon, moment)
        for chunk in (b"\0" * 4096, b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
            with socket.create_connection(("127.0.0.1", daemon.port)) as stranger:
                stranger.sendall(chunk)
        works(daemon, on_linux, "after strangers who speak no HTTP/2")
        REPORT.check(daemon.gateways() == gateways, "it was one gateway all the time", (gateways, daemon.gateways()))
        gateway_killed(daemon, lost)
    broker_killed(wine)


def worker_killed(daemon, moment, lost):
    name = f"worker killed, {moment}"
    victim = start_victim(daemon, moment)
    if victim is None:
        return
    workers = daemon.workers()
    REPORT.check(len(workers) == 1, f"{name}: one worker for one session", workers)
    kill(workers)
    if moment == "idle":
        victim.go_on()
    finish(victim, name, lost)
    REPORT.check(victim.value("later_create") == DEVICE_NOT_AVAILABLE, f"{name}: the session is lost", victim.output)
    REPORT.check(victim.value("new_context") == 0, f"{name}: a new context works", victim.value("new_context"))
    harness.wait_until(lambda: not daemon.workers(), 5)


def application_killed(daemon, moment):
    name = f"application killed, {moment}"
    victim = start_victim(daemon, moment)
    if victim is None:
        return
    workers = daemon.workers()
    victim.process.kill()
    start = harness.time.monotonic()
    gone = harness.wait_until(lambda: not any(map(harness.alive, workers)), 10)
    took = harness.time.monotonic() - start
    victim.end(1)
    REPORT.check(len(workers) == 1 and gone and took <= GONE_SECONDS, f"{name}: its worker is gone at once",
                 f"{len(workers)} after {took:.2f} s")


# Its sessions end with it; the broker starts another.
def gateway_killed(daemon, lost):
    name = "gateway killed"
    victim = start_victim(daemon, "idle")
    if victim is None:
        return
    before = daemon.gateways()
    kill(before)
    fresh = harness.wait_until(lambda: daemon.gateways() and daemon.gateways() != before and harness.accepts(
        "127.0.0.1", daemon.port), 20, 0.05)
    REPORT.check(fresh, f"{name}: the broker starts it again", log_of(daemon))
    victim.go_on()
    finish(victim, name, lost)
    REPORT.check(victim.value("later_create") == DEVICE_NOT_AVAILABLE, f"{name}: the session is lost", victim.output)
    for client, run in CLIENTS:
        works(daemon, run, f"{name}: the next {client}")
    REPORT.check(harness.wait_until(lambda: not daemon.workers(), 5), f"{name}: no worker is left", daemon.workers())


# Sessions go on, and take the gateway with them; the next daemon has the port meanwhile.
def broker_killed(wine):
    name = "broker killed"
    with WindowsDaemon(wine, "network") as daemon:
        victim = start_victim(daemon, "idle", "1")
        if victim is None:
            return
        old = daemon.gateways()
        daemon.kill_broker()
        daemon.start()
        works(daemon, on_linux, f"{name}: the next daemon serves on the same port")
        REPORT.check(len(old) == 1 and all(map(harness.alive, old)), f"{name}: the old gateway keeps its session", old)
        victim.go_on()
        finish(victim, name, {0})
        REPORT.check(victim.value("new_context") == 0, f"{name}: a new context works", victim.value("new_context"))
        REPORT.check(harness.wait_until(lambda: not any(map(harness.alive, old)), 10),
                     f"{name}: the old gateway ends with its last session", old)
        REPORT.check(harness.wait_until(lambda: not daemon.workers(), 5), f"{name}: no worker is left", daemon.workers())


# --- many sessions


def crowd(wine):
    """Many sessions at once; forty more, four at a time, leave the gateway and the broker as those did."""
    with WindowsDaemon(wine, "network") as daemon:
        pids = {"gateway": daemon.gateways()[0], "broker": daemon.process.pid}

        def sessions(count, at_once):
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                results = list(pool.map(lambda unused: on_linux(daemon, SLUICE_LOG="error"), range(count)))
            bad = [output for code, output in results if code != 0]
            REPORT.check(not bad, f"{count} sessions, {at_once} at a time", f"{''.join(bad)[:2000]} {log_of(daemon) if bad else ''}")

        def has():
            return {name: (len(harness.descriptors(pid)), len(os.listdir(f"/proc/{pid}/task")))
                    for name, pid in pids.items()}

        sessions(24, 24)  # As many threads as it ever has: lasting ones stay.
        # No more of either, of descriptors and of threads; one session's may still be closing. Wine keeps descriptors of
        # handles that were used once, so that few may come with the first sessions: what leaks comes with all.
        for _ in range(3):
            harness.wait_until(lambda: not daemon.workers(), 10)
            before = has()
            sessions(40, 4)
            good = harness.wait_until(lambda: all(now <= then for name in pids
                                                  for now, then in zip(has()[name], before[name])), 10, 0.05)
            if good:
                break
        REPORT.check(good, "they leave no descriptor and no thread", (before, has()))
        REPORT.check(harness.wait_until(lambda: not daemon.workers(), 10), "no worker is left", daemon.workers())


# --- the daemon stops


def stopping(wine):
    name = "told to stop"
    with WindowsDaemon(wine, "network") as daemon:
        os.environ["SLUICE_LOG"] = "warning"
        victim = start_victim(daemon, "idle")
        del os.environ["SLUICE_LOG"]
        if victim is None:
            return
        code, output = daemon.ctl("drain", "--within", "1")
        REPORT.check(code == 0, f"{name}: sluicectl drain", output)
        refused(daemon, on_linux, f"{name}: no new session while it drains", "")
        ended = harness.wait_until(lambda: daemon.process.poll() is not None, 20)
        REPORT.check(ended and daemon.process.returncode == 0, f"{name}: the daemon ends", log_of(daemon))
        victim.go_on()
        told = finish(victim, name, {DEVICE_NOT_AVAILABLE, EVENTS_IN_WAIT_LIST, 0})
        REPORT.check("the daemon is stopping" in told, f"{name}: the application hears why", told)
        log = daemon.log.read_text(errors="replace")
        # What a child writes is told as its own.
        line = rf'gateway msg=output listen=127.0.0.1:{daemon.port} text="msg=\"told to end\" '
        REPORT.check(line in log, f"{name}: the gateway ends when it is told to", log)
        REPORT.check(not daemon.processes(), f"{name}: nothing is left", daemon.processes())


def main(parts):
    reason = wine_module.missing()
    if reason:
        print(f"SKIP windows gateway: {reason}")
        return
    with wine_module.Wine() as wine:
        wine.register_driver(BIN / "sluice_icd.dll")
        for part in (units, configuration, everywhere, tls, tokens, deaths, crowd, stopping):
            if not parts or part.__name__ in parts:
                part(wine)
    REPORT.exit()


if __name__ == "__main__":
    main(sys.argv[1:])
