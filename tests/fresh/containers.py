#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs in podman's containers, as root and as an ordinary user, with Sluice's client and nothing else.

Usage (as root): containers.py [--root | --rootless] [--quick] [IMAGE]...
    images: bare bookworm trixie bullseye; all of them without one. --quick leaves hashcat out, whose kernels take minutes.

SLUICE_CLIENT_DIR names a client that deploy/portable/build.sh has made. Without it the build tree's is exported, which needs
this machine's libraries: they are put into the images of this machine's release, and the other images are skipped.
Images are made here and imported: `bare` is busybox, an OpenCL loader and the programs; the others are minimal Debian
systems (root.sh) with clinfo and hashcat, which SLUICE_ROOT_CACHE keeps for 7 days. Nothing is fetched from a registry.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import containers_lib as lib
import harness

report = harness.Report("containers")
SECONDS = 600
FRAMES = 20
PLATFORM = "Sluice ("
# The hash is that of "tz7".
HASHCAT = ("cd /tmp && echo 882bf8252373a2b46b608edcd289d9d6 >hash && hashcat --force -D 1,2 --self-test-disable "
           "--potfile-disable --restore-disable --logfile-disable --hwmon-disable -n 1 -u 1 -T 1 "
           "--backend-vector-width 1 -m 0 -a 3 -o found hash '?l?l?d' >log 2>&1 </dev/null; cat log found")


def skip(name, why):
    print(f"SKIP containers: {name}: {why}", flush=True)


class Place:
    """Where containers run: podman as one user, and the images it has."""

    def __init__(self, name, podman, client, sockets):
        self.name, self.podman, self.client, self.sockets = name, podman, client, sockets

    def mounts(self):
        return ["-v", f"{self.client}:/usr/lib/sluice-client:ro", "-v",
                f"{self.client}/sluice.icd:/etc/OpenCL/vendors/sluice.icd:ro", "-v",
                f"{self.sockets}:/run/sluice/clients:ro"]

    def command(self, image, *words, options=(), given=None, network="none"):
        given = self.mounts() if given is None else given
        # -i: else its input is /dev/null, which crun 1.8 gives to a user namespace's root, on the machine itself.
        return [*self.podman.command, "run", "-i", "--rm", f"--network={network}", "--pull=never", *given, *options, image,
                *words]

    def run(self, image, *words, **options):
        """Exit code and output."""
        try:
            done = subprocess.run(self.command(image, *words, **options), input=b"",
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                                  env=self.podman.environment, cwd="/")
            return done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            return None, (late.stdout or b"").decode(errors="replace")

    def start(self, image, *words, options=()):
        return subprocess.Popen(self.command(image, *words, options=options), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.podman.environment, cwd="/")


def check_programs(place, image):
    name = f"{place.name}, {image}"
    code, text = place.run(image, "clinfo", "-l")
    report.check(code == 0 and PLATFORM in text, f"{name}: clinfo lists the device", f"exit {code}: {text}")
    code, text = place.run(image, "/opt/vector_add")
    report.check(code == 0 and "every element right" in text and PLATFORM in text, f"{name}: vector_add",
                 f"exit {code}: {text}")


# Its kernels take the longest to compile: last of all.
def check_hashcat(place, image):
    name = f"{place.name}, {image}"
    code, text = place.run(image, "sh", "-c", HASHCAT)
    report.check(text.strip().endswith(":tz7"), f"{name}: hashcat finds the word", f"exit {code}: {text[-3000:]}")


