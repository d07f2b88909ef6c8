#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Clients and daemons of different versions work together: an image with an older client outlives the host's daemon.

    run.py [--build] [--quick] [VERSION...]

For each version of old_versions.py an old client with today's daemon, and today's client with the old daemon, over
ring and network, each with the default sockets of its own version, in a mount namespace with a /run of its own:
vector_add, clinfo, shared resources and the client's own conformance suite (--quick: a part of it). Then what an
upgrade does to a daemon that runs, to its configuration and to containers, and what abidiff says of libsluice.so.0.
--build builds a version that is not in the cache. Today's programs come from SLUICE_BUILD_DIR, default build/.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import harness  # noqa: E402
import old_versions  # noqa: E402

SECONDS = 60
SUITE_SECONDS = 900
INSIDE = "SLUICE_TEST_HAS_OWN_RUN"
RUN_ALL = harness.ROOT / "tests/conformance/run_all.py"
QUICK = "Platform*:Context*:BufferTransfer*:Map*:ProgramInclude*:ProgramBinary*:KernelArg*:EventDag*:Svm*"
# What today's suite asks for and daemons of a version do not do, since it was mended after them: by the version.
MENDED_IN_DAEMON = {"58ea0fa": {  # Headers behind links and "..".
    "ProgramIncludeTest.DotsAfterFolders", "ProgramIncludeTest.DotsAfterSymbolicLinks",
    "ProgramIncludeTest.HeadersThatAreSymbolicLinks"}}
report = harness.Report("compatibility")


