#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""`sluicectl doctor --container PID` looks into a container from outside and names what it lacks.

The containers are bubblewrap's, on roots that are made here: each lacks one thing. Usage: container_doctor.py
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import harness

report = harness.Report("container_doctor")
OK, FAULTY = 0, 1
LIBRARIES = "usr/lib/x86_64-linux-gnu" if os.uname().machine == "x86_64" else f"usr/lib/{os.uname().machine}-linux-gnu"


class Container:
    """A root in which busybox sleeps until this ends. `binds` are pairs of host's and container's paths."""

    def __init__(self, root, binds=(), variables=()):
        read, write = os.pipe()
        os.set_inheritable(write, True)
        command = ["bwrap", "--unshare-all", "--as-pid-1", "--die-with-parent", "--clearenv", "--ro-bind", str(root), "/", "--proc", "/proc",
                   "--info-fd", str(write)]
        for source, path in binds:
            command += ["--ro-bind", str(source), path]
        for name, value in variables:
            command += ["--setenv", name, value]
        # Its word says that it runs; the end of its input ends it.
        self.process = subprocess.Popen([*command, "/bin/busybox", "sh", "-c", "echo up; read line"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, pass_fds=(write,))
        os.close(write)
        up = self.process.stdout.readline()
        with os.fdopen(read) as info:
            self.pid = json.loads(info.read())["child-pid"] if up else None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.communicate(b"\n")

    def doctor(self):
        run = subprocess.run([str(harness.built("sluicectl")), "doctor", "--json", "--container", str(self.pid)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60, check=False)
        answer = json.loads(run.stdout)
        return run.returncode, {step["step"]: step for step in answer["steps"]}


def make_root(folder):
    """What a minimal image with glibc and a loader has."""
    for name in ("bin", "proc", "etc/OpenCL/vendors", "run/sluice/clients", "run/sluice-admin", "lib", "lib64",
                 "usr/lib/sluice-client", LIBRARIES):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("busybox"), folder / "bin/busybox")
    here = pathlib.Path("/") / LIBRARIES
    for name in ("libc.so.6", "libOpenCL.so.1"):
        shutil.copy(os.path.realpath(here / name), folder / LIBRARIES / name)
    (folder / "etc/OpenCL/vendors/sluice.icd").write_text("/usr/lib/sluice-client/libsluice_icd.so\n")
    return folder


def make_library(path, code, version_script=""):
    """A shared library that needs nothing but what is said."""
    source = path.with_suffix(".c")
    source.write_text(code)
    script = path.with_suffix(".map")
    script.write_text(version_script or "{ local: *; };")
    subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-nodefaultlibs", f"-Wl,--version-script={script}", f"-Wl,-soname={path.name}",
                    "-o", str(path), str(source)], check=True)
    return path


def expect(container, step, words, result="failed"):
    code, steps = container.doctor()
    found = steps.get(step, {})
    text = found.get("found", "") + found.get("advice", "")
    good = found.get("result") == result and all(word in text for word in words)
    return report.check(good and (result != "failed" or code == FAULTY), f"{step}: {words[0]}", "" if good else steps)


def variant(root, name):
    copy = root.with_name(f"root-{name}")
    shutil.copytree(root, copy, symlinks=True)
    return copy


# Each root lacks one thing; that is named, with what to do.
def check_lacks(root, client):
    with_client = [(client, "/usr/lib/sluice-client")]
    musl = variant(root, "musl")
    (musl / LIBRARIES / "libc.so.6").unlink()
    (musl / "lib/ld-musl-x86_64.so.1").write_text("musl")
    with Container(musl, with_client) as container:
        expect(container, "C library", ["musl (/lib/ld-musl-x86_64.so.1)", "glibc", "Alpine"])
    bare = variant(root, "bare")
    (bare / LIBRARIES / "libOpenCL.so.1").unlink()
    (bare / "etc/OpenCL/vendors/sluice.icd").unlink()
    with Container(bare, with_client) as container:
        expect(container, "OpenCL loader", ["libOpenCL.so.1 is in none of", "ocl-icd"])
        expect(container, "ICD file", ["no .icd file in /etc/OpenCL/vendors", "/etc/OpenCL/vendors/sluice.icd", "--device"])
    with Container(root, with_client, [("OCL_ICD_VENDORS", "/etc/other")]) as container:
        expect(container, "ICD file", ["no .icd file in /etc/other", "OCL_ICD_VENDORS is set"])
    with Container(root) as container:
        expect(container, "ICD library", ["cannot open /usr/lib/sluice-client/libsluice_icd.so", "export-client"])
        expect(container, "daemon's socket", ["/run/sluice/clients/broker.sock", "mount the host's folder"])