# What a container may be denied: none of it is needed.
def check_confined(place, image):
    separate = {"root": ("--uidmap=0:100000:65536", "--gidmap=0:100000:65536"), "rootless": ("--userns=keep-id",)}
    ways = {
        "a user namespace of its own": separate[place.name],
        "a read-only root": ("--read-only",),
        "no capability": ("--cap-drop=all",),
        "no new privileges": ("--security-opt=no-new-privileges",),
        "a user without a name": ("--user=4242:4242",),
        "all of this": ("--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", *separate[place.name]),
    }
    for name, options in ways.items():
        code, text = place.run(image, "/opt/vector_add", options=options)
        report.check(code == 0 and "every element right" in text, f"{place.name}, {image}: {name}", f"exit {code}: {text}")
    code, text = place.run(image, "sh", "-c", "cat /proc/self/status; ls /sys/class/net; ls /dev; ls /run/sluice/clients",
                           options=ways["all of this"])
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    report.check(lines.get("Seccomp", "").strip() == "2", f"{place.name}: the default seccomp profile was in force", lines.get("Seccomp"))
    report.check(lines.get("CapBnd", "").strip("\t 0") == "", f"{place.name}: no capability was left", lines.get("CapBnd"))
    words = text.split()
    report.check("lo" in words and not any(word.startswith(("eth", "tap")) for word in words),
                 f"{place.name}: there was no network")
    report.check("dri" not in words and not any(word.startswith("nvidia") for word in words),
                 f"{place.name}: there was no device node of a GPU")
    report.check("broker.sock" in words and "admin.sock" not in words and "monitor.sock" not in words,
                 f"{place.name}: the clients' folder has nothing for operators", words[-5:])


# Over the network, to a daemon of "another host": no folder of a daemon's is mounted.
def check_network(place, image, remote):
    code, text = place.run(image, "/opt/vector_add", network="host", given=place.mounts()[:-2],
                           options=(f"--env=SLUICE_ENDPOINT={remote.endpoint()}", "--env=SLUICE_TEST_KIND=network"))
    report.check(code == 0 and "every element right" in text, f"{place.name}, {image}: over the network", f"exit {code}: {text}")


def check_cdi(place, image):
    code, text = place.run(image, "/opt/vector_add", given=["--device", "sluice.dev/gpu=all"])
    report.check(code == 0 and "every element right" in text, f"{place.name}, {image}: by --device sluice.dev/gpu=all",
                 f"exit {code}: {text}")
    code, text = place.run(image, "env", given=["--device", "sluice.dev/gpu=all"])
    report.check(code == 0 and "SLUICE" not in text and "OCL_" not in text, f"{place.name}: which sets no variable", text)


# The guide's commands, in this podman, with this image, and with the folders that lie elsewhere here.
def check_guide(place, image):
    text = (harness.ROOT / "deploy/guides/containers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh podman\n(.*?)^```", text, re.S | re.M)
    report.check(len(blocks) == 2, f"{place.name}: the guide has a command with mounts and one with a name")
    for block in blocks:
        words = shlex.split(block.replace("\\\n", " ").replace("/srv/sluice-client", str(place.client)).replace(
            "-v /run/sluice/clients:", f"-v {place.sockets}:").replace("IMAGE", image))
        command = [*place.podman.command, *words[1:2], "--pull=never", *words[2:]]
        done = subprocess.run(command, input=b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS, check=False, env=place.podman.environment, cwd="/")
        output = done.stdout.decode(errors="replace")
        report.check(words[:2] == ["podman", "run"] and done.returncode == 0 and PLATFORM in output,
                     f"{place.name}, {image}: the guide's command by {'name' if '--device' in words else 'mounts'}", output)


def place_of_tenant(place, daemon, tenant):
    """The same, for containers that have a listener's folder in place of the default one."""
    user = ["--user", place.podman.user.name] if place.name == "rootless" else []
    done = subprocess.run([str(harness.built("sluicectl")), "listener", "add", tenant, *user, "--json", "--admin-socket",
                           str(daemon.directory / "admin/admin.sock")], capture_output=True, text=True, check=False)
    if not report.check(done.returncode == 0, f"{place.name}: a listener for tenant {tenant}", done.stdout + done.stderr):
        return place
    return Place(place.name, place.podman, place.client, pathlib.Path(json.loads(done.stdout)["socket"]).parent)