def clean_environment():
    """Without what would lead elsewhere than to the default places."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "OCL_ICD", "XDG_"))}


class Side:
    """One version: its name, and where its programs and libraries are."""

    def __init__(self, name, tree):
        self.name, self.tree = name, pathlib.Path(tree)

    def program(self, name):
        return str(self.tree / "bin" / name)


class Daemon:
    """sluiced of one version with the places that are its default, on a port of loopback besides."""

    def __init__(self, program, folder, config=""):
        self.port = harness.free_port()
        self.log = folder / "sluiced.log"
        path = folder / "sluiced.toml"
        path.write_text(f'{config}[worker]\nuser = "root"\n')
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, "--config", str(path), "--listen", f"127.0.0.1:{self.port}"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment())

    def ready(self):
        harness.wait_until(lambda: "ready socket=" in self.log.read_text() or self.process.poll() is not None, SECONDS)
        harness.wait_until(lambda: harness.accepts("127.0.0.1", self.port) or self.process.poll() is not None, SECONDS)
        return self.process.poll() is None

    def socket(self):
        return re.search(r"ready socket=(\S+)", self.log.read_text()).group(1)

    def __enter__(self):
        if not self.ready():
            sys.exit(f"FAIL compatibility: {self.process.args[0]} did not come up:\n{self.log.read_text()}")
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Client:
    """Programs with the driver and the libsluice of one version."""

    def __init__(self, side, folder):
        self.side = side
        self.vendors = folder / f"vendors-{side.name}"
        self.vendors.mkdir(exist_ok=True)
        (self.vendors / "sluice.icd").write_text(f"{side.tree}/lib/libsluice_icd.so\n")

    def environment(self, daemon, kind):
        env = dict(clean_environment(), OCL_ICD_VENDORS=str(self.vendors), SLUICE_TEST_KIND=kind, SLUICE_LOG="error",
                   LD_LIBRARY_PATH=str(self.side.tree / "lib"))
        if kind == "network":
            env["SLUICE_ENDPOINT"] = f"127.0.0.1:{daemon.port}"
        return env

    def start(self, command, daemon, kind="ring"):
        return subprocess.Popen([str(word) for word in command], env=self.environment(daemon, kind), text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command, daemon, kind="ring", seconds=SECONDS):
        """(exit code, output); None and what there was after `seconds`."""
        return finish(self.start(command, daemon, kind), seconds)


def finish(process, seconds=SECONDS):
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[0]


# --- one client, one daemon ------------------------------------------------------------------------------


# A program computes, and clinfo shows the daemon's platform and its device.
def check_programs(client, daemon, kind, name):
    code, output = client.run([harness.built("vector_add")], daemon, kind)
    report.check(code == 0, f"{name}: vector_add", output)
    code, output = client.run(["clinfo", "--raw"], daemon, kind)
    names = re.findall(r"CL_PLATFORM_NAME\s+(.*)", output)
    devices = re.findall(r"CL_DEVICE_NAME\s+(.*)", output)
    report.check(code == 0 and names and names[0].startswith("Sluice (") and devices, f"{name}: clinfo",
                 output if code != 0 else f"{names} {devices}")


# Every test of the client's own version passes, but those of what the other side's daemon did not do yet.
def check_suite(client, daemon, kind, name, quick, mended):
    suite = client.side.program("sluice_conformance")
    command = [sys.executable, "-B", RUN_ALL, suite, *([f"--filter={QUICK}"] if quick else [])]
    if kind == "ring":  # A test of the suite looks for the daemon by this name.
        command = ["env", f"SLUICE_ENDPOINT=unix:{daemon.socket()}", *command]
    code, output = client.run(command, daemon, kind, SUITE_SECONDS)
    counts = re.search(r"conformance: (\d+) passed, .*", output)
    failed = set(re.findall(r"^  (?:failed|crashed): (.*)$", output, re.MULTILINE))
    report.check(code is not None and counts and int(counts.group(1)) > 0 and failed <= mended,
                 f"{name}: conformance suite of {client.side.name}",
                 counts.group(0) if counts and failed <= mended else f"{sorted(failed - mended)} {output[-300:]}")
    for test in sorted(mended - failed) if not quick else ():
        report.check(False, f"{name}: {test} is listed as failing there, and passes")


# A producer and a consumer with libsluice.so.0 of two versions exchange frames, and each sees the other's bytes.
def check_resources(producer, consumer, daemon, name):
    program = harness.built("resource_frames")
    one = producer.start([program, "produce", 20, 64, 48], daemon)
    words = [one.stdout.readline().split() for _ in range(2)]
    if not all(len(line) == 2 for line in words):
        report.check(False, f"{name}: the producer's resources", f"{words} {finish(one)[1]}")
        return
    capability = dict(words)
    code, output = consumer.run([program, "consume", 20, capability["frames"], capability["ack"]], daemon)
    report.check(code == 0, f"{name}: every pixel verified by the consumer", output)
    code, output = finish(one)
    report.check(code == 0, f"{name}: every frame acknowledged", output)


def check_pair(clients, client, daemon, title, quick, mended):
    for kind in ("ring", "network"):
        name = f"{title}, {kind}"
        check_programs(client, daemon, kind, name)
        check_suite(client, daemon, kind, name, quick, mended)
    for producer, consumer in (clients, clients[::-1]):
        check_resources(producer, consumer, daemon,
                        f"{title}: frames from {producer.side.name} to {consumer.side.name}")


# --- what an upgrade does --------------------------------------------------------------------------------


# A daemon goes on whose programs have been replaced while it runs: it starts today's workers, gateway and allocator.
def check_replaced_programs(old, new, clients, folder):
    mixed = folder / "mixed"
    shutil.copytree(old.tree / "bin", mixed / "bin")
    with Daemon(str(mixed / "bin/sluiced"), folder) as daemon:
        for name in ("sluiced", "sluice-worker", "sluice-gateway", "sluice-allocator"):
            shutil.copy(new.program(name), mixed / "bin" / f"{name}.new")
            os.replace(mixed / "bin" / f"{name}.new", mixed / "bin" / name)
        for client in clients:
            for kind in ("ring", "network"):
                check_programs(client, daemon, kind, f"{old.name}'s daemon, programs replaced while it runs, "
                                                     f"client {client.side.name}, {kind}")


# In a container an old client looks for /run/sluice/broker.sock: the clients' folder mounted there is enough.
def check_container(client, daemon, name):
    if not shutil.which("bwrap"):
        print(f"SKIP {name}: bwrap is missing")
        return
    env = client.environment(daemon, "ring")
    command = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/run", "--ro-bind", "/run/sluice/clients", "/run/sluice",
               "--die-with-parent", str(harness.built("vector_add"))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    report.check(done.returncode == 0, name, done.stdout + done.stderr)


def uncommented(text):
    """An example configuration with its commented keys in force, without what needs a machine's users and files."""
    lines = [re.sub(r"^#(?=[a-z_]+ = |\[)", "", line) for line in text.splitlines()]
    skipped = re.compile(r"(socket_group|user|monitor_group|cache_directory)\b")
    text = "\n".join(line for line in lines if not skipped.match(line)) + "\n"
    return re.split(r"^\[\[network", text, maxsplit=1, flags=re.MULTILINE)[0]


# A configuration with every key of the old version but [[network]]'s is taken, and each key that has another form is named with it.
def check_configuration(old, new, folder):
    text = old_versions.text_of(old.name, "deploy/linux/sluiced.toml")
    path = folder / "old.toml"
    path.write_text(uncommented(text))
    before = subprocess.run([old.program("sluiced"), "--check-config", str(path)], capture_output=True, text=True,
                            check=False)
    report.check(before.returncode == 0, f"{old.name}'s own example configuration, by {old.name}", before.stderr)
    now = subprocess.run([new.program("sluiced"), "--check-config", str(path)], capture_output=True, text=True,
                         check=False)
    report.check(now.returncode == 0, f"every key of {old.name}'s configuration, but [[network]]'s, is taken", now.stderr)
    for key, form in (("socket", "/run/sluice/clients/broker.sock"), ("admin_socket", "/run/sluice-admin/admin.sock")):
        named = [line for line in now.stderr.splitlines() if f'key "{key}"' in line and form in line]
        report.check(named, f'--check-config names "{key}" and its new form', now.stderr)


