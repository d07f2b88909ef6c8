#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""The portable client (deploy/portable) as strangers meet it: what it needs and shows, in systems that hold an OpenCL
loader and nothing else, and beside programs that bring libraries of their own.

    check.py files OUT                 no system is needed: libraries, symbol versions, exports
    check.py systems OUT [RELEASE...]  bullseye, bookworm, trixie (default: all)
    check.py beside OUT                in a Debian 11 with its own gRPC, protobuf, abseil and OpenSSL
    check.py all OUT

OUT is what deploy/portable/build.sh makes. The daemon is that of SLUICE_BUILD_DIR (default: build/). The systems are
kept in SLUICE_PORTABLE_TEST_CACHE (default: ~/.cache/sluice/portable-tests). Needs root, except for `files`.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/system"))
import failure_config  # noqa: E402
import harness  # noqa: E402

FOLDER = "/usr/lib/sluice-client"
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
NEWEST_GLIBC = (2, 28)
LIBRARIES = {"libsluice_icd.so": "client_icd/entry/exports.map", "libsluice.so.0": "client_icd/libsluice/exports.map",
             "sluice/libsluice_remote.so": "client_icd/remote/exports.map"}
PROGRAMS = ("sluice/sluice-network-helper", "sluice/sluice-resource-helper")
RELEASES = ("bullseye", "bookworm", "trixie")
SECONDS = 120
# What a release's system gets: a loader and programs that use it.
CLIENTS = ("ocl-icd-libopencl1", "clinfo", "hashcat", "python3-pyopencl", "python3-numpy")
COMPILER = ("g++", "ocl-icd-libopencl1", "pkg-config", "opencl-headers", "libgrpc++-dev", "libprotobuf-dev",
            "libssl-dev", "libabsl-dev", "libc-ares-dev")
# Arrays, whose kernels pyopencl writes itself.
PYOPENCL = """
import numpy, pyopencl, pyopencl.array
context = pyopencl.create_some_context(interactive=False)
assert context.devices[0].platform.name.startswith("Sluice ("), context
queue = pyopencl.CommandQueue(context)
numbers = numpy.arange(10000, dtype=numpy.int32)
there = pyopencl.array.to_device(queue, numbers)
assert ((2 * there + there).get() == 3 * numbers).all()
assert int(pyopencl.array.sum(there).get()) == numbers.sum()
print("PASS", pyopencl.VERSION_TEXT)
"""
# One word behind an MD5 hash, as in tests/system/clients/hashcat.sh: its include files travel to the daemon.
HASHCAT = """
cd "$(mktemp -d)" && export HOME=$PWD
# Of its own: one that was killed left a file behind.
hashcat --session "$(basename "$PWD")" --force -D 1,2 --self-test-disable --potfile-disable --restore-disable --logfile-disable --hwmon-disable \\
  -n 1 -u 1 -T 1 --backend-vector-width 1 -m 0 -a 3 -o found "$(printf tz7 | md5sum | cut -d' ' -f1)" '?l?l?d' \\
  </dev/null
grep -q ':tz7$' found && echo "PASS $(hashcat --version)"
"""

report = harness.Report("portable")


def output_of(*command, seconds=SECONDS, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=seconds, check=False, **options)
    return done.returncode, done.stdout.decode(errors="replace")


# --- the files -------------------------------------------------------------------------------------------


def glibc_version(text):
    return tuple(int(part) for part in text.split("."))


def exported_names(path):
    text = output_of("readelf", "--dyn-syms", "--wide", path)[1]
    names = set()
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK", "UNIQUE") and fields[6] not in ("UND", "ABS"):
            names.add(fields[7].split("@")[0])
    return names


def map_names(path):
    text = re.sub(r"/\*.*?\*/|#[^\n]*", "", (ROOT / path).read_text(), flags=re.S)
    inside = re.search(r"global:(.*?)local:", text, re.S).group(1)
    return set(re.findall(r"(\w+);", inside))


