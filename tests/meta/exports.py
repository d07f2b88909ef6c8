#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A shared library shows the symbols of its exports.map and nothing else, and links no library of
graphics.

usage: exports.py LIBRARY [MAP], by default client_icd/entry/exports.map
"""
import re
import subprocess
import sys

import tree


def wanted(path):
    text = tree.read(tree.ROOT / path)
    visible = text[text.index("global:") + len("global:"):text.index("local:")]
    return set(re.findall(r"(\w+)\s*;", visible))


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        sys.exit(2)
    listed = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], stdout=subprocess.PIPE,
                            check=True, text=True).stdout
    shown = {line.split()[-1].split("@")[0] for line in listed.splitlines() if line.strip()}
    path = sys.argv[2] if len(sys.argv) == 3 else "client_icd/entry/exports.map"
    expected = wanted(path)
    problems = [f"{name}: exported, but not in {path}"
                for name in sorted(shown - expected)]
    problems += [f"{name}: in {path}, but not exported"
                 for name in sorted(expected - shown)]
    # What may not be loaded with it into a program that does not use graphics.
    needed = subprocess.run(["objdump", "-p", sys.argv[1]], stdout=subprocess.PIPE, check=True,
                            text=True).stdout
    problems += [f"needs {name}, which is to be found at run time" for name in
                 re.findall(r"NEEDED\s+(lib(?:GL|EGL|OpenGL|X11|xcb|vulkan)\S*)", needed)]
    tree.finish(problems, f"{len(shown)} exported symbols, as exports.map says")


if __name__ == "__main__":
    main()
