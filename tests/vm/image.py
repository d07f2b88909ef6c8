#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Makes the disk of the test's virtual machine: a minimal Debian with systemd and a kernel, and Sluice in it.

The Debian part comes from tests/fresh/root.sh; with what a machine needs besides it is kept as a tarball outside the
tree. Needs root.
Python 3 standard library only.
"""
import contextlib
import hashlib
import inspect
import os
import pathlib
import shutil
import subprocess
import sys

VM_DIR = pathlib.Path(__file__).resolve().parent
ROOT = VM_DIR.parent.parent
ROOT_SCRIPT = ROOT / "tests/fresh/root.sh"
PACKAGES = ("systemd-sysv", "dbus", "udev", "kmod", "initramfs-tools", "linux-image-cloud-amd64",
            "ocl-icd-libopencl1", "pocl-opencl-icd", "clinfo")
# All that the kernel needs to find the disk; the rest of Debian's initial ramdisk takes its time under emulation.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "ext4")
NOT_NEEDED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt")
# Work that has nothing to do with Sluice, and would be measured with it.
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
          "man-db.timer", "systemd-timesyncd.service")
IMAGE_BYTES = 3 << 30
USER = "alice"


class ImageError(Exception):
    """The disk cannot be made; the message says why and what to do."""


def quietly(command, what, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise ImageError(f"{what} failed (exit {done.returncode}): {' '.join(map(str, command))}\n{done.stdout[-3000:]}")
    return done.stdout


def in_root(root, command, what):
    return quietly([ROOT_SCRIPT, "run", root, "--", "env", "DEBIAN_FRONTEND=noninteractive", *command], what)


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "sluice"


def empty_folder(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def make_debian(release, root):
    quietly([ROOT_SCRIPT, "make", release, root], f"making a root of {release}")
    in_root(root, ["apt-get", "update", "-q"], "apt-get update")
    in_root(root, ["apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES], "installing the system")
    for name in NOT_NEEDED:
        empty_folder(root / name)
    conf = root / "etc/initramfs-tools"
    (conf / "conf.d/sluice").write_text("MODULES=list\nCOMPRESS=gzip\n")
    (conf / "modules").write_text("\n".join(BOOT_MODULES) + "\n")
    in_root(root, ["update-initramfs", "-u", "-k", "all"], "making the initial ramdisk")
    in_root(root, ["useradd", "--create-home", "--shell", "/bin/bash", USER], f"making the user {USER}")
    in_root(root, ["systemctl", "mask", *MASKED], "masking timers")
    (root / "etc/hostname").write_text("sluice-vm\n")
    (root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 1\n")
    (root / "var/log/journal").mkdir(exist_ok=True)  # The journal outlives a reboot.


def debian(release, folder, say):
    """Unpacks the minimal Debian into `folder`; makes it first if there is none of this recipe."""
    recipe = repr((PACKAGES, BOOT_MODULES, NOT_NEEDED, MASKED, USER)) + inspect.getsource(make_debian)
    key = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    cache = cache_folder()
    tarball = cache / f"vm-{release}-{key}.tar"
    if not tarball.is_file():
        say(f"making a minimal Debian {release} (some minutes; kept as {tarball})")
        cache.mkdir(parents=True, exist_ok=True)
        make_debian(release, folder)
        unfinished = cache / f"{tarball.name}.{os.getpid()}"
        try:
            quietly(["tar", "--numeric-owner", "--xattrs", "-C", folder, "-cf", unfinished, "."], "packing the root")
            unfinished.rename(tarball)
        finally:
            unfinished.unlink(missing_ok=True)
        for old in cache.glob(f"vm-{release}-*.tar"):
            if old != tarball:
                old.unlink()
    quietly(["tar", "--numeric-owner", "--xattrs", "-C", empty_folder(folder), "-xf", tarball], "unpacking the root")


# --- Sluice --------------------------------------------------------------------------------------------------


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def copy_libraries(tree, root):
    """What this machine's build needs of this machine's libraries; its release must be the root's."""
    for binary in filter(is_elf, tree.rglob("*")):
        listed = subprocess.run(["ldd", str(binary)], stdout=subprocess.PIPE, text=True, check=False).stdout
        for line in listed.splitlines():
            words = line.split()
            if len(words) < 3 or words[1] != "=>" or not words[2].startswith("/"):
                continue
            source = pathlib.Path(words[2])
            if str(source).startswith(str(tree)):
                continue
            if not list(root.glob(f"usr/lib/*/{words[0]}")) and not list(root.glob(f"lib/*/{words[0]}")):
                shutil.copy(source, root / "usr/lib/x86_64-linux-gnu" / words[0])


def release_of(root):
    for line in (root / "etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=", 1)[1]
    return "unknown"