def check_files(out):
    texts = (out / "copyright.txt").read_text() if (out / "copyright.txt").is_file() else ""
    missing = [name for name in ("gRPC", "protobuf", "Abseil", "OpenSSL", "c-ares", "RE2", "zlib") if name.lower() not in texts.lower()]
    report.check(not missing, "copyright.txt has the licences of what is inside", " ".join(missing))
    icd = (out / "sluice.icd").read_text()
    report.check(re.fullmatch(r"/\S+/libsluice_icd\.so\n", icd), "sluice.icd is one line, the driver's path", icd)
    newest = {}
    for name in (*LIBRARIES, *PROGRAMS):
        path = out / name
        if not report.check(path.is_file() and not path.is_symlink(), f"{name} is there, as a file"):
            continue
        dynamic = output_of("readelf", "-d", path)[1]
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
        report.check(needed and needed <= ALLOWED, f"{name} needs glibc and nothing else", " ".join(sorted(needed)))
        report.check(not re.search(r"RPATH|RUNPATH|TEXTREL", dynamic), f"{name} has no path in it, and no text that is "
                     "relocated", dynamic if re.search(r"RPATH|RUNPATH|TEXTREL", dynamic) else "")
        symbols = output_of("objdump", "-T", path)[1]
        versions = set(re.findall(r"\bGLIBC_([\d.]+)", symbols))
        last = max(versions, key=glibc_version)
        newest[last] = sorted(set(re.findall(rf"GLIBC_{re.escape(last)}\)? +(?:0x\S+ +)?(\w+)", symbols)))
        report.check(glibc_version(last) <= NEWEST_GLIBC, f"{name} needs glibc {last}", " ".join(newest[last]))
        report.check(not re.search(r"GLIBCXX|CXXABI|GCC_", symbols), f"{name} has the C++ library inside")
        if name in LIBRARIES:
            exported, wanted = exported_names(path), map_names(LIBRARIES[name])
            report.check(exported == wanted, f"{name} exports what its map says", f"{len(exported)} names"
                         if exported == wanted else f"{exported ^ wanted}")
    # build.sh's root shows it the source at the second, and the libraries that it links at the third.
    folders = [str(ROOT).encode(), b"/sluice/source", b"/sluice/cache"]
    found = [f"{name} {folder.decode()}" for name in (*LIBRARIES, *PROGRAMS) for folder in folders
             if (out / name).is_file() and folder in (out / name).read_bytes()]
    report.check(not found, "no file names the folder that it was built in", " ".join(found))


# --- systems ---------------------------------------------------------------------------------------------


class System:
    """A minimal system of a release in a folder, kept from run to run."""

    def __init__(self, release, packages, name):
        cache = pathlib.Path(os.environ.get("SLUICE_PORTABLE_TEST_CACHE")
                             or pathlib.Path.home() / ".cache/sluice/portable-tests")
        self.release = release
        self.path = cache / f"{release}-{name}"
        done = self.path / ".packages"
        if not done.exists() or done.read_text() != " ".join(packages):
            shutil.rmtree(self.path, ignore_errors=True)
            cache.mkdir(parents=True, exist_ok=True)
            script = ROOT / "tests/fresh/root.sh"
            for command in ([script, "make", release, self.path],
                            [script, "run", self.path, "--", "sh", "-c", "apt-get update -q && DEBIAN_FRONTEND="
                             f"noninteractive apt-get install -y -q --no-install-recommends {' '.join(packages)}"]):
                code, text = output_of(*command, seconds=900)
                if code != 0:
                    sys.exit(f"FAIL portable: cannot make a system of {release}: {text[-500:]}")
            done.write_text(" ".join(packages))

    def run(self, environment, *command, binds=(), seconds=SECONDS):
        words = [f"{name}={value}" for name, value in environment.items()]
        options = [word for bind in binds for word in ("--ro-bind", bind)]
        return output_of(ROOT / "tests/fresh/root.sh", "run", self.path, *options, "--", "env", *words, *command,
                         seconds=seconds)


