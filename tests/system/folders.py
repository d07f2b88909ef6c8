#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The folder that containers mount holds the clients' socket alone, and stays when the daemon goes and comes.

In a mount namespace with a /run of its own, so that daemon and programs use the machine's default places. A container
is bubblewrap's: /run there has the one folder, bound read-only, and lives on while the daemon outside is stopped,
killed, and started by socket activation. Then what is left of version 0.1: the link, and configurations of old, which
work and are warned of. And who may look through the monitor socket. Usage: folders.py
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

import harness

SECONDS = 60
INSIDE = "SLUICE_TEST_HAS_OWN_RUN"
CLIENTS = pathlib.Path("/run/sluice/clients")
ADMIN = pathlib.Path("/run/sluice-admin")
SOCKET = CLIENTS / "broker.sock"
LINK = pathlib.Path("/run/sluice/broker.sock")
GROUP, NOBODY = "daemon", harness.NOBODY
report = harness.Report("folders")


def environment():
    """Without what would lead elsewhere than to the default places."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "OCL_ICD", "XDG_"))}


class Daemon:
    """sluiced with the default places; `broker`: lines for [broker]."""

    def __init__(self, folder, broker="", listener=None):
        self.log = folder / "log"
        config = folder / "sluiced.toml"
        config.write_text(f'[broker]\n{broker}\n[worker]\nuser = "root"\n')
        command = [str(harness.built("sluiced")), "--config", str(config)]
        passed = {}
        if listener is not None:
            # As a service manager has it: descriptor 3, and whose it is.
            command = ["sh", "-c", 'exec 3<&"$0"; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"', str(listener.fileno()),
                       *command]
            passed = {"pass_fds": [listener.fileno()]}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment(), **passed)
        harness.wait_until(lambda: "ready socket=" in self.log.read_text() or self.process.poll() is not None, SECONDS)
        if self.process.poll() is not None:
            sys.exit(f"FAIL folders: sluiced did not come up:\n{self.log.read_text()}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(SECONDS)


class Container:
    """bubblewrap with one folder of /run and Sluice's driver, which runs a shell line for each that it is given."""

    def __init__(self, folder, mounted):
        vendors = folder / "vendors"
        vendors.mkdir(exist_ok=True)
        (vendors / "sluice.icd").write_text(f"{harness.built('libsluice_icd.so')}\n")
        self.process = subprocess.Popen(
            ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-ipc",
             "--tmpfs", "/run", "--ro-bind", str(mounted), str(mounted), "--die-with-parent", "--clearenv",
             "--setenv", "PATH", os.environ["PATH"], "--setenv", "OCL_ICD_VENDORS", str(vendors), "sh", "-c",
             'while read -r line; do sh -c "$line" </dev/null 2>&1; echo "ended $?"; done'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, line):
        """(exit code, output)"""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        output = []
        for said in iter(self.process.stdout.readline, ""):
            if said.startswith("ended "):
                return int(said.split()[1]), "".join(output)
            output.append(said)
        return None, "".join(output)

    def sees(self, endpoint=""):
        variable = f"SLUICE_ENDPOINT={endpoint} " if endpoint else ""
        output = self.run(f"{variable}{harness.built('list_platforms')}")[1]
        return "platform Sluice (" in output

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait(SECONDS)


def ctl(*arguments, **options):
    run = subprocess.run([str(harness.built("sluicectl")), *arguments], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False,
                         env=environment(), **options)
    return run.returncode, run.stdout


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def check_places(daemon):
    held = os.listdir(CLIENTS)
    report.check(held == ["broker.sock"], "the clients' folder holds the socket alone", held)
    report.check(sorted(os.listdir(ADMIN)) == ["admin.sock", "monitor.sock"], "operators have a folder of their own",
                 os.listdir(ADMIN))
    report.check(mode(ADMIN / "admin.sock") == 0o600, "the admin socket is the daemon's own user's",
                 oct(mode(ADMIN / "admin.sock")))
    report.check(os.readlink(LINK) == "clients/broker.sock", "a link from where it was", os.readlink(LINK))
    code, output = ctl("status")
    report.check(code == 0 and f"unix:{SOCKET}" in output, "sluicectl finds it by itself", output)
    steps = {step["step"]: step for step in json.loads(ctl("doctor", "--json")[1])["steps"]}
    report.check(steps["clients' folder"]["result"] == "ok", "doctor finds nothing in the clients' folder", steps)
    report.check("place of old" not in daemon.log.read_text(), "nothing is warned of", daemon.log.read_text())


