#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""deploy/container/Containerfile is built with podman, as its head says, and its daemon serves a container.

Usage (as root): container_image.py [RELEASE]      bookworm (default) or trixie: the Debian that it is built on

That image is made here (root.sh); nothing is fetched from a registry, Debian's packages are. SLUICE_CLIENT_DIR names the
client, as for containers.py. CCACHE_DIR (default: ~/.cache/ccache) is used if it is there; without it the build takes as
long as a whole compile.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
import containers_lib as lib
import harness

report = harness.Report("container image")
SECONDS = 3600


def podman_run(podman, *words, seconds=300):
    done = subprocess.run([*podman.command, *map(str, words)], input=b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=seconds, check=False, env=podman.environment, cwd="/")
    return done.returncode, done.stdout.decode(errors="replace")


def make_base(podman, work, release):
    root, archive = work / "base", work / "base.tar"
    subprocess.run([str(HERE / "root.sh"), "make", release, str(root)], check=True)
    subprocess.run(["tar", "-C", str(root), "-cf", str(archive), "."], check=True)
    lib.remove(root)
    return lib.import_image(podman, "base", archive, report)


def build(podman, release):
    cache = pathlib.Path(os.environ.get("CCACHE_DIR") or pathlib.Path.home() / ".cache/ccache")
    code, text = podman_run(podman, "build", "--pull=never", "--network=host", "--build-arg", "BASE=localhost/base",
                            *(["-v", f"{cache}:/ccache"] if cache.is_dir() else []), "-t", "sluiced", "-f",
                            harness.ROOT / "deploy/container/Containerfile", harness.ROOT, seconds=SECONDS)
    # A build that somebody ends by a signal answers 0, too, with podman 4.3.
    there = podman_run(podman, "image", "exists", "sluiced")[0]
    return report.check(code == 0 and there == 0, f"the Containerfile is built on {release}", text[-3000:])


def serve(podman, work, client):
    sockets = work / "clients"
    sockets.mkdir()
    code, text = podman_run(podman, "run", "-d", "--name", "daemon", "--network=none", "--pull=never", "-v",
                            f"{sockets}:/run/sluice/clients", "sluiced")
    report.check(code == 0, "its daemon is started", text)
    listens = harness.wait_until((sockets / "broker.sock").exists, 60)
    report.check(listens, "it listens in the folder", "" if listens else podman_run(podman, "logs", "daemon")[1][-3000:])
    code, text = podman_run(podman, "exec", "daemon", "sluicectl", "status")
    report.check(code == 0, "sluicectl status in there", text)
    code, text = podman_run(podman, "run", "-i", "--rm", "--network=none", "--pull=never", "--read-only", "--cap-drop=all", "-v",
                            f"{client.folder}:/usr/lib/sluice-client:ro", "-v",
                            f"{client.folder}/sluice.icd:/etc/OpenCL/vendors/sluice.icd:ro", "-v",
                            f"{sockets}:/run/sluice/clients:ro", "bare", "/opt/vector_add")
    report.check(code == 0 and "every element right" in text and "Sluice (" in text, "another container computes on it",
                 f"exit {code}: {text}")
    code, text = podman_run(podman, "stop", "daemon")
    report.check(code == 0, "the daemon's container is stopped", text)
    code, text = podman_run(podman, "inspect", "--format", "{{.State.ExitCode}}", "daemon")
    report.check(text.strip() == "0", "and ended with code 0", text)


def main():
    release = sys.argv[1] if len(sys.argv) > 1 else "bookworm"
    if release not in ("bookworm", "trixie") or len(sys.argv) > 2:
        sys.exit(__doc__)
    missing = lib.missing_here()
    if missing:
        print(f"SKIP container image: {missing}")
        return
    lib.enter_namespace()
    work = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
    work.chmod(0o755)
    try:
        client = lib.make_client(work)
        archive, why = lib.make_image("bare", work, client)
        if archive is None:
            sys.exit(f"FAIL container image: the client's image is not made: {why}")
        with lib.RootPodman(work) as podman:
            if make_base(podman, work, release) and build(podman, release) and lib.import_image(podman, "bare", archive, report):
                serve(podman, work, client)
    finally:
        lib.remove(work)


main()
report.exit()