class Bare:
    """What a program needs to run, out of a system: its own glibc, the OpenCL loader, a few programs. No shell."""

    def __init__(self, system, programs):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="sluice-bare-"))
        for program in programs:
            text = output_of("chroot", system.path, "ldd", program)[1]
            for path in [program, *re.findall(r"(/\S+) \(0x", text)]:
                self.copy(system.path, path)
        for name in ("libdl.so.2", "libpthread.so.0", "libm.so.6"):  # Those that programs of this release do not name.
            self.copy(system.path, f"/lib/x86_64-linux-gnu/{name}")
        for folder in ("proc", "dev", "tmp", "etc/OpenCL/vendors", "socket"):
            (self.path / folder).mkdir(parents=True, exist_ok=True)

    def copy(self, system, path):
        source = system / output_of("chroot", system, "realpath", path)[1].strip().lstrip("/")
        target = self.path / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)

    def libraries(self):
        return sorted(path.name for path in self.path.rglob("*.so*") if not path.is_relative_to(self.path / FOLDER[1:]))

    def run(self, environment, sockets, *command, closed=""):
        mounts = [f"mount --bind {shlex.quote(str(sockets))} {self.path}/socket",
                  f"mount -t proc proc {self.path}/proc", f"mount --rbind /dev {self.path}/dev"]
        words = shlex.join(["chroot", str(self.path), *command])
        return output_of("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                         "sh", "-ec", "; ".join([*mounts, f"exec {words} {closed}"]), env=environment)

    def remove(self):
        shutil.rmtree(self.path)


def install(out, system_path):
    target = system_path / FOLDER[1:]
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(out, target, symlinks=True)
    vendors = system_path / "etc/OpenCL/vendors"
    vendors.mkdir(parents=True, exist_ok=True)
    for other in vendors.iterdir():
        other.unlink()  # What the clients' packages brought: the client is the only driver.
    shutil.copy(out / "sluice.icd", vendors)


def environment_of(daemon):
    """What a program of another system has, with the daemon's folder at /socket."""
    there = daemon.socket.relative_to(daemon.directory)
    endpoint = f"unix:/socket/{there}" if daemon.kind == "ring" else daemon.endpoint()
    return {"SLUICE_ENDPOINT": endpoint, "SLUICE_TEST_KIND": daemon.kind, "LC_ALL": "C.UTF-8",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def check_bare(out, system, daemons):
    bare = Bare(system, ["/usr/bin/clinfo", "/usr/local/bin/vector_add", "/usr/local/bin/sluice_example"])
    install(out, bare.path)
    strange = [name for name in bare.libraries() if not re.match(r"(ld-linux|lib(c|m|dl|pthread|OpenCL)\.so)", name)]
    report.check(not strange, f"{system.release}: a system of glibc and a loader",
                 " ".join(strange or bare.libraries()))
    for daemon in daemons:
        environment = environment_of(daemon)
        what = f"{system.release}, nothing but a loader, {daemon.kind}"
        code, text = bare.run(environment, daemon.directory, "/usr/bin/clinfo", "-l")
        report.check(code == 0 and "Sluice (" in text, f"{what}: clinfo", text)
        code, text = bare.run(environment, daemon.directory, "/usr/local/bin/vector_add")
        report.check(code == 0 and "Sluice (" in text, f"{what}: vector_add", text)
        if daemon.kind == "ring":
            code, text = bare.run(dict(environment, LD_LIBRARY_PATH=FOLDER), daemon.directory, "/usr/local/bin/sluice_example")
            report.check(code == 0 and re.search(r"^[0-9a-f]{48}$", text, re.M), f"{what}: libsluice's example", text)
        if daemon.kind == "network":
            code, text = bare.run(dict(environment, SLUICE_LOG="info"), daemon.directory, "/usr/local/bin/vector_add",
                                  closed="<&-")
            report.check(code == 0 and "a process of its own does the network's work" in text,
                         f"{what}: vector_add through the network's helper", text[-300:])
    check_authorities(bare, system.release)
    bare.remove()


def check_authorities(bare, release):
    """Whom the client trusts where nobody says: what the system has, at Debian's place and at Fedora's."""
    daemon = harness.Daemon("network")
    folder = daemon.directory
    failure_config.make_certificates(folder, "server", "client")
    daemon.config.write_text(f'{daemon.config.read_text()}certificate = "{folder}/server.pem"\n'
                             f'key = "{folder}/server.key"\nclient_ca = "{folder}/client.pem"\n')
    with daemon:
        environment = dict(environment_of(daemon), SLUICE_TLS_CERT="/socket/client.pem", SLUICE_LOG="info",
                           SLUICE_TLS_KEY="/socket/client.key")
        code, text = bare.run(environment, folder, "/usr/local/bin/vector_add")
        report.check(code != 0 and "/etc/pki/tls/certs/ca-bundle.crt is not there" in text and "SLUICE_TLS_CA" in text,
                     f"{release}: without authorities the log says where they were looked for", text[-600:])
        for place in ("etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt"):
            path = bare.path / place
            path.parent.mkdir(parents=True)
            for name, good in (("client", False), ("server", True)):
                shutil.copy(folder / f"{name}.pem", path)
                code, text = bare.run(environment, folder, "/usr/local/bin/vector_add")
                report.check((code == 0) == good and (good or f"/{place}" in text), f"{release}: TLS with "
                             f"{'the' if good else 'another'} authority in /{place}", text[-400:])
            path.unlink()


def programs(out):
    """Built on the oldest of the systems, for all of them: vector_add, and the example of libsluice(3)."""
    system = System("bullseye", COMPILER, "compiler")
    install(out, system.path)
    page = (ROOT / "deploy/man/libsluice.3.scd").read_text(encoding="utf-8")
    example = re.search(r"^# EXAMPLE\n.*?^```\n(.*?)^```", page, re.S | re.M).group(1).replace("\\\\", "\\")
    (system.path / "tmp/example.c").write_text(example)
    binds = (f"{ROOT / 'tests/system'}:/sluice-tests", f"{ROOT / 'client_icd/libsluice'}:/libsluice")
    for name, words in (("vector_add", ["/sluice-tests/programs/vector_add.c", "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"]),
                        ("sluice_example", ["-I/libsluice", "/tmp/example.c", f"{FOLDER}/libsluice.so.0"])):
        code, text = system.run({}, "cc", "-O2", "-o", f"/usr/local/bin/{name}", *words, binds=binds)
        if code != 0:
            sys.exit(f"FAIL portable: {name} is not built: {text}")
    return [system.path / f"usr/local/bin/{name}" for name in ("vector_add", "sluice_example")]


def check_system(out, release, daemons, built):
    system = System(release, CLIENTS, "clients")
    install(out, system.path)
    for program in built:
        shutil.copy(program, system.path / "usr/local/bin")
    check_bare(out, system, daemons)
    for daemon in daemons:
        environment = environment_of(daemon)
        binds = (f"{daemon.directory}:/socket",)
        for name, command in (("pyopencl", ["/usr/bin/python3", "-c", PYOPENCL]), ("hashcat", ["sh", "-c", HASHCAT])):
            code, text = system.run(environment, *command, binds=binds, seconds=600)
            report.check(code == 0 and "PASS" in text, f"{release}, {daemon.kind}: {name}", text[-700:])


# --- beside others ---------------------------------------------------------------------------------------


def check_beside(out, daemon):
    system = System("bullseye", COMPILER, "compiler")
    install(out, system.path)
    binds = (f"{daemon.directory}:/socket", f"{HERE}:/sluice-tests", f"{ROOT / 'client_icd/libsluice'}:/libsluice")
    # Resources are of the machine that the program runs on.
    libsluice = [f"{FOLDER}/libsluice.so.0"] if daemon.kind == "ring" else []
    flags = "-std=c++17 -O1 -I/libsluice -DCL_TARGET_OPENCL_VERSION=300 /sluice-tests/beside.cc"
    libraries = "grpc++ protobuf libssl libcrypto"
    archives = "/usr/lib/*/libabsl_*.a"
    kinds = {"shared": f"g++ -o /tmp/beside-shared {flags} $(pkg-config --cflags --libs {libraries}) -Wl,--as-needed "
                       f"$(ls /usr/lib/*/libabsl_*.so) -ldl -pthread",
             # Shown to whatever is loaded later, as a program does that has plugins.
             "static": f"g++ -rdynamic -o /tmp/beside-static {flags} -Wl,-Bstatic -Wl,--start-group "
                       f"$(pkg-config --static --libs {libraries} | sed 's/-l\\(dl\\|rt\\|m\\|pthread\\)\\b//g') "
                       f"{archives} -Wl,--end-group -Wl,-Bdynamic -ldl -lrt -pthread"}
    for kind, command in kinds.items():
        code, text = system.run({}, "sh", "-c", f"{command}", binds=binds, seconds=600)
        if not report.check(code == 0, f"a program with {kind} libraries of Debian 11 is built", text[-800:]):
            continue
        for order in ("first", "last"):
            for way in ("local", "global", "deepbind", "namespace"):
                code, text = system.run(environment_of(daemon), f"/tmp/beside-{kind}", order, way,
                                        f"{FOLDER}/libsluice_icd.so", *libsluice, binds=binds)
                report.check(code == 0 and "sums are right" in text and ("resource" in text or not libsluice),
                             f"{daemon.kind}, beside {kind} libraries that are used {order}, loaded {way}",
                             f"code {code}: {text[-300:]}")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("files", "systems", "beside", "all"):
        sys.exit(__doc__)
    what, out, releases = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:] or RELEASES
    if what in ("files", "all"):
        check_files(out)
    if what != "files" and os.geteuid() != 0:
        print("SKIP portable: systems: needs root, to enter them")
    elif what != "files":
        with harness.Daemon("ring") as ring, harness.Daemon("network") as network:
            if what in ("systems", "all"):
                built = programs(out)
                for release in releases:
                    check_system(out, release, (ring, network), built)
            for daemon in (ring, network) if what in ("beside", "all") else ():
                check_beside(out, daemon)
    report.exit()


if __name__ == "__main__":
    main()
