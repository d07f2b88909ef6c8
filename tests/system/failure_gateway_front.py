#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Strangers at the gateway's port: each attack runs beside a client that computes, and nobody's session is lost.

The gateway stays the process that it was, the client's results are right, a new session can be had, and when the
attackers are gone the gateway holds no more descriptors than before. Rates and times are told, never judged.

Usage: failure_gateway_front.py [reload] [ATTACK...]
"""
import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import unittest.mock

import failure_config
import harness

SECONDS = 60
# How long the client computes; the attack begins when it has a worker.
CLIENT_SECONDS = 8
ATTACK_SECONDS = 6
HALF_OPEN = int(os.environ.get("SLUICE_TEST_HALF_OPEN", "20000"))
TOKEN = "0123456789abcdef0123456789abcdef"
OTHER_TOKEN = "fedcba9876543210fedcba9876543210"
report = harness.Report("failure_gateway_front")


# --- certificates ----------------------------------------------------------------------------------------


class Authority:
    """An authority whose certificate is NAME.pem in `folder`, and what it signs and revokes."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        failure_config.make_certificates(folder, name)
        (folder / f"{name}.index").write_text("")
        (folder / f"{name}.serial").write_text("1000\n")
        (folder / f"{name}.cnf").write_text(
            f"[ca]\ndefault_ca = me\n[me]\ndatabase = {folder}/{name}.index\ndefault_md = sha256\n"
            f"default_crl_days = 2\nserial = {folder}/{name}.serial\nnew_certs_dir = {folder}\npolicy = any\n[any]\ncommonName = supplied\n")
        self.signer = ("-config", f"{name}.cnf", "-cert", f"{name}.pem", "-keyfile", f"{name}.key")

    def openssl(self, *arguments):
        failure_config.openssl(self.folder, *arguments)

    def ask(self, name):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (self.folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1\n")

    def issue(self, name):
        self.ask(name)
        self.openssl("x509", "-req", "-days", "2", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key",
                     "-CAcreateserial", "-extfile", f"{name}.ext", "-in", f"{name}.csr", "-out", f"{name}.pem")

    def issue_expired(self, name):
        self.ask(name)
        self.openssl("ca", *self.signer, "-batch", "-notext", "-startdate", "20200101000000Z", "-enddate",
                     "20200102000000Z", "-extfile", f"{name}.ext", "-in", f"{name}.csr", "-out", f"{name}.pem")

    def revoke(self, *names):
        """Writes NAME.crl, the list of all that were revoked."""
        for name in names:
            self.openssl("ca", *self.signer, "-revoke", f"{name}.pem")
        self.openssl("ca", *self.signer, "-gencrl", "-out", f"{self.name}.crl")


# --- the daemon ------------------------------------------------------------------------------------------


class Front:
    """A daemon with two entries: mutual TLS, and TLS with a token."""

    def __init__(self):
        self.daemon = harness.Daemon("network")
        self.folder = self.daemon.directory
        self.authority = Authority(self.folder, "authority")
        self.stranger = Authority(self.folder, "stranger")
        for name in ("server", "alice", "mallory"):
            self.authority.issue(name)
        self.authority.issue_expired("late")
        self.authority.revoke()
        self.stranger.issue("unknown")
        self.mutual, self.token = self.daemon.port, harness.free_port()
        (self.folder / "tokens").write_text(f"{TOKEN}\n{OTHER_TOKEN}\n")
        (self.folder / "token").write_text(TOKEN)
        tls = f'certificate = "{self.folder}/server.pem"\nkey = "{self.folder}/server.key"\nmemory_bytes = "2GiB"\n'
        self.daemon.config.write_text(
            self.daemon.config.read_text() + f'{tls}client_ca = "{self.folder}/authority.pem"\n'
            f'client_crl = "{self.folder}/authority.crl"\n'
            f'[[network]]\nlisten = "127.0.0.1:{self.token}"\n{tls}token_file = "{self.folder}/tokens"\n')

    def environment(self, port, name="alice"):
        """Of a good client."""
        env = dict(self.daemon.environment(), SLUICE_ENDPOINT=f"127.0.0.1:{port}",
                   SLUICE_TLS_CA=f"{self.folder}/authority.pem", SLUICE_CONNECT_TIMEOUT_MS="30000")
        if port == self.mutual:
            return dict(env, SLUICE_TLS_CERT=f"{self.folder}/{name}.pem", SLUICE_TLS_KEY=f"{self.folder}/{name}.key")
        return dict(env, SLUICE_TOKEN_FILE=f"{self.folder}/token")

    def gateways(self):
        return sorted(pid for pid in self.daemon.processes() if harness.program(pid).endswith("sluice-gateway"))

    def descriptors(self):
        return {pid: len(harness.descriptors(pid)) for pid in self.gateways()}

    def session(self, port, name="alice"):
        """Seconds to a new session's right result, or None."""
        begin = time.monotonic()
        try:
            done = subprocess.run([str(harness.built("vector_add"))], env=self.environment(port, name), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - begin if done.returncode == 0 else None


# --- attackers -------------------------------------------------------------------------------------------


def connect(port, source):
    """A connection from 127.0.0.SOURCE, or None where none is to be had."""
    one = socket.socket()
    one.settimeout(2)
    try:
        one.bind((f"127.0.0.{source}", 0))
        one.connect(("127.0.0.1", port))
    except OSError:
        one.close()
        return None
    return one


def client_context(certificate=None, version=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if version:
        context.maximum_version = version
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = client_context().wrap_bio(incoming, outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    return outgoing.read()


def half_open(port, until, first_words, count):
    """Holds `count` connections from eight addresses, each with its first words, and makes those anew that end."""
    held = []
    while time.monotonic() < until:
        for index in range(len(held), count):
            one = socket.socket()
            one.setblocking(False)
            one.bind((f"127.0.0.{2 + index % 8}", 0))
            with contextlib.suppress(BlockingIOError):
                one.connect(("127.0.0.1", port))
            held.append(one)
            if index % 64 == 63:
                for other in held[-64:]:
                    with contextlib.suppress(OSError):
                        other.send(first_words)
                if time.monotonic() > until:
                    return
        time.sleep(0.01)
        living = []
        for one in held:
            try:
                if one.recv(65536) == b"":
                    one.close()
                    continue
            except BlockingIOError:
                pass
            except OSError:
                one.close()
                continue
            living.append(one)
        held = living


def half_open_tcp(front, until):
    half_open(front.mutual, until, b"", HALF_OPEN // 2)


def half_open_tls(front, until):
    half_open(front.mutual, until, client_hello(), HALF_OPEN // 2)


def slow_handshake(front, until):
    """A byte at a time on 300 connections."""
    hello = client_hello()
    held = [one for one in (connect(front.mutual, 2 + i % 8) for i in range(300)) if one]
    for byte in hello:
        if time.monotonic() > until:
            return
        for one in held:
            with contextlib.suppress(OSError):
                one.send(bytes([byte]))
        time.sleep(0.05)


def cut_handshake(front, until):
    """Handshakes that end in their middle."""
    hello = client_hello()
    while time.monotonic() < until:
        one = connect(front.mutual, 2 + time.monotonic_ns() % 8)
        if one is None:
            continue
        with contextlib.suppress(OSError):
            one.send(hello[:time.monotonic_ns() % len(hello)])
            if time.monotonic_ns() % 2:
                one.send(hello)
                one.recv(1)
        one.close()


def handshakes(front, until, certificate, version=None):
    """TLS handshakes with this certificate, and a call where one succeeds. How many were let in."""
    context = client_context(certificate, version)
    admitted = 0
    while time.monotonic() < until:
        one = connect(front.mutual, 2)
        if one is None:
            continue
        try:
            with context.wrap_socket(one) as tls:
                tls.send(PREFACE + frame(SETTINGS, 0, 0, b""))
                tls.settimeout(5)
                admitted += tls.recv(9) != b""
        except OSError:
            pass
    return admitted


def expect_refused(front, until, name):
    admitted = handshakes(front, until, (f"{front.folder}/{name}.pem", f"{front.folder}/{name}.key"))
    sys.exit(f"{name}'s certificate was let in {admitted} times" if admitted else 0)


def wrong_authority(front, until):
    expect_refused(front, until, "unknown")


def expired(front, until):
    expect_refused(front, until, "late")


def huge_chain(front, until):
    """A certificate with 2,000 others behind it: a MiB and more."""
    chain = front.folder / f"huge{os.getpid()}.pem"
    chain.write_text((front.folder / "alice.pem").read_text() + (front.folder / "stranger.pem").read_text() * 2000)
    handshakes(front, until, (str(chain), f"{front.folder}/alice.key"))


def renegotiation(front, until):
    """`R` makes openssl's client ask for another handshake; it is refused, or ends the connection."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{front.token}", "-tls1_2", "-alpn", "h2"],
                           input=b"R\n" * 100, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=2, check=False)


# --- attackers who speak HTTP/2 --------------------------------------------------------------------------

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, body):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = (literal(b":method", b"POST") + literal(b":scheme", b"https") + literal(b":path", b"/sluice.v1.Session/Stream") +
        literal(b":authority", b"a") + literal(b"te", b"trailers") + literal(b"content-type", b"application/grpc"))


def flood(front, until, block_of, settings=b"", reads=True, connections=20):
    """Sends block_of(first stream) again and again over several connections; one that ends is made anew."""
    context = client_context()
    held = []
    while time.monotonic() < until:
        if len(held) < connections:
            one = connect(front.token, 2 + len(held) % 8)
            if one is None:
                continue
            try:
                tls = context.wrap_socket(one)
                tls.send(PREFACE + frame(SETTINGS, 0, 0, settings))
                tls.setblocking(False)
                held.append([tls, 1, b""])
            except OSError:
                one.close()
            continue
        sent = False
        for state in list(held):
            tls, stream, left = state
            try:
                if not left:
                    left, state[1] = block_of(stream)
                left = left[tls.send(left):]
                sent = True
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                pass
            except OSError:
                held.remove(state)
                tls.close()
                continue
            state[2] = left
            if not reads:
                continue
            try:
                while tls.recv(65536):
                    pass
                raise ConnectionError("its end")
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            except OSError:
                held.remove(state)
                tls.close()
        if not sent:
            time.sleep(0.002)


def headers_flood(front, until):
    def block(stream):
        return b"".join(frame(HEADERS, END_HEADERS, stream + 2 * i, CALL) for i in range(100)), stream + 200
    flood(front, until, block)


def members_flood(front, until):
    """Of a client whose token is good."""
    call = CALL + literal(b"authorization", b"Bearer " + OTHER_TOKEN.encode())

    def block(stream):
        return b"".join(frame(HEADERS, END_HEADERS, stream + 2 * i, call) + frame(RESET, 0, stream + 2 * i, b"\0\0\0\x08")
                        for i in range(100)), stream + 200
    flood(front, until, block)


def rapid_reset(front, until):
    def block(stream):
        return b"".join(frame(HEADERS, END_HEADERS, stream + 2 * i, CALL) + frame(RESET, 0, stream + 2 * i, b"\0\0\0\x08")
                        for i in range(100)), stream + 200
    flood(front, until, block)


def continuation_flood(front, until):
    def block(stream):
        start = frame(HEADERS, 0, stream, CALL) if stream == 1 else b""
        return start + frame(CONTINUATION, 0, 1, literal(b"x", b"y" * 100) * 100) * 10, 3
    flood(front, until, block)


def ping_flood(front, until):
    flood(front, until, lambda stream: (frame(PING, 0, 0, b"pingping") * 500, stream))


def settings_flood(front, until):
    flood(front, until, lambda stream: (frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 500, stream))


def window_flood(front, until):
    flood(front, until, lambda stream: (frame(WINDOW, 0, 0, struct.pack(">I", 1)) * 500, stream))


# Of a client that may open sessions: its answers do not fit its windows.
def held_session(front, until, settings, grant, reads=True):
    token = literal(b"authorization", b"Bearer " + OTHER_TOKEN.encode())
    opening = b"\x0a\x05\x0a\x03bad"  # OpenSession, with a process's name.

    def block(stream):
        calls = b"".join(frame(HEADERS, END_HEADERS, stream + 2 * i, CALL + token) +
                         frame(DATA, 0, stream + 2 * i, struct.pack(">BI", 0, len(opening)) + opening)
                         for i in range(2)) if stream < 9 else b""
        return calls + frame(WINDOW, 0, 0, struct.pack(">I", 1)) * grant + frame(PING, 0, 0, b"pingping"), stream + 4
    flood(front, until, block, settings, reads, connections=4)


def zero_window(front, until):
    held_session(front, until, struct.pack(">HI", 4, 0), 0)


def tiny_windows(front, until):
    held_session(front, until, struct.pack(">HI", 4, 1), 8)


def reads_nothing(front, until):
    held_session(front, until, b"", 0, reads=False)


# Each with how many processes make it.
ATTACKS = {half_open_tcp: 2, half_open_tls: 2, slow_handshake: 1, cut_handshake: 2, wrong_authority: 2, expired: 1,
           huge_chain: 1, renegotiation: 1, headers_flood: 2, members_flood: 2, rapid_reset: 2, continuation_flood: 1, ping_flood: 1,
           settings_flood: 1, window_flood: 1, zero_window: 1, tiny_windows: 1, reads_nothing: 1}


def start(front, attack):
    """A process that makes the attack."""
    pid = os.fork()
    if pid != 0:
        return pid
    code = 1
    try:
        os.nice(5)
        attack(front, time.monotonic() + ATTACK_SECONDS)
        code = 0
    except SystemExit as end:
        code = 0 if end.code == 0 else 1
        if end.code:
            print(end.code, file=sys.stderr, flush=True)
    except Exception as error:  # pylint: disable=broad-except
        print(f"{attack.__name__}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def check(front, attack, port):
    name = attack.__name__.replace("_", " ")
    before, gateways = front.descriptors(), front.gateways()
    client = subprocess.Popen([str(harness.built("tenants")), "1", str(CLIENT_SECONDS)], env=front.environment(port),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    there = harness.wait_until(front.daemon.workers, SECONDS)
    attackers = [start(front, attack) for _ in range(ATTACKS[attack])]
    time.sleep(ATTACK_SECONDS / 3)  # Of the attack: what is measured is in its middle.
    took = front.session(port)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in attackers]
    try:
        told = client.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        client.kill()
        told = "it hangs\n" + client.communicate()[0]
    rate = json.loads(told.splitlines()[-1]) if client.returncode == 0 else {}
    report.check(there and client.returncode == 0, f"{name}: a client's session and its results",
                 f"{rate.get('per_s')} launches/s, longest {rate.get('max_us', 0) / 1000:.0f} ms" if rate else
                 told + front.daemon.log.read_text()[-1500:])
    report.check(took is not None, f"{name}: a new session meanwhile", f"after {took:.2f} s" if took else "none")
    report.check(front.gateways() == gateways, f"{name}: the gateway is the same", (gateways, front.gateways()))
    report.check(not any(codes), f"{name}: the attackers got nowhere", codes)
    back = harness.wait_until(lambda: all(count <= before.get(pid, 0) for pid, count in front.descriptors().items()), 30,
                              0.1)
    report.check(back, f"{name}: descriptors are as before", (before, front.descriptors()))
    # Another try where the gateway has ended: it is started again ever later.
    harness.wait_until(lambda: len(front.gateways()) == 2 and harness.accepts("127.0.0.1", port), SECONDS)


# Files are read anew on SIGHUP: a revoked certificate and a token that is gone let nobody in any more, and their
# owners' connections end; others' sessions go on, through the same gateways.
def check_reload(front):
    gateways = front.gateways()
    clients = {}
    for name in ("alice", "mallory"):
        env = front.environment(front.mutual, name)
        with unittest.mock.patch.object(front.daemon, "environment", lambda env=env: env):
            clients[name] = harness.Application(front.daemon, "limits", "context")
        report.check(clients[name].wait_for("READY", SECONDS), f"reload: {name} has a session",
                     front.daemon.log.read_text()[-1000:])

    def reload_files(count):
        front.daemon.process.send_signal(signal.SIGHUP)
        return harness.wait_until(lambda: front.daemon.log.read_text().count("certificates and tokens reloaded") == count,
                                  SECONDS)

    front.authority.revoke("mallory")
    (front.folder / "tokens").write_text(f"{OTHER_TOKEN}\n")
    report.check(reload_files(2), "reload: both gateways have read their files", front.daemon.log.read_text()[-1000:])
    report.check(harness.wait_until(lambda: len(front.daemon.workers()) == 1, SECONDS),
                 "reload: the session of a revoked certificate ends", front.daemon.workers())
    report.check(front.session(front.mutual, "mallory") is None, "reload: a revoked certificate gets no session")
    report.check(front.session(front.mutual) is not None, "reload: another one does")
    report.check(front.session(front.token) is None, "reload: a token that is gone gets no session")
    (front.folder / "tokens").write_text(f"{TOKEN}\n{OTHER_TOKEN}\n")
    report.check(reload_files(4), "reload: again", front.daemon.log.read_text()[-1000:])
    report.check(front.session(front.token) is not None, "reload: a token that has come does")
    (front.folder / "server.pem").rename(front.folder / "server.old")
    (front.folder / "server.pem").write_text("no certificate\n")
    front.daemon.process.send_signal(signal.SIGHUP)
    kept = harness.wait_until(lambda: re.search(r"kept as (it was|they were).*certificate", front.daemon.log.read_text()),
                              SECONDS)
    report.check(kept and front.session(front.mutual) is not None, "reload: bad files change nothing, and the log says so",
                 front.daemon.log.read_text()[-1000:])
    (front.folder / "server.old").rename(front.folder / "server.pem")
    code = clients["alice"].end(SECONDS)
    report.check(code == 0, "reload: alice's session has gone on", (code, clients["alice"].output))
    clients["mallory"].end(SECONDS)
    report.check(front.gateways() == gateways, "reload: the gateways are the same")


def main():
    wanted = sys.argv[1:] or ["reload", *(attack.__name__ for attack in ATTACKS)]
    unknown = set(wanted) - {"reload", *(attack.__name__ for attack in ATTACKS)}
    if unknown:
        sys.exit(f"failure_gateway_front.py: no attack: {', '.join(unknown)}")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < HALF_OPEN // 2 + 100:
        print(f"SKIP failure_gateway_front: so many half-open connections: a process may have {hard} descriptors")
        sys.exit(0)
    front = Front()
    with front.daemon:
        harness.wait_until(lambda: all(harness.accepts("127.0.0.1", port) for port in (front.mutual, front.token)), SECONDS)
        # The first one compiles its kernel.
        for port in (front.mutual, front.token):
            report.check(front.session(port) is not None, f"a session with nobody else there, port {port}",
                         front.daemon.log.read_text()[-1500:] if front.session(port) is None else "")
        harness.wait_until(lambda: not front.daemon.workers(), 10)
        if "reload" in wanted:
            check_reload(front)
        order = list(ATTACKS)
        for attack in ATTACKS:
            if attack.__name__ in wanted:
                check(front, attack, front.mutual if order.index(attack) <= order.index(huge_chain) else front.token)
    report.exit()


if __name__ == "__main__":
    main()
