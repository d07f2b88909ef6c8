#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What deploy's scripts are asked and cannot do, they refuse before they do anything, and name it: build.sh of the
portable client replaces nothing but an earlier client. Its compiler is a made-up one, which takes no time."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import tree

PORTABLE = tree.ROOT / "deploy/portable/build.sh"
CLIENT = ["libsluice_icd.so", "libsluice.so.0", "sluice.icd", "copyright.txt", "sluice/libsluice_remote.so",
          "sluice/sluice-network-helper", "sluice/sluice-resource-helper"]
# Stands for the build: it installs the client's files.
CMAKE = """#!/bin/sh
while [ $# -gt 1 ]; do
  if [ "$1" = --prefix ]; then
    mkdir -p "$2/sluice"
    for name in {names}; do echo new >"$2/$name"; done
  fi
  shift
done
"""
PROBLEMS = []


def run(*command, **variables):
    environment = {name: value for name, value in {**os.environ, **variables}.items() if value is not None}
    done = subprocess.run([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, timeout=50,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def refused(what, words, *command, **variables):
    code, text = run(*command, **variables)
    if code == 0 or not all(word in text for word in words):
        PROBLEMS.append(f"{what}: exit {code}, and should name {words}: {text[-300:]}")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def stand_in(work):
    """The variables with which build.sh --here takes no time."""
    (work / "bin").mkdir()
    (work / "bin/cmake").write_text(CMAKE.replace("{names}", " ".join(CLIENT)))
    (work / "bin/cmake").chmod(0o755)
    release = subprocess.run(["sh", "-c", '. /etc/os-release && echo "${VERSION_CODENAME:-$ID}"'],
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    prefix = work / "cache" / f"here-{release}" / "work/prefix"
    (prefix / "licenses").mkdir(parents=True)
    (prefix / ".complete").touch()
    return {"PATH": f"{work / 'bin'}:{os.environ['PATH']}", "SLUICE_PORTABLE_CACHE": str(work / "cache"),
            "SLUICE_PORTABLE_ARCHIVE": None}


def programs_without(name, work):
    """A folder with this machine's programs but for one."""
    folder = work / f"without-{name}"
    folder.mkdir()
    for found in os.listdir("/usr/bin"):
        if found != name:
            (folder / found).symlink_to(f"/usr/bin/{found}")
    return folder


def check_portable_out(work, variables):
    out = work / "lib"
    for name in CLIENT:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("old")
    # What `cmake --install --prefix /usr` leaves in /usr/lib, beside all else.
    foreign = {"libc.so.6": "libc.so.6", "sluice/deeper/file": "sluice/deeper", "icudata": "icudata"}
    for name, named in foreign.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("somebody's")
        before = contents(out)
        refused(f"a folder that holds {name}", [str(out), f"holds {named},"], PORTABLE, "--here", out, **variables)
        if contents(out) != before:
            PROBLEMS.append(f"build.sh took from a folder that holds {name}: {sorted(set(before) - set(contents(out)))}")
        shutil.rmtree(out / named) if (out / named).is_dir() else (out / name).unlink(missing_ok=True)
    (out / "libsluice_icd.so").unlink(missing_ok=True)
    (out / "libsluice_icd.so").symlink_to("/nonexistent")
    refused("a link in place of a file", ["libsluice_icd.so"], PORTABLE, "--here", out, **variables)
    (out / "libsluice_icd.so").unlink(missing_ok=True)
    for folder in (out, work / "new" / "client"):
        code, text = run(PORTABLE, "--here", folder, **variables)
        if code != 0 or contents(folder) != {name: "new\n" for name in CLIENT}:
            PROBLEMS.append(f"build.sh {folder}: exit {code}, and has {contents(folder) if folder.exists() else None}: {text}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        variables = stand_in(work)
        check_portable_out(work, variables)
        new = work / "out"
        refused("an unknown option", ["'--bogus'"], PORTABLE, "--bogus", new)
        refused("a relative --folder", ["--folder", "'rel/x'", "absolute"], PORTABLE, "--here", "--folder", "rel/x", new,
                **variables)
        refused("no HOME", ["SLUICE_PORTABLE_CACHE"], PORTABLE, "--here", new, HOME=None, XDG_CACHE_HOME=None,
                SLUICE_PORTABLE_CACHE=None)
        refused("an archive that is not there", ["SLUICE_PORTABLE_ARCHIVE", "/nope"], PORTABLE, "--here", new,
                **{**variables, "SLUICE_PORTABLE_ARCHIVE": "/nope"})
        refused("a machine without xz", ["xz-utils"], PORTABLE, "--here", new,
                **{**variables, "PATH": f"{work / 'bin'}:{programs_without('xz', work)}"})
        if new.exists():
            PROBLEMS.append("build.sh made a client although it was asked for what it cannot do")
        refused("a client that is not there", ["--client /nope", "portable/build.sh"], tree.ROOT / "deploy/packages.sh",
                "--client", "/nope", "bookworm", new)
        refused("an unknown option of Windows' build", ["'--bogus'"], tree.ROOT / "deploy/windows/build.sh", "--bogus")
        check_quickstart(work)
    tree.finish(PROBLEMS, "deploy's scripts refuse what they cannot do, and name it")


def check_quickstart(work):
    """A user whom sudo refuses, on a machine where nothing is installed."""
    programs = {"dpkg-query": "exit 0", "id": "echo 1000", "sudo": "echo 'sorry, not you' >&2; exit 1"}
    for name, text in programs.items():
        (work / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (work / "bin" / name).chmod(0o755)
    refused("a user whom sudo refuses", ["quickstart.sh:", "root", "install-deps.sh --build"],
            tree.ROOT / "deploy/quickstart.sh", PATH=f"{work / 'bin'}:{os.environ['PATH']}")


if __name__ == "__main__":
    main()
