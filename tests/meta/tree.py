# SPDX-License-Identifier: Apache-2.0
"""What the meta tests share: the files of the tree, and how a test says what it found."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(*suffixes):
    """The tree's own files: those git tracks or would track; without git, all but build folders."""
    try:
        listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], stdout=subprocess.PIPE, check=True).stdout
        paths = [ROOT / name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*")
                 if not path.relative_to(ROOT).parts[0].startswith(("build", ".git"))]
    return sorted({path for path in paths
                   if path.is_file() and (not suffixes or path.suffix in suffixes)})


def relative(path):
    return str(path.relative_to(ROOT))


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def finish(problems, good):
    """Prints every problem, or what was found good, and ends with the exit code for it."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems" if problems else good)
    sys.exit(1 if problems else 0)
