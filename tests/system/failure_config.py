#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What a wrong configuration is told: the file, the line, the key and what to do, and no daemon that half works.

Usage: failure_config.py
"""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import harness

FAILED, WRONG = 1, 2

report = harness.Report("failure_config")


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def make_certificates(folder, *names):
    """NAME.pem and NAME.key for 127.0.0.1, each its own authority."""
    for name in names:
        openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}.key",
                "-out", f"{name}.pem")


class Files:
    """A folder with a configuration file, whose text each check writes anew."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
        self.clients = self.folder / "sluice/clients"
        self.config = self.folder / "sluiced.toml"

    def write(self, text):
        user = '[worker]\nuser = "root"\n' if os.geteuid() == 0 else ""
        head = f'[broker]\nsocket = "{self.clients}/broker.sock"\n{user}'
        self.config.write_text(head + text)
        return head.count("\n")

    def run(self, *arguments, seconds=10):
        """The exit code (None: it still ran, and was ended) and all that was printed."""
        process = subprocess.Popen([str(harness.built("sluiced")), *arguments], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder)
        try:
            output = process.communicate(timeout=seconds)[0].decode()
            return process.returncode, output
        except subprocess.TimeoutExpired:
            process.terminate()
            return None, process.communicate()[0].decode()


def check_config(files, what, text, line, parts):
    """--check-config names `line` of `text` and `parts`; starting a daemon does not go further either."""
    above = files.write(text)
    code, output = files.run("--check-config", str(files.config))
    place = f"{files.config}:{above + line}:"
    report.check(code == WRONG and place in output and all(part in output for part in parts), what, output)


def network(*lines):
    return "[[network]]\n" + "\n".join(lines) + "\n"