# What a loader would say of the driver, without one.
def check_driver(root, folder):
    needy = folder / "needy"
    needy.mkdir()
    make_library(folder / "libmissing.so.7", "void missing(void) {}", "{ global: missing; };")
    source = folder / "driver.c"
    source.write_text("void missing(void); void entry(void) { missing(); }")
    subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-o", str(needy / "libsluice_icd.so"), str(source),
                    str(folder / "libmissing.so.7")], check=True)
    with Container(root, [(needy, "/usr/lib/sluice-client")]) as container:
        expect(container, "ICD library", ["libmissing.so.7 missing", "glibc alone"])
    shutil.copy(folder / "libmissing.so.7", variant(root, "whole") / LIBRARIES)
    with Container(root.with_name("root-whole"), [(needy, "/usr/lib/sluice-client")]) as container:
        expect(container, "ICD library", ["has all that it needs"], "ok")
    # An older glibc than the driver was built for.
    old = variant(root, "old")
    make_library(old / LIBRARIES / "libc.so.6", "void a(void) {}", "GLIBC_2.2.5 { global: a; }; GLIBC_2.28 { } GLIBC_2.2.5;")
    plain = folder / "plain"
    plain.mkdir()
    source.write_text("#include <pthread.h>\nvoid entry(void) { pthread_key_delete(0); }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(plain / "libsluice_icd.so"), str(source)], check=True)
    with Container(old, [(plain, "/usr/lib/sluice-client")]) as container:
        expect(container, "C library", ["glibc 2.28"], "ok")
        if "GLIBC_2.34" in subprocess.run(["objdump", "-T", str(plain / "libsluice_icd.so")], capture_output=True, text=True,
                                          check=False).stdout:
            expect(container, "ICD library", ["it needs glibc 2.34, and the container has 2.28", "older glibc"])
        else:
            print("SKIP container_doctor: an older glibc: this machine's pthread functions are not of GLIBC_2.34")
    (plain / "libsluice_icd.so").write_bytes(b"\x7fELF no more")
    with Container(root, [(plain, "/usr/lib/sluice-client")]) as container:
        expect(container, "ICD library", ["/usr/lib/sluice-client/libsluice_icd.so: ", "ELF"])


# A daemon's socket that answers, one behind which nobody is, and one that gives away the daemon.
def check_sockets(root, client, folder):
    sockets = folder / "clients"
    sockets.mkdir()
    daemon = harness.Daemon("ring")
    text = daemon.config.read_text().replace(str(daemon.socket), str(sockets / "broker.sock"))
    daemon.socket = sockets / "broker.sock"
    daemon.config.write_text(text.replace("[broker]\n", f'[broker]\nadmin_socket = "{folder}/admin/admin.sock"\n', 1))
    (folder / "admin").mkdir(mode=0o700)
    with daemon:
        with Container(root, [(sockets, "/run/sluice/clients"), (client, "/usr/lib/sluice-client")]) as container:
            expect(container, "daemon's socket", ["the daemon answers"], "ok")
            expect(container, "operators' sockets", ["the container has none"], "ok")
        with Container(root, [(sockets, "/run/sluice/clients"), (folder / "admin", "/run/sluice-admin")]) as container:
            expect(container, "operators' sockets", ["/run/sluice-admin/admin.sock", "administers"])
        # Below the clients' folder, and by a name that says nothing: it is known by its answers.
        shutil.rmtree(folder / "above", ignore_errors=True)
        (folder / "above/below").mkdir(parents=True)
        for source, target in ((sockets / "broker.sock", "above/broker.sock"), (folder / "admin/admin.sock", "above/below/x.sock")):
            os.link(source, folder / target)
        with Container(root, [(folder / "above", "/run/sluice/clients")]) as container:
            expect(container, "operators' sockets", ["/run/sluice/clients/below/x.sock", "administers"])
        with Container(root, [], [("SLUICE_ENDPOINT", "gpu-host:7466")]) as container:
            expect(container, "daemon's socket", ["names the network"], "skipped")
    dead = folder / "dead"
    dead.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(dead / "broker.sock"))
    with Container(root, [(dead, "/run/sluice/clients")]) as container:
        expect(container, "daemon's socket", ["start the daemon", "mount its folder"])


