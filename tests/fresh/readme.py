#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs README.md's commands where nothing was prepared: in a minimal Debian of a release, from a clone of this checkout.

  tests/fresh/readme.py [--release bookworm|trixie] [--user root|tester] [--part quickstart|test|conformance]...

The commands are those that README.md marks for it, word by word: `quickstart` and `test`. `conformance` is the
OpenCL suite on the native driver and on the ring, for a release that is not this machine's; CI runs `quickstart` alone.
`tester` is an ordinary user with sudo. What is committed is what runs. Needs root and debootstrap.

Of this machine the root sees: the compiler cache, packages that were downloaded before, and the clone.
SLUICE_WERROR=ON lets a warning end the build. Each part, one after
the other in one root, ends with `PASS name` or `FAIL name: why`."""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
# What a reader is promised to see.
PROMISES = {
    "quickstart": [r"^Platform #0: Sluice \(.+\)$", r"^added \d+ pairs, .* every element right$", r"^== What happened$"],
    "test": [r"^\d+ passed, 0 failed, \d+ skipped$"],
    "conformance": [r"^conformance-native +\d+ passed +0 failed", r"^conformance-ring +\d+ passed +0 failed",
                    r"^\d+ passed, 0 failed, \d+ skipped$"],
}


def readme_commands(part):
    """The lines of the block after `<!-- run: PART -->`, without their comments."""
    readme = (CHECKOUT / "README.md").read_text()
    block = re.search(rf"^<!-- run: {part} -->\n((?: {{4}}.*\n)+)", readme, re.M)
    if not block:
        sys.exit(f"FAIL {part}: README.md has no block that is marked `<!-- run: {part} -->`")
    return [re.sub(r"\s+#.*", "", line).strip() for line in block[1].splitlines()]


def commands_of(part):
    if part == "conformance":
        return ["deploy/install-deps.sh --test", "tests/run.sh --quick --conformance"]
    return readme_commands(part)


def run(root, user, binds, command, log):
    arguments = [str(HERE / "root.sh"), "run", str(root), "--user", user]
    for bind in binds:
        arguments += ["--bind", bind]
    process = subprocess.Popen([*arguments, "--", "bash", "-c", command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    try:
        for line in process.stdout:
            log.append(line.rstrip("\n"))
            print("  | " + line, end="", flush=True)
        return process.wait()
    finally:
        process.kill()  # Who ends this ends what runs in there.


def clone_into(root, user):
    home = "root" if user == "root" else f"home/{user}"
    clone = root / home / "sluice"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(CHECKOUT), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "remote", "remove", "origin"], check=True)
    if user != "root":
        subprocess.run(["chroot", str(root), "chown", "-R", f"{user}:", f"/{home}/sluice"], check=True)
    return f"/{home}/sluice"


def shared_with_machine(release):
    """Binds, and variables of the compiler cache."""
    cache = pathlib.Path(os.environ.get("SLUICE_ROOT_CACHE", pathlib.Path.home() / ".cache/sluice/roots"))
    archives = cache / f"{release}-packages"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    compiled = pathlib.Path(os.environ.get("CCACHE_DIR", pathlib.Path.home() / ".cache/ccache"))
    compiled.mkdir(parents=True, exist_ok=True)
    return [f"{archives}:/var/cache/apt/archives", f"{compiled}:/var/cache/ccache"]


def run_part(part, name, run_command):
    """Prints its verdict; True if it passed."""
    log = []
    for command in commands_of(part):
        print(f"  $ {command}", flush=True)
        code = run_command(command, log)
        if code != 0:
            print(f"FAIL {name}: `{command}` ended with {code}", flush=True)
            return False
    missing = [promise for promise in PROMISES[part] if not any(re.search(promise, line) for line in log)]
    print(f"FAIL {name}: nothing printed matches {missing}" if missing else f"PASS {name}", flush=True)
    return not missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="bookworm")
    parser.add_argument("--user", choices=["root", "tester"], default="root")
    parser.add_argument("--part", choices=sorted(PROMISES), action="append")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    work = pathlib.Path(tempfile.mkdtemp(prefix="sluice-fresh-", dir=os.environ.get("SLUICE_FRESH_DIR")))
    root = work / "root"
    try:
        subprocess.run([str(HERE / "root.sh"), "make", options.release, str(root)], check=True)
        # Keeps what apt downloads for the next root; APT's default is to delete it.
        (root / "etc/apt/apt.conf.d/90keep").write_text('Binary::apt-get::APT::Keep-Downloaded-Packages "true";\n')
        source = clone_into(root, options.user)
        variables = {"CCACHE_DIR": "/var/cache/ccache", "CCACHE_BASEDIR": source, "CCACHE_NOHASHDIR": "1",
                     "SLUICE_WERROR": os.environ.get("SLUICE_WERROR", "OFF")}
        if options.user != "root":  # The cache is root's.
            variables |= {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": "/tmp/ccache"}
        exports = " ".join(f"{key}={value}" for key, value in variables.items())
        binds = shared_with_machine(options.release)
        passed = all([run_part(part, f"{part} on a fresh {options.release} as {options.user}",
                               lambda command, log: run(root, options.user, binds,
                                                        f"export {exports}; cd {source} && {command}", log))
                      for part in options.part or ["quickstart"]])
        return 0 if passed else 1
    finally:
        if os.environ.get("SLUICE_FRESH_KEEP"):
            print(f"kept: {root}")
        else:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