# Today's operators' tool asks a daemon of old by its socket.
def check_sluicectl(new, daemon, admin, name):
    done = subprocess.run([new.program("sluicectl"), "status", "--admin-socket", admin], env=clean_environment(),
                          capture_output=True, text=True, timeout=SECONDS, check=False)
    report.check(done.returncode == 0 and daemon.process.poll() is None, name, done.stdout + done.stderr)


# --- libsluice.so.0 --------------------------------------------------------------------------------------


def types_library(side, source, folder, functions):
    """A library that holds nothing but the types of sluice.h, with debug information for abidiff."""
    text = folder / f"types-{side.name}.c"
    text.write_text('#include "sluice/sluice.h"\n' +
                    "".join(f"__typeof__({name})* type_of_{name};\n" for name in functions))
    out = folder / side.name / "libtypes.so"
    out.parent.mkdir(exist_ok=True)
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-I", str(source / "client_icd/libsluice"), "-o", str(out), text],
                   check=True)
    return out


# libsluice.so.0 has every function that it had, and its header's types are what they were.
def check_abi(old, new, old_source, folder):
    if not shutil.which("abidiff"):
        print("SKIP compatibility: abidiff of libsluice.so.0: apt-get install abigail-tools")
        return
    was, now = (side.tree / "lib/libsluice.so.0" for side in (old, new))
    listed = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", str(was)], capture_output=True, text=True,
                            check=True).stdout
    functions = re.findall(r"^(sluice_\w+)\S* T ", listed, re.MULTILINE)
    pairs = [("exported functions", was, now),
             ("the header's types", types_library(old, old_source, folder, functions),
              types_library(new, harness.ROOT, folder, functions))]
    for what, one, other in pairs:
        done = subprocess.run(["abidiff", "--no-added-syms", str(one), str(other)], capture_output=True, text=True,
                              check=False)
        report.check(done.returncode == 0 and functions, f"libsluice.so.0 against {old.name}'s: {what}",
                     done.stdout + done.stderr if done.returncode != 0 else f"{len(functions)} functions")


# --- all of it -------------------------------------------------------------------------------------------


def check_version(version, tree, quick):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    os.chmod(folder, 0o755)
    try:
        old, new = Side(version, tree), Side("today", harness.build_dir())
        clients = (Client(old, folder), Client(new, folder))
        check_abi(old, new, pathlib.Path(tree).parent / "source", folder)
        check_configuration(old, new, folder)
        with Daemon(new.program("sluiced"), folder) as daemon:
            title = f"client {version}, daemon today"
            check_pair(clients, clients[0], daemon, title, quick, set())
            check_container(clients[0], daemon, f"{title}: a container with the clients' folder at /run/sluice")
        shutil.rmtree("/run/sluice", ignore_errors=True)  # As on a machine that never had today's.
        with Daemon(old.program("sluiced"), folder) as daemon:
            title = f"client today, daemon {version}"
            check_pair(clients, clients[1], daemon, title, quick, MENDED_IN_DAEMON.get(version, set()))
            check_sluicectl(new, daemon, "/run/sluice/admin.sock", f"sluicectl today, daemon {version}: status")
        check_replaced_programs(old, new, clients, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def enter_own_run():
    """Runs this again in a mount namespace with an empty /run, or says why that cannot be had."""
    if os.geteuid() != 0:
        print("SKIP compatibility: only root has the default places of a daemon")
        return 0
    command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"', "sh"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        print(f"SKIP compatibility: no mount namespace: {tried.stderr.strip()}")
        return 0
    return subprocess.call([*command, sys.executable, "-B", __file__, *sys.argv[1:]], env=dict(os.environ, **{INSIDE: "1"}))


def main():
    flags = {word for word in sys.argv[1:] if word.startswith("-")}
    if flags - {"--build", "--quick"}:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    if not os.environ.get(INSIDE):
        sys.exit(enter_own_run())
    for version in [word for word in sys.argv[1:] if not word.startswith("-")] or old_versions.VERSIONS:
        try:
            tree = old_versions.tree_of(version, "--build" in flags)
        except old_versions.NotThere as reason:
            if "--build" in flags and not isinstance(reason, old_versions.NoHistory):
                report.check(False, f"version {version}", reason)
            else:
                print(f"SKIP compatibility: version {version}: {reason}")
            continue
        check_version(version, tree, "--quick" in flags)
    report.exit()


if __name__ == "__main__":
    main()
