# SPDX-License-Identifier: Apache-2.0
"""The versions that today's is held against, and their build trees.

Each is built once, from git's history, into old-COMMIT of the cache (SLUICE_CACHE_DIR, default ~/.cache/sluice).
A release that is made gets a line in VERSIONS, and stays as long as its clients may be in somebody's image.
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("SLUICE_CACHE_DIR") or pathlib.Path.home() / ".cache/sluice")

# COMMIT or tag: what it is.
VERSIONS = {"58ea0fa": "0.1.0, before the sockets moved"}

TARGETS = ("sluice_icd", "sluice_remote", "sluice-network-helper", "sluice", "sluice-resource-helper", "sluiced",
           "sluice-worker", "sluice-gateway", "sluice-allocator", "sluicectl", "sluice_conformance",
           "sluice_conformance_dlopen")


class NotThere(Exception):
    """Why there is no build tree of a version."""


class NoHistory(NotThere):
    """Nor can there be one."""


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)


def text_of(version, path):
    """A file of that version; None if git does not have it."""
    shown = git("show", f"{version}:{path}")
    return shown.stdout if shown.returncode == 0 else None


def _run(*command, **more):
    if subprocess.run(["nice", "-n", "8", *command], stdin=subprocess.DEVNULL, check=False, **more).returncode != 0:
        raise NotThere(f"{' '.join(command[:6])} failed")


def _build(version, commit, folder):
    source, tree = folder / "source", folder / "build"
    if not (source / "CMakeLists.txt").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        source.mkdir(parents=True)
        archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(source)], stdin=archive.stdout, check=True)
        if archive.wait() != 0:
            raise NotThere(f"git archive {version} failed")
    print(f"{version}: building it in {folder}", file=sys.stderr, flush=True)
    environment = dict(os.environ, CCACHE_BASEDIR=str(source), CCACHE_NOHASHDIR="1")
    _run("cmake", "-S", str(source), "-B", str(tree), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         "-DSLUICE_BUILD_TESTS=ON", "-DCMAKE_UNITY_BUILD=ON", env=environment, stdout=sys.stderr)
    _run("cmake", "--build", str(tree), "-j2", "--target", *TARGETS, env=environment, stdout=sys.stderr)
    (folder / "built").write_text(commit + "\n")


def tree_of(version, build):
    """The version's build tree. `build`: it is built if it is not there. NotThere says why there is none."""
    found = git("rev-parse", "--verify", "--quiet", version + "^{commit}")
    commit = found.stdout.strip()
    if found.returncode != 0:
        raise NoHistory(f"this checkout's git has no commit {version}: it is shallow, or no git checkout")
    folder = CACHE / f"old-{version}"
    marker = folder / "built"
    if not marker.is_file() or marker.read_text().strip() != commit:
        if not build:
            raise NotThere(f"it is not built: tests/compatibility/run.py --build does so, once, into {folder}")
        _build(version, commit, folder)
    return folder / "build"
