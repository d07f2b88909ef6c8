#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A Flatpak application sees Sluice by its runtime's GL extension, as an ordinary user installs it.

Usage (as root, which makes the user): flatpak.py

Runtime and application are made here, from this machine's libraries, and installed from a repository in a folder. The runtime
has what org.freedesktop.Platform has for it: the extension point, the loader's folder, and the linker's configuration.
SLUICE_CLIENT_DIR names the client, as for containers.py.
"""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import containers_lib as lib
import harness

report = harness.Report("flatpak")
MACHINE = platform.machine()
LIBRARIES = f"lib/{MACHINE}-linux-gnu"
PLATFORM, APPLICATION, EXTENSION = "org.sluice_test.Platform", "org.sluice_test.App", "org.freedesktop.Platform.GL"
RUNTIME_METADATA = f"""[Runtime]
name={PLATFORM}
runtime={PLATFORM}/{MACHINE}/1
sdk={PLATFORM}/{MACHINE}/1

[Extension {EXTENSION}]
versions=1;1.4
version=1.4
subdirectories=true
no-autodownload=true
autodelete=false
directory={LIBRARIES}/GL
add-ld-path=lib
merge-dirs=vulkan/icd.d;glvnd/egl_vendor.d;OpenCL/vendors
download-if=active-gl-driver
enable-if=active-gl-driver
"""
APPLICATION_METADATA = f"""[Application]
name={APPLICATION}
runtime={PLATFORM}/{MACHINE}/1
sdk={PLATFORM}/{MACHINE}/1
command=vector_add
"""


def make_runtime(folder, client):
    usr = folder / "usr"
    for name in ("bin", "lib64", "etc/OpenCL", f"{LIBRARIES}/GL"):
        (usr / name).mkdir(parents=True)
    (folder / "files").mkdir()
    (folder / "metadata").write_text(RUNTIME_METADATA)
    (usr / "etc/OpenCL/vendors").symlink_to(f"/usr/{LIBRARIES}/GL/OpenCL/vendors")
    (usr / "etc/ld.so.conf").write_text("include /run/flatpak/ld.so.conf.d/app-*.conf\n/app/lib\n"
                                        "include /run/flatpak/ld.so.conf.d/runtime-*.conf\n")
    shutil.copy(shutil.which("busybox"), usr / "bin/busybox")
    for name in lib.APPLETS:
        (usr / "bin" / name).symlink_to("busybox")
    shutil.copy(shutil.which("ldconfig", path="/usr/sbin:/sbin"), usr / "bin/ldconfig")
    for path in lib.GLIBC:
        shutil.copy(os.path.realpath(path), usr / LIBRARIES / pathlib.Path(path).name)
    own = [shutil.which("clinfo"), harness.built("vector_add")]
    names = {path.name for path in client.files()}
    for name, path in lib.libraries_of(own if client.self_contained else [*own, *client.files()]).items():
        if pathlib.Path(name).name not in names:
            shutil.copy(os.path.realpath(path), usr / (name.lstrip("/") if name.startswith("/lib64") else f"{LIBRARIES}/{name}"))


def make_application(folder):
    (folder / "files/bin").mkdir(parents=True)
    (folder / "export").mkdir()
    (folder / "metadata").write_text(APPLICATION_METADATA)
    for program in (shutil.which("clinfo"), harness.built("vector_add")):
        shutil.copy(program, folder / "files/bin")


class User:
    """An ordinary user's flatpak."""

    def __init__(self, work):
        self.home = work / "home"
        for name in ("", "run", "system"):
            (self.home / name).mkdir(mode=0o700)
        self.user = lib.OrdinaryUser(self.home)
        self.data = self.home / ".local/share"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8", "XDG_DATA_HOME": str(self.data),
                            "XDG_RUNTIME_DIR": str(self.home / "run"), "FLATPAK_SYSTEM_DIR": str(self.home / "system")}

    def run(self, *words, more=()):
        # flatpak asks the system's bus about parental controls; a machine of a test may have none.
        bus = ["dbus-run-session", "--", "sh", "-c", 'DBUS_SYSTEM_BUS_ADDRESS=$DBUS_SESSION_BUS_ADDRESS exec "$@"', "sh"]
        done = subprocess.run([*self.user.command, *bus, *map(str, words)], input=b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(self.environment, **dict(more)), cwd=str(self.home), timeout=600, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def application(self, *words, more=(), options=()):
        return self.run("flatpak", "--user", "run", *options, APPLICATION, *words, more=more)


def sees(user, name, more=(), expected=True):
    code, text = user.application(more=more)
    good = code == 0 and "Sluice (" in text and "every element right" in text
    return report.check(good == expected, name, f"exit {code}: {text}")


def install(user, work, client):
    make_runtime(work / "runtime", client)
    make_application(work / "application")
    repository = work / "repository"
    for arguments in (["--runtime", str(repository), str(work / "runtime"), "1"], [str(repository), str(work / "application"), "1"]):
        subprocess.run(["flatpak", "build-export", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    user.run("flatpak", "--user", "remote-add", "--no-gpg-verify", "sluice-test", f"file://{repository}")
    code, text = user.run("flatpak", "--user", "install", "-y", "--noninteractive", "sluice-test", f"{APPLICATION}//1")
    return report.check(code == 0, "a runtime and an application are installed from a folder", text)


# The two commands of the guide.
def check_guide(user, client, daemon):
    extension = user.data / f"flatpak/extension/{EXTENSION}.host/{MACHINE}/1.4"
    shutil.copytree(client.folder, user.home / "client")
    sluicectl = shutil.copy(harness.built("sluicectl"), user.home / "sluicectl")
    sees(user, "without the extension the application sees no device", expected=False)
    code, text = user.run(sluicectl, "export-client", "--from", user.home / "client", "--flatpak", extension)
    report.check(code == 0, "sluicectl export-client --flatpak", text)
    code, text = user.run("flatpak", "override", "--user", f"--filesystem={daemon.sockets}", APPLICATION)
    report.check(code == 0, "flatpak override --filesystem", text)
    endpoint = {} if str(daemon.sockets) == "/run/sluice/clients" else {"SLUICE_ENDPOINT": f"unix:{daemon.socket}"}
    sees(user, "with both the application computes on it", more=endpoint)
    code, text = user.application("-l", options=("--command=clinfo",), more=endpoint)
    report.check(code == 0 and "Sluice (" in text, "clinfo lists it", text)
    code, text = user.application("-c", "ls /dev; cat /proc/net/dev", options=("--command=sh",), more=endpoint)
    report.check(code == 0 and "dri" not in text.split() and "eth0" not in text, "no device node and no network was given", text)
    # A daemon that is started again.
    daemon.stop()
    daemon.start()
    sees(user, "and after the daemon was started again", more=endpoint)
    shutil.rmtree(extension)
    sees(user, "without the folder it is gone", more=endpoint, expected=False)
    return endpoint


# The same as a package in a repository, under a name of its own.
def check_repository(user, work, endpoint):
    build = work / "extension"
    done = subprocess.run([str(harness.built("sluicectl")), "export-client", "--from", str(user.home / "client"), "--flatpak",
                           str(build / "content")], capture_output=True, text=True, check=False)
    report.check(done.returncode == 0, "an extension for a repository", done.stdout + done.stderr)
    (build / "files").mkdir()
    shutil.copy(build / "content/metadata", build / "metadata")
    done = subprocess.run(["flatpak", "build-export", "--runtime", "--files=content", str(work / "repository"), str(build), "1.4"],
                          capture_output=True, text=True, check=False)
    report.check(done.returncode == 0, "flatpak build-export takes it", done.stdout + done.stderr)
    code, text = user.run("flatpak", "--user", "install", "-y", "--noninteractive", "sluice-test", f"{EXTENSION}.sluice//1.4")
    report.check(code == 0, f"{EXTENSION}.sluice//1.4 is installed", text)
    sees(user, "it is chosen by FLATPAK_GL_DRIVERS=sluice", more={**endpoint, "FLATPAK_GL_DRIVERS": "sluice"})


def missing_here():
    if os.geteuid() != 0:
        return "root is needed: it makes an ordinary user"
    for program in ("flatpak", "bwrap", "busybox", "clinfo", "runuser", "dbus-run-session"):
        if shutil.which(program) is None:
            return f"{program} is not installed (deploy/install-deps.sh --containers)"
    return ""


def main():
    missing = missing_here()
    if missing:
        print(f"SKIP flatpak: {missing}")
        return
    work = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
    work.chmod(0o755)
    user = None
    try:
        client = lib.make_client(work)
        user = User(work)
        code, text = user.run("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true")
        if code != 0:
            print(f"SKIP flatpak: bubblewrap makes no namespaces for a user here: {text}")
            return
        with lib.Daemon() as daemon:
            if install(user, work, client):
                check_repository(user, work, check_guide(user, client, daemon))
    finally:
        if user is not None:
            user.user.remove()
        lib.remove(work)


main()
report.exit()