# Run inside, where the image has it: it sees that it is in a container, and says what that lacks.
def check_inside(folder):
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--setenv", "container", "test", "--ro-bind", "/usr", "/usr",
             "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
             "--ro-bind", str(harness.built("sluicectl")), "/opt/sluicectl"]

    def doctor(*options):
        run = subprocess.run([*bwrap, *map(str, options), "/opt/sluicectl", "doctor", "--json"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, timeout=60, check=False)
        return {step["step"]: step for step in json.loads(run.stdout)["steps"]}

    steps = doctor()
    report.check("a container (test)" in steps["container"]["found"], "inside: it is a container", steps["container"])
    report.check("/etc/OpenCL/vendors/sluice.icd" in steps["ICD file"]["advice"], "inside: no .icd file", steps["ICD file"])
    report.check("the machine's folder /run/sluice/clients" in steps["daemon's socket"]["advice"], "inside: no socket",
                 steps["daemon's socket"])
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "sluice.icd").write_text("/opt/sluice/libsluice_icd.so\n")
    mounts = ["--ro-bind", vendors, "/etc/OpenCL/vendors"]
    library = doctor(*mounts)["ICD library"]
    report.check(library["result"] == "failed" and "No such file" in library["found"] and "export-client" in library["advice"],
                 "inside: the client is not mounted", library)
    library = doctor(*mounts, "--ro-bind", folder / "needy", "/opt/sluice")["ICD library"]
    report.check(library["result"] == "failed" and "libmissing.so.7" in library["found"] and "glibc alone" in library["advice"],
                 "inside: the driver does not load, in the loader's words", library)


# A container cannot lead the doctor out of it: its links are followed within its root only.
def check_hostile(root, folder):
    evil = variant(root, "evil")
    secret = folder / "secret.icd"
    secret.write_text("/secret/sluice\n")
    (evil / "etc/OpenCL/vendors/sluice.icd").unlink()
    (evil / "etc/OpenCL/vendors/sluice.icd").symlink_to(f"../../../../../../..{secret}")
    os.mkfifo(evil / "etc/OpenCL/vendors/a.icd")
    with Container(evil) as container:
        code, steps = container.doctor()
        report.check(code == FAULTY and steps["ICD file"]["result"] == "failed" and "/secret" not in json.dumps(steps),
                     "a container's links lead nowhere outside, and a pipe is not waited for", steps["ICD file"])


def main():
    missing = [name for name in ("bwrap", "busybox", "cc") if shutil.which(name) is None]
    refusal = "" if missing else subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], capture_output=True,
                                                text=True, check=False).stderr
    if missing or refusal:
        print(f"SKIP container_doctor: no container can be made here: {missing or refusal}")
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    folder.chmod(0o755)
    try:
        root = make_root(folder / "root")
        client = folder / "client"
        subprocess.run([str(harness.built("sluicectl")), "export-client", str(client)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        check_lacks(root, client)
        check_driver(root, folder)
        check_sockets(root, client, folder)
        check_inside(folder)
        check_hostile(root, folder)
        code = subprocess.run([str(harness.built("sluicectl")), "doctor", "--container", "4194304"], capture_output=True, text=True,
                              check=False)
        report.check(code.returncode == FAULTY and "no process 4194304" in code.stdout, "a process that there is not", code.stdout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
report.exit()
