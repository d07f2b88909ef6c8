#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The commands of the guides (deploy/guides), as they stand there, in a folder of their own, by a user who is not root.

What is marked `sh run` in a guide is run, in the guide's order, by one shell. `toml run` is a configuration: it is
checked, and a daemon is started with it. Only what belongs to a machine is replaced: 0.0.0.0:7466 and :7466 by a free
port of loopback, /etc/sluice by the folder, $host by localhost. Programs see Sluice beside the machine's own drivers.
Also what the guides promise of credentials (none, another authority's, another token: no device), the completion of ids
of sessions, which needs one, and the example of libsluice(3). Usage: guides.py
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import harness

GUIDES = harness.ROOT / "deploy/guides"
SECONDS = 120
report = harness.Report("guides")

PRELUDE = r"""
set -eu
host=localhost
daemon_with_file=
serve() {  # The configuration, as the guide has it, and a daemon for it in place of the last one.
  sluiced --check-config "$1"
  [ -z "$daemon_with_file" ] || { kill "$daemon_with_file"; wait "$daemon_with_file"; }
  sluiced --config "$1" >>"$SCRATCH/sluiced.log" 2>&1 &
  daemon_with_file=$!
  until env -u SLUICE_ENDPOINT sluicectl devices >/dev/null 2>&1; do kill -0 "$daemon_with_file"; sleep 0.1; done
}
finish() {
  [ -z "$daemon_with_file" ] || ! kill "$daemon_with_file" 2>/dev/null || wait "$daemon_with_file" || true
}
trap finish EXIT
"""


def blocks_of(name):
    """(language, text) of each marked block of a guide."""
    text = (GUIDES / name).read_text(encoding="utf-8")
    return re.findall(r"^```(sh|toml) run\n(.*?)^```", text, re.S | re.M)


class Scratch:
    """A folder with the loader's folder and the user's, and the environment in which the guides' commands run."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-guides-"))
        vendors, runtime = self.folder / "vendors", self.folder / "run"
        vendors.mkdir()
        runtime.mkdir(mode=0o700)
        for icd in pathlib.Path("/etc/OpenCL/vendors").glob("*.icd"):
            if "sluice" not in icd.name:
                shutil.copy(icd, vendors)
        (vendors / "sluice.icd").write_text(f"{harness.built('libsluice_icd.so')}\n")
        self.port = harness.free_port()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("SLUICE_", "OCL_ICD_"))}
        self.environment.update(
            PATH=f"{harness.built('sluiced').parent}:{os.environ['PATH']}", OCL_ICD_VENDORS=str(vendors),
            XDG_RUNTIME_DIR=str(runtime), HOME=str(self.folder), SCRATCH=str(self.folder), TMPDIR=str(self.folder))

    def command(self, text):
        """A shell as somebody who is not root: root's daemon would be the machine's."""
        as_user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
        return [*as_user, "bash", "-c", text]

    def run(self, text):
        shell = subprocess.Popen(self.command(text), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = shell.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            output, _ = shell.communicate()
            return 124, output.decode(errors="replace") + f"\nended after {SECONDS} s"
        return shell.returncode, output.decode(errors="replace")

    def fitted(self, text):
        """The guide's words, with this machine's port and folders. What a container finds where stays as it is."""
        for words, here in (("0.0.0.0:7466", f"127.0.0.1:{self.port}"), (":7466", f":{self.port}"),
                            ("/etc/sluice", str(self.folder / "sluice-certificates")),
                            ("/srv/sluice-", str(self.folder / "sluice-")),
                            ("-bind /run/sluice/clients ", f"-bind {self.folder}/run/sluice/clients ")):
            text = text.replace(words, here)
        return text

    def log(self):
        path = self.folder / "sluiced.log"
        return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def script_of(scratch, name, after_each=lambda number: ""):
    """One script of a guide's marked blocks; each one's output begins with a line that a test finds."""
    lines = [PRELUDE]
    for number, (language, text) in enumerate(blocks_of(name)):
        lines.append(f"echo '== block {number}'")
        if language == "toml":
            (scratch.folder / f"{name}.{number}.toml").write_text(scratch.fitted(text))
            lines.append(f"serve \"$SCRATCH/{name}.{number}.toml\"")
        else:
            lines.append(scratch.fitted(text))
        lines.append(after_each(number))
    lines.append("echo '== end'")
    return "\n".join(lines)


def parts_of(output):
    return dict(re.findall(r"^== (block \d+|end)\n(.*?)(?=^== |\Z)", output, re.S | re.M))


def one_machine():
    scratch = Scratch()
    code, output = scratch.run(script_of(scratch, "one-machine.md"))
    report.check(code == 0 and "== end" in output, "one machine: every command ends well", output)
    listed = [name for name, text in parts_of(output).items() if "Platform #" in text]
    sees = [name for name, text in parts_of(output).items() if re.search(r"Platform #\d+: Sluice \(", text)]
    report.check(len(listed) == 2 and sees == listed, "one machine: both clinfo see Sluice", output)
    shutil.rmtree(scratch.folder)


def containers():
    """The client's folder, and a sandbox with it, the clients' folder and the system's files: no other driver's."""
    scratch = Scratch()
    scratch.environment.pop("OCL_ICD_VENDORS")  # In the sandbox /etc has Sluice's .icd file alone.
    (scratch.folder / "empty.toml").touch()
    code, output = scratch.run(script_of(scratch, "containers.md").replace(
        "echo '== block 0'", "serve \"$SCRATCH/empty.toml\"\necho '== block 0'", 1))
    report.check(code == 0 and "== end" in output, "containers: every command ends well", output + scratch.log())
    report.check(re.search(r"Platform #0: Sluice \(", output) and "Platform #1" not in output,
                 "containers: in bubblewrap clinfo sees Sluice alone", output)
    shutil.rmtree(scratch.folder)


# What the guide promises besides, after the block that has the first string: a command, and whether it sees Sluice.
PROMISES = (
    ("alice.pem SLUICE_TLS_KEY", "without a certificate", "env -u SLUICE_TLS_CERT -u SLUICE_TLS_KEY clinfo -l", False),
    ("alice.pem SLUICE_TLS_KEY", "with another authority's certificate",
     "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=alice "
     "-keyout other.key -out other.pem 2>/dev/null; "
     "SLUICE_TLS_CERT=$PWD/other.pem SLUICE_TLS_KEY=$PWD/other.key clinfo -l", False),
    ("alice.pem SLUICE_TLS_KEY", "where the server's authority is another",
     "SLUICE_TLS_CA=$PWD/other.pem clinfo -l", False),
    ("SLUICE_TOKEN_FILE=", "with another token",
     "echo 0123456789abcdef > other.token; SLUICE_TOKEN_FILE=$PWD/other.token clinfo -l", False),
    ("SLUICE_TOKEN_FILE=", "with the token again", "clinfo -l", True),
    ("client_crl", "with a revoked certificate",
     "unset SLUICE_TOKEN_FILE; SLUICE_TLS_CERT=$PWD/alice.pem SLUICE_TLS_KEY=$PWD/alice.key clinfo -l", False),
    ("client_crl", "with another certificate of the same authority",
     "unset SLUICE_TOKEN_FILE; "
     "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=bob -keyout bob.key -out bob.csr; "
     "openssl x509 -req -in bob.csr -CA ca.pem -CAkey ca.key -days 1 -extfile alice.ext -out bob.pem; "
     "SLUICE_TLS_CERT=$PWD/bob.pem SLUICE_TLS_KEY=$PWD/bob.key clinfo -l", True),
)


def another_host():
    scratch = Scratch()
    blocks = blocks_of("another-host.md")

    def promised(number):
        lines = []
        for place, (mark, what, command, _) in enumerate(PROMISES):
            if mark in blocks[number][1]:
                lines.append(f"echo '-- promise {place}'\n({command}) 2>&1 || true")
        return "\n".join(lines)

    code, output = scratch.run(script_of(scratch, "another-host.md", promised))
    report.check(code == 0 and "== end" in output, "another host: every command ends well", output + scratch.log())
    parts = parts_of(output)
    for number, (_, text) in enumerate(blocks):
        if "clinfo -l" in text:
            shown = parts.get(f"block {number}", "").split("-- promise")[0]
            report.check(re.search(r"Platform #\d+: Sluice \(", shown), "another host: clinfo sees Sluice "
                         + ("by a token" if "TOKEN" in text else "by a certificate"), shown)
    for place, (_, what, _, sees) in enumerate(PROMISES):
        shown = re.search(rf"^-- promise {place}\n(.*?)(?=^-- |^== |\Z)", output, re.S | re.M)
        found = shown is not None and re.search(r"Platform #\d+: Sluice \(", shown.group(1)) is not None
        report.check(shown is not None and found == sees,
                     f"another host: {what}, clinfo sees {'Sluice' if sees else 'nothing of Sluice'}",
                     shown.group(1) if shown else "it was not run")
    shutil.rmtree(scratch.folder)


def completion():
    """`sluicectl kill` completes the ids of the sessions that run."""
    scratch = Scratch()
    text = PRELUDE + r"""
: >"$SCRATCH/empty.toml"
serve "$SCRATCH/empty.toml"
coproc "$VICTIM" idle
read -r line <&"${COPROC[0]}"; until [[ $line == READY* ]]; do read -r line <&"${COPROC[0]}"; done
echo "== listed"; sluicectl sessions --json | sed -n 's/.*"session": "\(.*\)".*/\1/p'
source "$COMPLETION"
COMP_WORDS=(sluicectl kill ""); COMP_CWORD=2
_sluice sluicectl "" kill
echo "== completed"; printf '%s\n' "${COMPREPLY[@]}"
echo "== end"
echo >&"${COPROC[1]}"
"""
    scratch.environment.update(VICTIM=str(harness.built("victim")), OCL_ICD_VENDORS=str(scratch.folder / "alone"),
                               COMPLETION=str(harness.ROOT / "deploy/completion/sluice.bash"))
    # The program shall have no other driver; the daemon shall have the machine's.
    (scratch.folder / "alone").mkdir()
    shutil.copy(scratch.folder / "vendors/sluice.icd", scratch.folder / "alone")
    text = text.replace("  sluiced --config", f"  OCL_ICD_VENDORS={scratch.folder}/vendors sluiced --config")
    code, output = scratch.run(text)
    listed = re.search(r"^== listed\n(.*?)^== ", output, re.S | re.M)
    completed = re.search(r"^== completed\n(.*?)^== ", output, re.S | re.M)
    report.check(listed is not None and completed is not None and re.fullmatch(r"[0-9a-f]+\n", listed.group(1))
                 and listed.group(1) == completed.group(1), "bash completes ids of sessions", f"{code}: {output}")
    shutil.rmtree(scratch.folder)


def library_example():
    """The program in libsluice(3) compiles without a warning, and makes a resource."""
    scratch = Scratch()
    page = (harness.ROOT / "deploy/man/libsluice.3.scd").read_text(encoding="utf-8")
    example = re.search(r"^# EXAMPLE\n.*?^```\n(.*?)^```", page, re.S | re.M).group(1).replace("\\\\", "\\")
    (scratch.folder / "example.c").write_text(example)
    library = harness.built("libsluice.so").parent
    code, output = scratch.run(
        f"set -e; cc -std=c11 -Wall -Wextra -Werror -I{harness.ROOT}/client_icd/libsluice -o example example.c "
        f"-L{library} -lsluice -Wl,-rpath,{library}\n"
        "sluicectl run --private -- sh -c 'yes | ./example'")
    report.check(code == 0 and re.search(r"^[0-9a-f]{48}$", output, re.M), "the example of libsluice(3) runs", output)
    shutil.rmtree(scratch.folder)


def main():
    for program in ("bash", "bwrap", "cc", "openssl", "clinfo", "unshare"):
        if shutil.which(program) is None:
            print(f"SKIP guides: {program} is not installed")
            sys.exit(0)
    scratch = Scratch()
    code, output = scratch.run("true")
    shutil.rmtree(scratch.folder)
    if code != 0:
        print(f"SKIP guides: this machine allows no user namespaces: {output.strip()}")
        sys.exit(0)
    one_machine()
    containers()
    another_host()
    completion()
    library_example()
    report.exit()


if __name__ == "__main__":
    main()
