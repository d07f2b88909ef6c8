#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Boots a minimal Debian with systemd and Sluice, under QEMU's software emulation or in namespaces, and runs guest/.

Prints one PASS, FAIL or SKIP line for each check; exits with 1 if one failed, or not all were heard of.
README.md says what is checked. Needs root, as tests/fresh/root.sh does. Python 3 standard library only.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

import image

sys.path.insert(0, str(image.ROOT / "tests/compatibility"))
import old_versions  # noqa: E402

MEMORY_MIB = 2048
SHORT = ("activation",)
# In this order: later ones find what earlier ones left (guest/).
FULL = ("activation", "identities", "confinement", "reload", "broker_crashes", "worker_crashes", "mounted_folder",
        "restart", "drained_by_a_person", "drain", "control_groups", "wrong_config", "full_var", "crash_loop", "upgrade", "journal")
FROM_OLD = ("upgrade_from_old",)
SHORT_SECONDS = 900
FULL_SECONDS = 3600
RELEASES = ("bookworm", "trixie")


def say(text):
    print(text, flush=True)


def own_release():
    """Of this machine: what is built here runs there."""
    name = platform.freedesktop_os_release().get("VERSION_CODENAME")
    return name if name in RELEASES else RELEASES[0]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--release", default=own_release(), choices=RELEASES, help="of Debian (this machine's, or bookworm)")
    parser.add_argument("--short", action="store_true", help="only: boot, activate, clinfo")
    parser.add_argument("--namespaces", action="store_true",
                        help="in namespaces of this machine's kernel, not in an emulated machine")
    parser.add_argument("--checks", metavar="NAME[,NAME]", help=f"only these, without a reboot: {', '.join(FULL)}")
    parser.add_argument("--packages", type=pathlib.Path, metavar="DIR",
                        help="install the .deb files in DIR, instead of the build tree")
    parser.add_argument("--from", dest="old", choices=sorted(old_versions.VERSIONS), metavar="VERSION",
                        help="only: begin with this version, and upgrade it by the guide, with a reboot after it")
    parser.add_argument("--build", type=pathlib.Path, help="the build tree, with tests (SLUICE_BUILD_DIR, else build/)")
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="how long the machine may run")
    parser.add_argument("--worst-score", type=float, default=3.8, help="of systemd-analyze security (3.8)")
    parser.add_argument("--logs", type=pathlib.Path, metavar="DIR", help="keep the machine's console and journal there")
    arguments = parser.parse_args()
    default = os.environ.get("SLUICE_BUILD_DIR") or image.ROOT / "build"
    arguments.build = (arguments.build or pathlib.Path(default)).resolve()
    arguments.reboots = not (arguments.short or arguments.checks)
    arguments.checks = arguments.checks.split(",") if arguments.checks else \
        SHORT if arguments.short else FROM_OLD if arguments.old else FULL
    if unknown := set(arguments.checks) - set(FULL + FROM_OLD):
        parser.error(f"there are no checks named {', '.join(sorted(unknown))}")
    arguments.limit = arguments.limit or (SHORT_SECONDS if arguments.short else FULL_SECONDS)
    return arguments


def newer_packages(folder, inside):
    """The same packages as a later version, for an upgrade."""
    inside.mkdir(parents=True)
    for package in sorted(folder.glob("*.deb")):
        if "-dbgsym_" in package.name:
            continue
        with tempfile.TemporaryDirectory() as unpacked:
            image.quietly(["dpkg-deb", "-R", package, unpacked], "unpacking a package")
            control = pathlib.Path(unpacked) / "DEBIAN/control"
            text = control.read_text()
            version = re.search(r"^Version: (.*)$", text, re.MULTILINE).group(1)
            control.write_text(text.replace(version, f"{version}+next1"))
            image.quietly(["dpkg-deb", "-Znone", "-b", unpacked, inside], "making a newer package")


def prepare_old(arguments, root, work):
    """The old version is installed; today's lies beside it."""
    try:
        old = old_versions.tree_of(arguments.old, build=False)
    except old_versions.NotThere as why:
        raise image.ImageError(f"{arguments.old}: {why}") from None
    if arguments.packages:
        # What they need is installed with them, and stays: the machine has no network.
        image.install_packages(arguments.packages, root)
        image.remove_packages(arguments.packages, root)
    image.install_tree(old, root, work / "old-tree")
    image.keep_driver(work / "old-tree", root, "opt/sluice-old-client")
    if arguments.packages:
        image.copy_packages(arguments.packages, root / "opt/sluice-now")
        image.write_manifest(work / "old-tree", root / "opt/sluice-old-manifest")
    else:
        image.installed_tree(arguments.build, root, root / "opt/sluice-next-tree")


