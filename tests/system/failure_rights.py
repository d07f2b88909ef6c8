#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Programs that have more rights than who starts them, and a daemon that has fewer than its name says.

Usage: failure_rights.py
"""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import harness

SECONDS = 60

report = harness.Report("failure_rights")
harness.let_others_run()


def as_nobody(command, **options):
    return subprocess.run(command, user=harness.NOBODY, group=harness.NOBODY, extra_groups=[], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False, **options)


# The user who starts a set-user-ID program says neither where its daemon is nor what that is shown.
def check_set_user_id(folder, vendors):
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        print(f"SKIP set-user-ID programs: {folder} is mounted without them (nosuid)")
        return
    program = folder / "list_platforms"
    shutil.copy(harness.built("list_platforms"), program)
    (folder / "sluice/clients").mkdir(parents=True)
    paths = {"SLUICE_ENDPOINT": folder / "named.sock", "XDG_RUNTIME_DIR": folder / "sluice/clients/broker.sock"}
    for variable, path in paths.items():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            os.chmod(path, 0o666)
            listener.listen(8)
            listener.setblocking(False)
            value = f"unix:{path}" if variable == "SLUICE_ENDPOINT" else str(folder)
            env = {"PATH": os.environ["PATH"], "OCL_ICD_VENDORS": str(vendors), variable: value}
            for mode, comes in ((0o755, True), (0o4755, False)):
                program.chmod(mode)
                child = subprocess.Popen([str(program)], env=env, user=harness.NOBODY, group=harness.NOBODY,
                                         extra_groups=[], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
                came = []

                def seen(came=came, listener=listener):
                    try:
                        came.append(listener.accept()[0])
                    except BlockingIOError:
                        pass
                    return came or child.poll() is not None
                harness.wait_until(seen, SECONDS)
                for connection in came:
                    connection.close()
                child.kill()
                child.wait()
                what = "by a set-user-ID program" if mode == 0o4755 else "by a plain one"
                report.check(bool(came) == comes, f"{variable} is {'heard' if comes else 'not heard'} {what}",
                             f"connected: {bool(came)}")


# Root of a user namespace: of one user, which is nobody outside; of the ids that containers have.
def check_user_namespaces(folder, vendors):
    run = [str(harness.built("sluicectl")), "run", "--private", "--", str(harness.built("list_platforms"))]
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("SLUICE_", "OCL_ICD", "POCL_", "XDG_"))}
    env.update(TMPDIR=str(folder), HOME=str(folder))
    one = as_nobody(["unshare", "--user", "--map-root-user", *run], env=env)
    if b"unshare:" in one.stdout:
        print(f"SKIP user namespaces: {one.stdout.decode().strip()}")
        return
    report.check(b"platform Sluice (" in one.stdout, "run --private as root of a namespace with one user",
                 one.stdout.decode())
    endpoint = folder / "sluice/clients/broker.sock"
    log = folder / "log"
    daemon = [str(harness.built("sluiced")), "--socket", str(endpoint)]
    with log.open("wb") as out:
        child = subprocess.Popen(["unshare", "--user", "sh", "-c", 'read _ && exec "$@"', "sh", *daemon], env=env,
                                 stdin=subprocess.PIPE, stdout=out, stderr=out)
    own = os.readlink("/proc/self/ns/user")
    harness.wait_until(lambda: os.readlink(f"/proc/{child.pid}/ns/user") != own, SECONDS)
    for kind in ("uid", "gid"):
        pathlib.Path(f"/proc/{child.pid}/{kind}_map").write_text("0 0 65536\n")
    child.stdin.write(b"\n")
    child.stdin.close()
    harness.wait_until(lambda: harness.takes_clients(endpoint) or child.poll() is not None, SECONDS)
    listing = subprocess.run([str(harness.built("list_platforms"))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                             env=dict(env, OCL_ICD_VENDORS=str(vendors), SLUICE_ENDPOINT=f"unix:{endpoint}"))
    works = subprocess.run([str(harness.built("vector_add"))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                           env=dict(env, OCL_ICD_VENDORS=str(vendors), SLUICE_ENDPOINT=f"unix:{endpoint}",
                                    SLUICE_TEST_KIND="ring"))
    child.terminate()
    child.wait(SECONDS)
    report.check(works.returncode == 0, "a daemon in one with a container's 65536",
                 (listing.stdout + works.stdout).decode() + log.read_text())
    report.check("[worker] user" in log.read_text(), "which says that its workers are one user's", log.read_text())


# After su, or in a cron job, the place of root's daemon is all that is left.
def check_no_runtime_folder():
    run = as_nobody([str(harness.built("sluiced")), "--config", "/dev/null"], env={"PATH": os.environ["PATH"]})
    output = run.stdout.decode()
    report.check(run.returncode == 1 and "XDG_RUNTIME_DIR" in output and "--socket" in output,
                 "a user without XDG_RUNTIME_DIR is told of it", f"exit {run.returncode}: {output}")


def main():
    if os.geteuid() != 0:
        print("SKIP rights: only root can give them away")
        report.exit()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    folder.chmod(0o1777)
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "sluice.icd").write_text(f"{harness.built('libsluice_icd.so')}\n")
    try:
        check_set_user_id(folder, vendors)
        check_user_namespaces(folder, vendors)
        check_no_runtime_folder()
    finally:
        shutil.rmtree(folder)
    report.exit()


if __name__ == "__main__":
    main()
