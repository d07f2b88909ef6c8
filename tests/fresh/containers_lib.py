# SPDX-License-Identifier: Apache-2.0
"""What containers.py and flatpak.py need around them: a client's folder, images, podman as two users, a daemon."""
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import harness

IMAGES = ("bare", "bookworm", "trixie", "bullseye")
# All of glibc: a library that was built for an older one names these.
GLIBC = [f"/usr/lib/{platform.machine()}-linux-gnu/{name}" for name in ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libm.so.6")]
APPLETS = "sh ls cat env id sleep echo grep mkdir".split()
KEEP_DAYS = 7
# hashcat's package brings a driver, which no image is to have.
OTHER_DRIVERS = "'*pocl*' 'libllvm*' 'libclang*'"
# libc 2.31's programs cannot be those that are built here: this one is compiled in there, by a compiler that is small.
TCC = "tcc libc6-dev ocl-icd-opencl-dev opencl-c-headers"


def missing_here():
    """Why no container can be run here; "" if there is no reason."""
    if os.geteuid() != 0:
        return "root is needed: it makes images and an ordinary user"
    for program in ("podman", "crun", "newuidmap", "busybox", "clinfo", "hashcat", "runuser", "useradd"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            return f"{program} is not installed (deploy/install-deps.sh --containers)"
    return ""


def enter_namespace():
    """A mount namespace of our own. crun wants one version of control groups: where both are mounted, the second is
    hidden in here."""
    if os.environ.get("SLUICE_TEST_IN_NAMESPACE") != "1":
        os.environ["SLUICE_TEST_IN_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, "-B", *sys.argv])
    if pathlib.Path("/sys/fs/cgroup/unified/cgroup.controllers").exists():
        subprocess.run(["umount", "/sys/fs/cgroup/unified"], check=True)
    pathlib.Path("/run/cdi").mkdir(exist_ok=True)


def remove(folder):
    """Folders of images belong to many users; what is still mounted is not entered."""
    subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)


def libraries_of(files):
    """The shared libraries that these files are run with here, by name."""
    found = {}
    for file in files:
        listing = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
        for line in listing.splitlines():
            words = line.split()
            if "=>" in words and len(words) > 2 and words[2].startswith("/"):
                found[words[0]] = words[2]
            elif words and words[0].startswith("/lib64/ld-"):
                found[words[0]] = words[0]
    return found


# --- the client ------------------------------------------------------------------------------------------


class Client:
    def __init__(self, folder, self_contained, glibc):
        self.folder, self.self_contained, self.glibc = folder, self_contained, glibc

    def files(self):
        return [path for path in self.folder.rglob("*") if path.is_file() and path.suffix not in (".icd", ".txt")]


def make_client(work):
    source = os.environ.get("SLUICE_CLIENT_DIR")
    command = [str(harness.built("sluicectl")), "export-client", str(work / "client"), "--json"]
    done = subprocess.run([*command, *(["--from", source] if source else [])], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAIL containers: export-client: {done.stdout} {done.stderr}")
    answer = json.loads(done.stdout)
    for warning in answer["warnings"]:
        print(f"note: {warning}")
    return Client(work / "client", answer["self_contained"], answer["glibc"])


# --- images ----------------------------------------------------------------------------------------------


def this_release():
    text = pathlib.Path("/etc/os-release").read_text()
    return next((line.split("=")[1] for line in text.splitlines() if line.startswith("VERSION_CODENAME=")), "")


def programs():
    return {"/opt/vector_add": harness.built("vector_add"), "/opt/resource_frames": harness.built("resource_frames")}


def copy(source, root, path):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(os.path.realpath(source), target)
        target.chmod(0o755)


def copy_libraries(root, files, without=()):
    multiarch = f"/usr/lib/{platform.machine()}-linux-gnu"
    for name, path in libraries_of(files).items():
        if pathlib.Path(name).name in without:
            continue
        copy(path, root, path if name.startswith("/lib64") else f"{multiarch}/{name}")


def make_bare(root, client):
    """Busybox, glibc, an OpenCL loader and the programs: no package manager, no C++ library, no cache of libraries."""
    for folder in ("tmp", "proc", "sys", "dev", "etc", "run", "usr/bin", "usr/lib", "lib64"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "bin").symlink_to("usr/bin")
    (root / "lib").symlink_to("usr/lib")
    copy(shutil.which("busybox"), root, "/usr/bin/busybox")
    for name in APPLETS:
        (root / "usr/bin" / name).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    own = {**programs(), "/usr/bin/clinfo": shutil.which("clinfo"), "/usr/bin/hashcat": shutil.which("hashcat")}
    for path, source in own.items():
        copy(source, root, path)
    for folder in ("/usr/share/hashcat", "/usr/lib/hashcat"):
        shutil.copytree(folder, root / folder.lstrip("/"))
    for path in GLIBC:
        copy(path, root, path)
    modules = ["/usr/lib/hashcat/modules/module_00000.so"]
    client_names = {path.name for path in client.files()}
    copy_libraries(root, [*own.values(), *modules], without=client_names)
    if not client.self_contained:
        copy_libraries(root, client.files(), without=client_names)


def prepared_root(release, root):
    """A minimal Debian with clinfo, hashcat and a loader; in bullseye a compiler too."""
    cache = pathlib.Path(os.environ.get("SLUICE_ROOT_CACHE") or pathlib.Path.home() / ".cache/sluice/roots")
    archive = cache / f"containers-{release}.tar"
    if archive.exists() and time.time() - archive.stat().st_mtime < KEEP_DAYS * 86400:
        root.mkdir()
        subprocess.run(["tar", "-C", str(root), "-xpf", str(archive)], check=True)
        return ""
    packages = f"clinfo hashcat ocl-icd-libopencl1 {TCC if release == 'bullseye' else ''}"
    for command in ([str(HERE / "root.sh"), "make", release, str(root)],
                    [str(HERE / "root.sh"), "run", str(root), "--", "sh", "-ec",
                     f"apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends {packages} && "
                     f"dpkg --purge --force-depends $(dpkg-query -W -f '${{Package}} ' {OTHER_DRIVERS}) && "
                     "apt-get clean && rm -rf /usr/share/doc /usr/share/man /usr/share/locale /var/lib/apt/lists/*"]):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"{' '.join(command[:4])}: {(done.stdout + done.stderr)[-600:]}"
    cache.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(".partial")
    subprocess.run(["tar", "-C", str(root), "-cf", str(partial), "."], check=True)
    partial.rename(archive)
    return ""


def make_debian(release, root, client):
    why = prepared_root(release, root)
    if why:
        return why
    if release == "bullseye":
        shutil.copytree(harness.ROOT / "tests/system/programs", root / "opt/source")
        done = subprocess.run([str(HERE / "root.sh"), "run", str(root), "--", "tcc", "-o", "/opt/vector_add",
                               "-DCL_TARGET_OPENCL_VERSION=120", "/opt/source/vector_add.c", "-lOpenCL"],
                              capture_output=True, text=True, check=False)
        return f"tcc: {done.stdout}{done.stderr}" if done.returncode != 0 else ""
    for path, source in programs().items():
        copy(source, root, path)
    if not client.self_contained:
        names = {path.name for path in client.files()}
        copy_libraries(root, client.files(), without=names)
        copy_libraries(root, programs().values(), without=names)
    return ""


def make_image(name, work, client):
    """(the tarball to import, "") or (None, why there is none)."""
    if not client.self_contained and name not in ("bare", this_release()):
        return None, "the client at hand needs this machine's libraries: SLUICE_CLIENT_DIR names one that needs glibc alone"
    root, archive = work / f"root-{name}", work / f"{name}.tar"
    why = make_bare(root, client) if name == "bare" else make_debian(name, root, client)
    if why:
        return None, why
    subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
    archive.chmod(0o644)
    remove(root)
    return archive, ""


def import_image(podman, name, archive, report):
    done = subprocess.run([*podman.command, "import", "-q", str(archive), name], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, env=podman.environment, cwd="/", check=False)
    return report.check(done.returncode == 0, f"{podman.name}: image {name}", done.stdout[-80:] + done.stderr)


# --- podman ----------------------------------------------------------------------------------------------


class Podman:
    """podman with a store of its own below `work`. Limits above ours may not be asked for: podman asks for 1048576
    files, which a machine whose root lacks CAP_SYS_RESOURCE refuses."""

    def __init__(self, work, name):
        self.name = name
        self.folder = work / name
        # crun 1.21 enters it as whoever the container's root is mapped to.
        self.folder.mkdir(mode=0o711)
        configuration = self.folder / "containers.conf"
        configuration.write_text('[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
                                 '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n')
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8",
                            "CONTAINERS_CONF": str(configuration), "XDG_RUNTIME_DIR": str(self.folder)}
        self.command = ["podman", "--root", str(self.folder / "store"), "--runroot", str(self.folder / "run"),
                        "--storage-driver", "overlay"]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        # Rootless podman keeps a process that holds its namespaces: migrate ends it.
        for words in (["rm", "-af"], ["rmi", "-af"], ["system", "migrate"]):
            try:
                subprocess.run([*self.command, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=self.environment, cwd="/", timeout=120, check=False)
            except subprocess.TimeoutExpired:
                print(f"note: podman {' '.join(words)} did not end in 120 s")


class RootPodman(Podman):
    def __init__(self, work):
        super().__init__(work, "root")


class UserPodman(Podman):
    """As an ordinary user, with user ids to map."""

    def __init__(self, work):
        super().__init__(work, "rootless")
        self.user = OrdinaryUser(self.folder)
        self.command = [*self.user.command, *self.command]

    def __exit__(self, *unused):
        super().__exit__(*unused)
        self.user.remove()


class OrdinaryUser:
    """Is made for a test, with `home`, and removed after it. Commands behind `command` are run as this user."""

    def __init__(self, home):
        self.name = f"sluice-test-{os.getpid() % 100000}"
        self.tools = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        subprocess.run(["useradd", "--no-create-home", "--home-dir", str(home), self.name], check=True, env=self.tools)
        subprocess.run(["chown", "-R", self.name, str(home)], check=True)
        self.command = ["runuser", "-u", self.name, "--"]

    def remove(self):
        # What of this user's still runs would keep it.
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if entry.owner() == self.name:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (KeyError, OSError):
                continue  # It has ended, or its owner has no name.
        subprocess.run(["userdel", self.name], check=False, env=self.tools, stderr=subprocess.DEVNULL)


# --- the daemon ------------------------------------------------------------------------------------------


class Daemon(harness.Daemon):
    """One whose clients' socket is in a folder that holds nothing else and is never removed while it runs."""

    def __init__(self):
        super().__init__("ring")
        self.sockets = self.directory / "clients"
        self.sockets.mkdir()
        self.sockets.chmod(0o755)
        self.socket = self.sockets / "broker.sock"
        self.config.write_text(f'[broker]\nsocket = "{self.socket}"\nadmin_socket = "{self.directory}/admin/admin.sock"\n'
                               '[worker]\nuser = "root"\n')
        (self.directory / "admin").mkdir(mode=0o700)

    def start(self):
        # Kernels are compiled once, not once per container.
        cache = os.environ.get("POCL_CACHE_DIR") or harness.build_dir() / "test-pocl-cache"
        pathlib.Path(cache).mkdir(exist_ok=True)
        return self.start_with({"POCL_CACHE_DIR": str(cache)})