# Two tenants, each in a container with a listener of its own, exchange frames through a resource that the daemon owns.
def check_shared(place, image, daemon):
    name = f"{place.name}, {image}: two tenants in two containers share a resource"
    if not (place.client / "libsluice.so.0").exists():
        return skip(name, "the client has no libsluice.so.0")
    libraries = ("--env=LD_LIBRARY_PATH=/usr/lib/sluice-client",)
    one, other = (place_of_tenant(place, daemon, f"{place.name}-{number}") for number in (1, 2))
    producer = one.start(image, "/opt/resource_frames", "produce", str(FRAMES), "320", "240", options=libraries)
    said = dict(line.split() for line in (producer.stdout.readline(), producer.stdout.readline()) if len(line.split()) == 2)
    if not {"frames", "ack"} <= set(said):
        producer.kill()
        return report.check(False, name, f"the producer says {said} {producer.communicate()}")
    code, text = other.run(image, "/opt/resource_frames", "consume", str(FRAMES), said["frames"], said["ack"], options=libraries)
    try:
        output, errors = producer.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        producer.kill()
        output, errors = producer.communicate()
    return report.check(code == 0 and producer.returncode == 0, name, f"{code} {text} {producer.returncode} {output} {errors}")


# The folder is mounted, not the socket: a container that lives on meets the next daemon.
def check_restart(place, image, daemon):
    name = f"{place.name}, {image}: a container meets the daemon that was started again"
    waiting = place.start(image, "sh", "-c", "echo ready; read line; /opt/vector_add")
    ready = waiting.stdout.readline().strip()
    daemon.stop()
    daemon.start()
    try:
        output, errors = waiting.communicate("\n", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        waiting.kill()
        output, errors = waiting.communicate()
    report.check(ready == "ready" and waiting.returncode == 0 and "every element right" in output, name, f"{output} {errors}")


def write_cdi(client, sockets):
    """In the folder that podman 4.3 reads; only this mount namespace sees it."""
    for folder in (pathlib.Path("/etc/cdi"), pathlib.Path("/run/cdi")):
        if folder.is_dir():
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    done = subprocess.run([str(harness.built("sluicectl")), "cdi", "generate", "--client", str(client), "--socket-folder",
                           str(sockets), "--output", "/run/cdi/sluice.json"], capture_output=True, text=True, check=False)
    report.check(done.returncode == 0, "the CDI file is written", done.stdout + done.stderr)


def check_place(place, images, daemon, remote, quick):
    usable = [image for image in images if lib.import_image(place.podman, image, images[image], report)]
    for image in usable:
        check_programs(place, image)
        check_network(place, image, remote)
    if usable:
        check_confined(place, usable[0])
        check_cdi(place, usable[0])
        check_guide(place, usable[0])
        check_restart(place, usable[0], daemon)
    # The program is built here, for a glibc that is not older than this machine's.
    for image in [image for image in usable if image != "bullseye"][:1]:
        check_shared(place, image, daemon)
    for image in [] if quick else usable:
        check_hashcat(place, image)


def main():
    flags = [word for word in sys.argv[1:] if word.startswith("--")]
    wanted = [word for word in sys.argv[1:] if word not in flags] or list(lib.IMAGES)
    if set(flags) - {"--root", "--rootless", "--quick"}:
        sys.exit(__doc__)
    unknown = [name for name in wanted if name not in lib.IMAGES]
    if unknown:
        sys.exit(f"containers.py: no image {unknown[0]}; images are {', '.join(lib.IMAGES)}")
    missing = lib.missing_here()
    if missing:
        skip("podman", missing)
        return
    lib.enter_namespace()
    work = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))  # podman wants a short path.
    work.chmod(0o755)
    try:
        client = lib.make_client(work)
        images = {}
        for name in wanted:
            archive, why = lib.make_image(name, work, client)
            if archive is None:
                skip(f"image {name}", why)
            else:
                images[name] = archive
        with lib.Daemon() as daemon, harness.Daemon("network") as remote:
            write_cdi(client.folder, daemon.sockets)
            for podman_kind, flag in ((lib.RootPodman, "--rootless"), (lib.UserPodman, "--root")):
                if flag in flags:
                    continue
                with podman_kind(work) as podman:
                    check_place(Place(podman.name, podman, client.folder, daemon.sockets), images, daemon, remote,
                                "--quick" in flags)
    finally:
        lib.remove(work)


main()
report.exit()