def installed_tree(build, root, folder):
    """`cmake --install` into a folder, and what it needs into the root."""
    if release_of(pathlib.Path("/")) != release_of(root):
        raise ImageError(f"a build of {release_of(pathlib.Path('/'))} does not run on {release_of(root)}: use --packages")
    tree = empty_folder(folder)
    quietly(["cmake", "--install", build, "--prefix", "/usr"], "cmake --install", env=dict(os.environ, DESTDIR=str(tree)))
    copy_libraries(tree, root)
    return tree


def install_tree(build, root, folder):
    """`cmake --install`, then what README.md says for root to do."""
    tree = installed_tree(build, root, folder)
    quietly(["cp", "-a", f"{tree}/.", root], "copying the installed tree")
    in_root(root, ["systemd-sysusers"], "systemd-sysusers")
    in_root(root, ["systemctl", "enable", "sluiced.socket"], "systemctl enable")


def install_packages(folder, root):
    """The packages of a folder, by apt: what they need must be in their own Depends."""
    packages = sorted(path for path in folder.glob("*.deb") if "-dbgsym_" not in path.name)
    if not packages:
        raise ImageError(f"there is no .deb file in {folder}")
    inside = empty_folder(root / "var/tmp/sluice-packages")
    for path in packages:
        shutil.copy(path, inside)
    names = [f"/var/tmp/sluice-packages/{path.name}" for path in packages]
    in_root(root, ["apt-get", "update", "-q"], "apt-get update in the root")
    in_root(root, ["apt-get", "install", "-y", "-q", "--no-install-recommends", *names], "installing the packages")
    shutil.rmtree(inside)


def remove_packages(folder, root):
    """What install_packages has installed; what it needed stays."""
    names = [quietly(["dpkg-deb", "-f", path, "Package"], "reading a package").strip()
             for path in sorted(folder.glob("*.deb")) if "-dbgsym_" not in path.name]
    in_root(root, ["apt-get", "purge", "-y", "-q", *names], "removing the packages")
    in_root(root, ["groupdel", "sluice-monitor"], "removing their group")


def copy_packages(folder, inside):
    inside.mkdir(parents=True)
    for path in sorted(folder.glob("*.deb")):
        if "-dbgsym_" not in path.name:
            shutil.copy(path, inside)


def write_manifest(tree, path):
    """As cmake writes it, without the folder that it was installed to here."""
    files = sorted(file for file in tree.rglob("*") if file.is_symlink() or file.is_file())
    path.write_text("".join(f"/{file.relative_to(tree)}\n" for file in files))


def keep_driver(tree, root, place):
    """The driver of an installed tree, in a place of its own with an .icd file, as in a container's image."""
    inside = empty_folder(root / place)
    libraries = next(tree.rglob("libsluice_icd.so")).parent
    shutil.copy(libraries / "libsluice_icd.so", inside)
    shutil.copytree(libraries / "sluice", inside / "sluice")
    (inside / "sluice.icd").write_text(f"/{place}/libsluice_icd.so\n")


# --- the disk ------------------------------------------------------------------------------------------------


def add_checks(root, build, words):
    """The guest's half of the test; `words` are what its kernel command line cannot say."""
    place = root / "opt/sluice-checks"
    shutil.copytree(VM_DIR / "guest", place)
    for name in ("vector_add", "victim", "hogs"):
        program = build / "tests/system" / name
        if not program.is_file():
            raise ImageError(f"{program} is missing: build with -DSLUICE_BUILD_TESTS=ON first")
        shutil.copy(program, place / name)
    (place / "settings").write_text("".join(f"{key}={value}\n" for key, value in words.items()))
    shutil.copy(VM_DIR / "guest/sluice-checks.service", root / "etc/systemd/system")
    in_root(root, ["systemctl", "enable", "sluice-checks.service"], "enabling the checks")


def kernel_files(root):
    kernels = sorted((root / "boot").glob("vmlinuz-*"))
    ramdisks = sorted((root / "boot").glob("initrd.img-*"))
    if not kernels or not ramdisks:
        raise ImageError(f"no kernel or no initial ramdisk in {root}/boot")
    return kernels[-1], ramdisks[-1]


def make_disk(root, disk):
    with contextlib.suppress(FileNotFoundError):
        disk.unlink()
    mke2fs = shutil.which("mke2fs", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if mke2fs is None:
        raise ImageError("mke2fs is missing: apt-get install e2fsprogs")
    with open(disk, "wb") as file:
        file.truncate(IMAGE_BYTES)
    quietly([mke2fs, "-q", "-t", "ext4", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", "-d", root, disk],
            "mke2fs")


if __name__ == "__main__":
    sys.exit("image.py: is used by run.py")