def prepare(arguments, work):
    """The disk, the kernel and its ramdisk."""
    root = work / "root"
    image.debian(arguments.release, root, lambda text: say(f"NOTE {text}"))
    if arguments.old:
        prepare_old(arguments, root, work)
    elif arguments.packages:
        image.install_packages(arguments.packages, root)
    else:
        image.install_tree(arguments.build, root, work / "tree")
        if "upgrade" in arguments.checks:
            shutil.copytree(work / "tree", root / "opt/sluice-next-tree", symlinks=True)
    image.add_checks(root, arguments.build, {"checks": f"'{' '.join(arguments.checks)}'",
                                             "reboots": "yes" if arguments.reboots else "no",
                                             "namespaces": "yes" if arguments.namespaces else "no",
                                             "worst_score": arguments.worst_score})
    if arguments.packages and "upgrade" in arguments.checks:
        newer_packages(arguments.packages, root / "opt/sluice-checks/next")
    if arguments.namespaces:
        (root / "etc/fstab").write_text("")
        for name in ("results", "details", "console"):
            (work / name).touch()
        (work / "groups").mkdir()
        return None, None
    kernel, ramdisk = (shutil.copy(path, work) for path in image.kernel_files(root))
    image.make_disk(root, work / "disk")
    shutil.rmtree(root)
    return kernel, ramdisk


def start_machine(work, kernel, ramdisk):
    """No network. Three serial ports, each a file here: the console, the verdicts, and what explains them."""
    ports = [word for name in ("console", "results", "details") for word in ("-serial", f"file:{work / name}")]
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "Nehalem", "-smp", "2",
               "-m", str(MEMORY_MIB), "-nodefaults", "-no-user-config", "-display", "none", *ports,
               "-device", "virtio-rng-pci", "-drive", f"file={work / 'disk'},if=virtio,format=raw,cache=unsafe",
               "-kernel", str(kernel), "-initrd", str(ramdisk),
               "-append", "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=yes mitigations=off no_timer_check"]
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise image.ImageError("qemu-system-x86_64 is missing: deploy/install-deps.sh --vm") from None


def start_namespaces(work):
    command = [image.VM_DIR / "namespaces.sh", work / "root", work / "results", work / "details", work / "groups"]
    with open(work / "console", "wb") as console:
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=console,
                                stderr=subprocess.PIPE)


def no_namespaces():
    """Why systemd cannot run in namespaces here; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(["unshare", "--cgroup", "--pid", "--mount", "--net", "--fork",
                                "mount", "-t", "cgroup2", "cgroup2", folder],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return tried.stderr.strip() if tried.returncode != 0 else ""


class Results:
    """The lines that the machine writes, as they come."""

    def __init__(self, path):
        self.path, self.read, self.rest = path, 0, ""
        self.verdicts, self.failed, self.announced = 0, 0, None

    def take(self):
        if not self.path.is_file():
            return
        with open(self.path, "rb") as file:
            file.seek(self.read)
            more = file.read()
        self.read += len(more)
        *lines, self.rest = (self.rest + more.decode(errors="replace")).replace("\r", "").split("\n")
        for line in lines:
            word = line.split(" ", 1)[0]
            if word == "END":
                self.announced = int(line.split()[1])
                continue
            self.verdicts += word in ("PASS", "FAIL")
            self.failed += word == "FAIL"
            say(line)


def run_machine(arguments, work, kernel, ramdisk):
    """True if every check passed, and all were heard of."""
    started = time.monotonic()
    machine = start_namespaces(work) if arguments.namespaces else start_machine(work, kernel, ramdisk)
    results = Results(work / "results")
    try:
        while machine.poll() is None and time.monotonic() - started < arguments.limit:
            results.take()
            try:
                machine.wait(0.5)
            except subprocess.TimeoutExpired:
                pass
        timed_out = machine.poll() is None
    finally:
        if machine.poll() is None:
            machine.terminate() if arguments.namespaces else machine.kill()
        errors = machine.communicate()[1].decode(errors="replace").strip()
    results.take()
    say(f"NOTE the machine ran for {time.monotonic() - started:.0f} s")
    if timed_out:
        say(f"FAIL the machine ends by itself: it still ran after {arguments.limit} s")
        return False
    if machine.returncode != 0:
        say(f"FAIL the machine ends well: {machine.args[0]} ended with {machine.returncode}: {errors}")
        return False
    if results.announced is None or results.announced != results.verdicts:
        say(f"FAIL all checks were heard of: {results.verdicts} of {results.announced or 'an unknown number'}")
        return False
    return results.failed == 0


def keep_logs(work, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("console", "results", "details"):
        if (work / name).is_file():
            shutil.copy(work / name, folder / f"vm-{name}.log")


def main():
    arguments = parse()
    if os.geteuid() != 0:
        say("SKIP vm: making a root needs root")
        return 0
    if arguments.namespaces and (why := no_namespaces()):
        say(f"SKIP vm --namespaces: this machine lets root make no namespaces with control groups of version 2: {why}")
        return 0
    if not arguments.namespaces and shutil.which("qemu-system-x86_64") is None:
        say("SKIP vm: qemu-system-x86_64 is missing: deploy/install-deps.sh --vm")
        return 0
    logs = arguments.logs or image.ROOT / "build/test-logs"
    with tempfile.TemporaryDirectory(prefix="sluice-vm-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        work = pathlib.Path(folder)
        started = time.monotonic()
        good = False
        try:
            kernel, ramdisk = prepare(arguments, work)
            say(f"NOTE the disk was made in {time.monotonic() - started:.0f} s")
            good = run_machine(arguments, work, kernel, ramdisk)
        except image.ImageError as error:
            say(f"FAIL vm: {error}")
        keep_logs(work, logs)
    if not good:
        say(f"NOTE the console and the journal are in {logs}/vm-*.log")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