def check_network_keys(files):
    folder = files.folder
    make_certificates(folder, "one", "two")
    (folder / "empty").write_text("")
    (folder / "short").write_text("# clients\nsecret\n")
    (folder / "text").write_text("no PEM\n")
    for name, algorithm in (("ed", "ED25519"), ("rsa", "RSA")):
        key, open_key = folder / f"{name}.key", folder / f"{name}.pub"
        subprocess.run(["openssl", "genpkey", "-algorithm", algorithm, "-out", str(key)], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", str(key), "-pubout", "-out", str(open_key)], check=True)
    good = (folder / "ed.pub").read_text()  # Three lines.
    (folder / "mixed.pub").write_text(good + (folder / "rsa.pub").read_text())
    (folder / "cut.pub").write_text(good + good[:50])
    listen = 'listen = "127.0.0.1:17466"'
    one, two = f'certificate = "{folder}/one.pem"', f'key = "{folder}/one.key"'
    for what, lines, line, parts in (
            ("a certificate without key", (listen, one), 3, ["key"]),
            ("a key without certificate", (listen, two), 3, ["certificate"]),
            ("a missing file", (listen, f'certificate = "{folder}/none.pem"', two), 3, ["none.pem", '"certificate"']),
            ("a missing token file", (listen, f'token_file = "{folder}/none"'), 3, ["none", '"token_file"']),
            ("no certificate", (listen, f'certificate = "{folder}/text"', two), 3, ['"certificate"', "/text", "PEM"]),
            ("no key", (listen, one, f'key = "{folder}/text"'), 4, ['"key"', "/text", "PEM"]),
            ("another key", (listen, one, f'key = "{folder}/two.key"'), 4, ['"key"', "two.key", "certificate"]),
            ("no authority", (listen, one, two, f'client_ca = "{folder}/text"'), 5, ['"client_ca"', "/text"]),
            ("an authority without TLS", (listen, f'client_ca = "{folder}/one.pem"'), 3, ['"client_ca"']),
            ("an empty token file", (listen, f'token_file = "{folder}/empty"'), 3, ['"token_file"', "/empty", "empty"]),
            ("a folder as token file", (listen, f'token_file = "{folder}"'), 3, ['"token_file"', str(folder)]),
            ("a short token", (listen, f'token_file = "{folder}/short"'), 3,
             ['"token_file"', "/short", "line 2", "openssl rand"]),
            ("a missing token key", (listen, f'token_key = "{folder}/none.pub"'), 3, ["none.pub", '"token_key"']),
            ("an empty token key", (listen, f'token_key = "{folder}/empty"'), 3, ['"token_key"', "/empty", "empty"]),
            ("no token key", (listen, f'token_key = "{folder}/text"'), 3, ['"token_key"', "/text", "sluicectl token keygen"]),
            ("a private key", (listen, f'token_key = "{folder}/ed.key"'), 3, ['"token_key"', "line 1", "private", ".pub"]),
            ("a certificate", (listen, f'token_key = "{folder}/one.pem"'), 3, ['"token_key"', "line 1", "public key"]),
            ("another kind of key", (listen, f'token_key = "{folder}/mixed.pub"'), 3, ['"token_key"', "line 4", "Ed25519"]),
            ("a damaged key", (listen, f'token_key = "{folder}/cut.pub"'), 3, ['"token_key"', "line 4", "damaged"]),
            ("a relative path", (listen, 'certificate = "one.pem"', 'key = "one.key"'), 3, ["one.pem", "absolute"]),
            ("a relative token file", (listen, 'token_file = "short"'), 3, ["short", "absolute"]),
            ("plaintext beyond loopback", ('allow_plaintext = false', 'listen = "0.0.0.0:17466"'), 3, ["without TLS"]),
            ("a host without address", ('listen = "sluice-test.invalid:17466"', one, two), 2,
             ['"listen"', "sluice-test.invalid"]),
            ("an address of another machine", ('listen = "192.0.2.1:17466"', one, two), 2, ['"listen"', "192.0.2.1"]),
            ("an address twice", ('listen = ["127.0.0.1:17466", "127.0.0.1:17466"]',), 2, ["twice"])):
        check_config(files, f"--check-config names {what}", network(*lines), line, parts)
    above = files.write(network(listen, one, two, f'token_file = "{folder}/one.key"'))
    code, output = files.run("--check-config", str(files.config))
    report.check(code == 0 and ": ok" in output and f"warning: {files.config}" not in output and above,
                 "--check-config takes what is right", output)
    token = f'token_file = "{folder}/one.key"'
    check_secrets(files, network(f'listen = "127.0.0.1:{harness.free_port()}"', one, two, token))
    check_unconfined(files)
    check_open_doors(files, f'listen = "0.0.0.0:{harness.free_port()}"', (one, two))


def check_open_doors(files, listen, tls):
    """A service that asks nobody who he is is possible, and told."""
    parts = (f"{files.config}:", "anybody who reaches 0.0.0.0:", "set client_ca, token_file or token_key")
    files.write(network(listen, *tls))
    code, output = files.run("--check-config", str(files.config))
    report.check(code == 0 and ": ok" in output and all(part in output for part in ("warning", *parts)),
                 "--check-config warns of a network service without authentication", output)
    code, output = files.run("--config", str(files.config), seconds=5)
    report.check(code is None and all(part in output for part in parts), "so does the daemon at its start", output)


def check_unconfined(files):
    """Workers that may read whatever their user may are possible, and told."""
    part = "confine_files = false in [worker]"
    files.write(("" if os.geteuid() == 0 else "[worker]\n") + "confine_files = false\n")  # write ends with [worker].
    code, output = files.run("--check-config", str(files.config))
    report.check(code == 0 and ": ok" in output and "warning" in output and part in output,
                 "--check-config warns of workers without confinement", output)
    code, output = files.run("--config", str(files.config), seconds=5)
    report.check(code is None and part in output, "so does the daemon at its start", output)


def check_secrets(files, text):
    """A key that others may read is served with, and named, with what to do."""
    key = files.folder / "one.key"
    key.chmod(0o644)
    above = files.write(text)
    parts = (f"{files.config}:{above + 4}:", str(key), "0644", "chmod o-r")
    code, output = files.run("--check-config", str(files.config))
    report.check(code == 0 and ": ok" in output and "warning" in output and all(part in output for part in parts),
                 "--check-config warns of a key that others can read", output)
    code, output = files.run("--config", str(files.config), seconds=5)
    report.check(code is None and all(part in output for part in parts), "so does the daemon at its start", output)
    key.chmod(0o640)
    keys = files.folder / "ed.pub"
    keys.chmod(0o666)
    above = files.write(text + f'token_key = "{keys}"\n')
    code, output = files.run("--check-config", str(files.config))
    report.check(code == 0 and all(part in output for part in (f"warning: {files.config}:{above + 6}:", str(keys), "chmod o-w")),
                 "--check-config warns of token keys that others can write", output)
    keys.chmod(0o644)
    code, output = files.run("--check-config", str(files.config))
    report.check(code == 0 and f"warning: {files.config}" not in output, "a group may have been given it", output)


def check_ports(files):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        above = files.write(network(f'listen = ["127.0.0.1:{harness.free_port()}", "127.0.0.1:{port}"]'))
        code, output = files.run("--config", str(files.config))
        good = code == FAILED and f"127.0.0.1:{port}" in output and f"{files.config}:{above + 2}:" in output
        report.check(good and "in use" in output and "file_line" not in output,
                     "a port in use: sluiced does not start, and says which", output)
        report.check("msg=ready" not in output, "a port in use: sluiced does not say that it is ready", output)
        code, output = files.run("--check-config", str(files.config))
        report.check(code == 0, "a port in use is none of the file's mistakes: a daemon may be running", output)
        code, output = files.run("--config", "/dev/null", "--socket", f"{files.clients}/flag.sock", "--listen",
                                 f"127.0.0.1:{port}", *(["--worker-user", "root"] if os.geteuid() == 0 else []))
        report.check(code == FAILED and "--listen" in output and "in use" in output, "the same by flag", output)


def check_both_wildcards(files):
    """What the installed example shows: all of IPv4 and all of IPv6."""
    port = harness.free_port()
    files.write(network(f'listen = ["0.0.0.0:{port}", "[::]:{port}"]', "allow_plaintext = true"))
    log = files.folder / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen([str(harness.built("sluiced")), "--config", str(files.config)],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        listens = harness.wait_until(lambda: process.poll() is not None or harness.accepts("127.0.0.1", port), 15)
        report.check(listens and process.poll() is None, "0.0.0.0 and [::] of one port together", log.read_text())
    finally:
        process.terminate()
        process.wait(timeout=30)


def check_absent_address(what, host):
    """At boot the network may come after the daemon: local applications need not wait for it."""
    port = harness.free_port()
    daemon = harness.Daemon("ring")
    daemon.config.write_text(daemon.config.read_text() + network(f'listen = "{host}:{port}"', "allow_plaintext = true"))
    line = daemon.config.read_text().count("\n") - 1
    try:
        daemon.start()
    except SystemExit as why:
        report.check(False, f"{what} leaves local applications their daemon", why)
        return
    with daemon:
        client = subprocess.run([str(harness.built("vector_add"))], env=daemon.environment(), timeout=60,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        report.check(client.returncode == 0, f"{what} leaves local applications their daemon", client.stdout.decode())
        # Beside the one that anybody who reaches it gets sessions.
        lines = [text for text in daemon.log.read_text().splitlines()
                 if " warning " in text and host in text and "gets sessions" not in text]
        report.check(len(lines) == 1 and f"{daemon.config}:{line}:" in lines[0] and "tried again" in lines[0],
                     f"{what} is one warning", lines)
        report.check(harness.wait_until(lambda: daemon.log.read_text().count(f"cannot listen on {host}") >= 3, 20),
                     f"{what} is tried again", daemon.log.read_text())


def kill_and_take(broker, taken, port):
    """True once the port is ours and no longer the gateway's."""
    for pid in harness.descendants(broker):
        if harness.program(pid).endswith("sluice-gateway") and harness.alive(pid):
            os.kill(pid, harness.signal.SIGKILL)
    try:
        taken.bind(("127.0.0.1", port))
        return True
    except OSError:
        return False


def check_lost_gateway(files):
    """Somebody takes the port while the gateway is gone: one line for each try, and it comes back."""
    port = harness.free_port()
    files.write(network(f'listen = "127.0.0.1:{port}"'))
    log = files.folder / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen([str(harness.built("sluiced")), "--config", str(files.config)],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        harness.wait_until(lambda: harness.accepts("127.0.0.1", port), 15)
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            harness.wait_until(lambda: kill_and_take(process.pid, taken, port), 20)
            taken.listen(64)
            mark = len(log.read_text())
            said = harness.wait_until(lambda: log.read_text()[mark:].count("cannot listen") >= 2, 15)
            lines = [line for line in log.read_text()[mark:].splitlines() if line]
            tries = [line for line in lines if "cannot listen" in line]
            others = [line for line in lines if line not in tries and "killed by signal" not in line and
                      "gateway started" not in line]
            report.check(said and all("in use" in line and str(port) in line for line in tries),
                         "a gateway that finds its port taken says so", lines)
            report.check(not others, "and that is the one line of each try", others)
        report.check(harness.wait_until(lambda: "msg=listening" in log.read_text()[mark:], 30),
                     "it listens again once the port is free", log.read_text()[mark:])
    finally:
        process.terminate()
        process.wait(timeout=30)


def check_empty_flags(files):
    """A variable that is not set, in a script, does not change what sluiced does."""
    for flag in ("--check-config", "--config", "--certificate", "--socket", "--token-file"):
        code, output = files.run("--socket", f"{files.clients}/empty.sock", "--listen",
                                 f"127.0.0.1:{harness.free_port()}", flag, "", seconds=3)
        report.check(code == WRONG and flag in output and "empty" in output, f"{flag} without a value", output)


def check_helpers(files):
    """Who starts a helper program by hand is told what to start."""
    for flag in ("--worker", "--gateway", "--allocator"):
        for more in ((), ("--help",)):
            code, output = files.run(flag, *more)
            report.check(code == WRONG and f"Start sluiced without {flag}" in output and output.count("\n") == 1,
                         f"sluiced {' '.join((flag, *more))} says what to do", (code, output))


def check_installation(files):
    """A helper program that lost its mode on the way here is not called missing."""
    folder = files.folder / "bin"
    folder.mkdir()
    shutil.copy(harness.built("sluiced"), folder)
    (folder / "sluice-worker").write_bytes(b"")
    ended = subprocess.run([folder / "sluiced", "--socket", files.clients / "copy.sock"], timeout=20, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    report.check(ended.returncode == FAILED and f"{folder}/sluice-worker, which must be executable" in ended.stdout,
                 "a helper that is not executable is told so", ended.stdout)


def check_ignored_children(files):
    """A daemon whose starter ignores its children's ends has devices, and its gateway's checks are told."""
    files.write("")
    port = harness.free_port()
    log = files.folder / "children.log"
    with open(log, "wb") as out:
        daemon = subprocess.Popen(["env", "--ignore-signal=CHLD", str(harness.built("sluiced")), "--config",
                                   str(files.config), "--listen", f"127.0.0.1:{port}"], stdout=out, stderr=out)
    try:
        told = harness.wait_until(lambda: "devices found" in log.read_text() or daemon.poll() is not None, 60)
        report.check(told and daemon.poll() is None, "SIGCHLD ignored: the daemon finds its devices", log.read_text())
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)


def check_socket_names(files):
    """The administration's socket, named after the other, is not complained of as well."""
    code, output = files.run("--check-config", "/dev/null", "--socket", "relative")
    report.check(code == WRONG and output.count("absolute") == 1 and "admin" not in output,
                 "a relative --socket is told once", (code, output))
    # One name, however it is written: what is made of it lies beside the folder, too.
    for written in (f"{files.folder}//sluice/clients/broker.sock", f"{files.folder}/sluice/./clients/broker.sock",
                    f"{files.folder}/sluice/clients//broker.sock", f"{files.folder}/gpu//broker.sock",
                    f"{files.folder}/./gpu/././broker.sock"):
        files.config.write_text(f'[broker]\nsocket = "{written}"\n')
        for arguments in (("--check-config", str(files.config)), ("--check-config", "/dev/null", "--socket", written)):
            code, output = files.run(*arguments)
            report.check(code == 0, f"a socket's name with // or /./ is as good: {arguments[0]} {len(arguments)} "
                         f"{written.replace(str(files.folder), '')}", output)
    for written in ("/clients/", "/clients/.", "/clients/../broker.sock", "/.."):
        files.config.write_text(f'[broker]\nsocket = "{files.folder}/sluice{written}"\n')
        code, output = files.run("--check-config", str(files.config))
        report.check(code == WRONG and f"{files.config}:2:" in output and '"socket"' in output and output.count("absolute") == 1,
                     f"a socket's name that is a folder's or has .. is refused: {written}", output)
    # A monitor socket that nobody named is blamed on what it was made of.
    (files.folder / "alias-admin").symlink_to(files.folder / "alias", target_is_directory=True)
    (files.folder / "alias").mkdir()
    files.config.write_text(f'[broker]\nsocket = "{files.folder}/alias/broker.sock"\n')
    code, output = files.run("--check-config", str(files.config))
    report.check(code == WRONG and f'{files.config}:2:' in output and 'key "socket" in [broker]' in output and
                 '--monitor-socket is' not in output, "what nobody named is not complained of by its name", output)


def check_other_keys(files):
    folder = files.folder
    for what, text, parts in (
            ("a negative size", "[limits]\nmemory_bytes_per_session = -4\n", ["is -4"]),
            ("one socket for both", "", [])):
        if not text:
            files.config.write_text(f'[broker]\nsocket = "{folder}/a.sock"\nadmin_socket = "{folder}/a.sock"\n')
            parts = [f"{files.config}:3:", '"admin_socket"', '"socket"']
        else:
            parts = [f":{files.write(text) + 2}:", *parts]
        code, output = files.run("--check-config", str(files.config))
        contradicts = re.search(r"is an integer, allowed is .*integer", output)
        report.check(code == WRONG and all(part in output for part in parts) and not contradicts, what, output)
    files.config.write_text(f'socket = "{folder}/a.sock"\n[broker]\nmax_sessions = 3\n')
    code, output = files.run("--check-config", str(files.config))
    report.check(code == WRONG and ":1:1: " in output and "[broker]" in output and "did you mean" not in output and
                 ":3:1: " in output and "[limits]" in output, "keys outside their tables are sent there", output)


# Keys that a reload cannot give effect to are named in the log, so that nobody takes an open door for a closed one.
def check_keys_that_await_a_start():
    daemon = harness.Daemon("ring")
    entry = f'[[network]]\nlisten = "127.0.0.1:{harness.free_port()}"\n'
    own = daemon.config.read_text()
    daemon.config.write_text(own + entry)
    token = daemon.directory / "tokens"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o600)
    with daemon.start():
        daemon.config.write_text(own.replace("[broker]\n", '[broker]\nsocket_mode = "0640"\n', 1) +
                                 f'{entry}token_file = "{token}"\n')
        daemon.process.send_signal(harness.signal.SIGHUP)
        told = harness.wait_until(lambda: daemon.log.read_text().count("only when sluiced is started again") >= 2, 20)
        text = daemon.log.read_text()
        report.check(told and 'key \\"token_file\\" in [[network]]' in text and 'key \\"socket_mode\\" in [broker]' in text,
                     "a reload names the keys that await a start", text)


# The operator's environment names a compile cache that the user of a session's worker cannot write: kernels fail to
# build there, and the daemon's log says why.
def check_cache_of_root():
    if os.geteuid() != 0:
        print("SKIP failure_config: a compile cache of root's: the daemon is not root's")
        return
    harness.let_others_run()
    daemon = harness.Daemon("ring")
    daemon.config.write_text(daemon.config.read_text().replace('[worker]\nuser = "root"\n', ""))
    cache = daemon.directory / "cache of root"
    cache.mkdir(mode=0o755)
    daemon.start_with({"POCL_CACHE_DIR": str(cache)})
    with daemon:
        subprocess.run([str(harness.built("vector_add"))], env=daemon.environment(), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
        told = [line for line in daemon.log.read_text().splitlines() if "cannot write to the compile cache" in line]
        report.check(any(f"POCL_CACHE_DIR={cache}" in line and "session=" in line for line in told),
                     "a compile cache that a session cannot write is in the log", daemon.log.read_text())


def run_vector_add(daemon):
    done = subprocess.run([str(harness.built("vector_add"))], env=daemon.environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, text=True, check=False)
    return done.returncode, done.stdout


# A disk without room for the compile cache: the daemon's log says so and where, the program gets an error of OpenCL's, and
# all is well when there is room again.
def check_full_cache():
    if os.geteuid() != 0:
        print("SKIP failure_config: a full compile cache: only root mounts a small disk")
        return
    daemon = harness.Daemon("ring")
    cache = daemon.directory / "small disk"
    cache.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0755", "tmpfs", str(cache)],
                             capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        print(f"SKIP failure_config: a full compile cache: no small disk: {mounted.stderr.strip()}")
        return
    try:
        filler = cache / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        daemon.config.write_text(daemon.config.read_text().replace('user = "root"\n', f'user = "root"\ncache_directory = "{cache}"\n'))
        with daemon.start():
            code, output = run_vector_add(daemon)
            # The driver may do without its cache: then the results are right.
            right = "every element right" in output
            report.check(code >= 0 and right == (code == 0),
                         "with a full disk a program ends with an error, or is right", f"{code} {output}")
            told = [line for line in daemon.log.read_text().splitlines() if "No space left on device at" in line]
            report.check(any("make room there" in line and str(cache) in line for line in told),
                         "the log says that the compile cache's disk is full", daemon.log.read_text())
            filler.unlink()
            code, output = run_vector_add(daemon)
            report.check(code == 0, "with room again the same daemon serves programs",
                         f"{output} {daemon.log.read_text()[-2000:]}")
    finally:
        subprocess.run(["umount", "-l", str(cache)], check=False)


def main():
    files = Files()
    try:
        check_network_keys(files)
        check_other_keys(files)
        check_empty_flags(files)
        check_helpers(files)
        check_installation(files)
        check_socket_names(files)
        check_ignored_children(files)
        check_keys_that_await_a_start()
        check_cache_of_root()
        check_full_cache()
        check_ports(files)
        check_both_wildcards(files)
        check_lost_gateway(files)
        check_absent_address("an address that is not there yet", "192.0.2.1")
        check_absent_address("a host without address yet", "sluice-test.invalid")
    finally:
        shutil.rmtree(files.folder)
    report.exit()


if __name__ == "__main__":
    main()