def check_restarts(folder):
    before = CLIENTS.stat().st_ino
    with Daemon(folder) as daemon, Container(folder, CLIENTS) as container:
        check_places(daemon)
        report.check(container.sees(), "a container that has the folder mounted sees the device")
        code, output = container.run(f"{harness.built('sluicectl')} sessions")
        report.check(code == 3, "and cannot ask what operators ask", output)
        code, output = container.run(f"ls {CLIENTS} /run")
        report.check(output.split() == ["/run:", "sluice", f"{CLIENTS}:", "broker.sock"], "and has nothing else",
                     output)
        for how, number in (("stopped", signal.SIGTERM), ("killed", signal.SIGKILL)):
            daemon.end(number)
            report.check(number == signal.SIGKILL or not SOCKET.exists(), f"{how}: the socket goes with it")
            report.check(not container.sees(), f"{how}: the container sees none")
            daemon = Daemon(folder)
            report.check(container.sees(), f"{how} and started again: the same container sees the device",
                         daemon.log.read_text())
        daemon.end()
        # As a socket unit does: it makes the socket, gives it to the daemon, and removes it when it is stopped.
        for turn in ("first", "second"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                listener.bind(str(SOCKET))
                listener.listen(8)
                os.chmod(SOCKET, 0o666)
                with Daemon(folder, listener=listener) as activated:
                    report.check(container.sees(), f"activated the {turn} time: the same container sees the device",
                                 activated.log.read_text())
                report.check(SOCKET.exists(), f"activated the {turn} time: the socket is not the daemon's to remove")
            SOCKET.unlink()
    report.check(CLIENTS.stat().st_ino == before, "the folder has been the same all the time")


def check_old_places(folder):
    old = LINK.parent
    if not os.path.lexists(LINK):
        LINK.symlink_to("clients/broker.sock")
    with Daemon(folder):
        pass
    report.check(os.path.lexists(LINK), "a link that was there before the daemon stays, as tmpfiles means it to")
    LINK.unlink()
    with Daemon(folder), Container(folder, old) as container:
        report.check(container.sees(f"unix:{LINK}"), "a container of old, with /run/sluice, sees it by the link")
        report.check("admin" not in container.run(f"ls -R {old}")[1], "and no longer has the operators' socket")
    report.check(not os.path.lexists(LINK), "the link goes with the daemon that made it")
    with Daemon(folder, f'socket = "{LINK}"\nadmin_socket = "{old}/admin.sock"') as daemon:
        text = daemon.log.read_text()
        for key in ("socket", "admin_socket"):
            report.check(f'key \\"{key}\\" in [broker]' in text, f"the log warns of the old {key}", text)
        code, output = ctl("status")
        report.check(code == 0, "sluicectl finds the old admin socket", output)
        checked = f"{harness.built('sluiced')} --check-config {folder}/sluiced.toml"
        code, output = subprocess.getstatusoutput(checked)
        told = [line for line in output.splitlines() if line.startswith("warning: ") and "[broker]" in line]
        report.check(code == 0 and len(told) == 2 and all("0.3.0 refuses it" in line for line in told),
                     "--check-config warns of both", output)
        for wrong, part in (("[limits]\nmax_sesions = 1\n", "max_sesions"), ("[[listener]]\nmode = \"0666\"\n", "[[listener]]")):
            file = folder / "wrong.toml"
            file.write_text((folder / "sluiced.toml").read_text() + wrong)
            code, output = subprocess.getstatusoutput(f"{harness.built('sluiced')} --check-config {file}")
            told = [line for line in output.splitlines() if line.startswith("warning: ") and "[broker]" in line]
            report.check(code != 0 and part in output and len(told) == 2, f"also beside {wrong.strip()!r}", output)
        with Container(folder, old) as container:
            output = container.run(f"{harness.built('sluicectl')} doctor --json")[1]
            steps = {step["step"]: step for step in json.loads(output)["steps"]}
            found = steps["clients' folder"]
            report.check(found["result"] == "warning" and f"{old}/admin.sock" in found["found"] and
                         str(ADMIN) in found["advice"], "doctor in a container names the admin socket it has", output)
            report.check(steps["session"]["result"] == "ok", "which is no fault of the program's", output)


def check_monitor(folder):
    """The group's members look, and change nothing; others do neither."""
    harness.let_others_run()
    member = {"user": NOBODY, "group": GROUP, "extra_groups": []}
    stranger = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with Daemon(folder, f'monitor_group = "{GROUP}"'):
        report.check(mode(ADMIN / "monitor.sock") == 0o660, "the monitor socket is a group's",
                     oct(mode(ADMIN / "monitor.sock")))
        for command in ("status", "sessions", "resources"):
            code, output = ctl(command, **member)
            report.check(code == 0, f"a member of the group: {command}", output)
            code, output = ctl(command, **stranger)
            report.check(code == 3 and "sluice-monitor" in output and f"{ADMIN}/monitor.sock" in output, f"somebody else: no {command}", output)
        for command in (("kill", "1"), ("drain",)):
            code, output = ctl(*command, **member)
            report.check(code == 3 and "administer" in output, f"a member of the group: no {command[0]}", output)
            code, output = ctl(*command, "--admin-socket", str(ADMIN / "monitor.sock"), **member)
            report.check(code == 1 and str(ADMIN / "admin.sock") in output,
                         f"nor by the monitor socket, which names the other: {command[0]}", output)


def main():
    if not os.environ.get(INSIDE):
        root = os.geteuid() == 0
        unshare = ["unshare", "--mount", *([] if root else ["--user", "--map-root-user"])]
        missing = [name for name in ("bwrap", "unshare") if shutil.which(name) is None]
        tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False) if not missing else None
        if missing or tried.returncode != 0:
            print(f"SKIP folders: no mount namespace: {missing or tried.stderr.strip()}")
            return
        env = dict(os.environ, **{INSIDE: "1" if root else "2"})
        sys.exit(subprocess.call([*unshare, "sh", "-c", 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"', "sh",
                                  sys.executable, "-B", __file__], env=env))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-test-"))
    os.chmod(folder, 0o755)
    try:
        if os.environ[INSIDE] != "1":
            # It trusts no folder below one of somebody else's, and here / is nobody's.
            print("SKIP folders: tmpfiles: only root runs it (the daemon makes the folders)")
            CLIENTS.mkdir(parents=True)
        elif shutil.which("systemd-tmpfiles"):
            rules = harness.ROOT / "deploy/linux/sluice.tmpfiles"
            subprocess.run(["systemd-tmpfiles", "--create", "--prefix=/run", str(rules)], check=True)
            report.check(os.readlink(LINK) == "clients/broker.sock", "tmpfiles makes the folders and the link")
        else:
            print("SKIP folders: tmpfiles: systemd-tmpfiles is not installed (the daemon makes the folders)")
            CLIENTS.mkdir(parents=True)
        check_restarts(folder)
        check_old_places(folder)
        if os.environ[INSIDE] == "1":
            check_monitor(folder)
        else:
            print("SKIP folders: who may look: only root can be other users")
    finally:
        shutil.rmtree(folder)
    report.exit()


if __name__ == "__main__":
    main()
