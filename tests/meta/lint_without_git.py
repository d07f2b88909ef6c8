#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/lint.sh looks at the files of a tree that git does not list (a tarball, a checkout of somebody else's), and
never finds nothing to be as it should be."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tree


def lint(folder):
    # Not the checkout that this may be inside of.
    env = dict(os.environ, GIT_CEILING_DIRECTORIES=str(folder.parent))
    done = subprocess.run([str(folder / "deploy/lint.sh")], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def main():
    if shutil.which("clang-format-14") is None:
        print("SKIPPED: clang-format-14 is not installed (deploy/install-deps.sh --lint)")
        sys.exit(77)
    problems = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "sluice"
        (folder / "deploy").mkdir(parents=True)
        (folder / "build").mkdir()
        shutil.copy(tree.ROOT / "deploy/lint.sh", folder / "deploy")
        shutil.copy(tree.ROOT / ".clang-format", folder)
        (folder / "build/generated.cc").write_text("int  main( ) {  }\n")
        code, output = lint(folder)
        if code == 0:
            problems.append(f"a tree without a source file is as it should be: {output}")
        (folder / "one.cc").write_text("int main() {}\n")
        code, output = lint(folder)
        if code != 0 or ": 1 files" not in output:
            problems.append(f"one good file: exit code {code}, {output}")
        (folder / "two.h").write_text("int  two( ) ;\n")
        code, output = lint(folder)
        if code == 0 or "two.h" not in output:
            problems.append(f"a file that is not as it should be: exit code {code}, {output}")
    tree.finish(problems, "lint.sh sees the files of a tree without git")


if __name__ == "__main__":
    main()
