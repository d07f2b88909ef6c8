#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libsluice_icd.so shows the symbols of client_icd/exports.map and nothing else.

usage: exports.py LIBRARY
"""
import re
import subprocess
import sys

import tree


def wanted():
    text = tree.read(tree.ROOT / "client_icd/exports.map")
    visible = text[text.index("global:") + len("global:"):text.index("local:")]
    return set(re.findall(r"(\w+)\s*;", visible))


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    listed = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], stdout=subprocess.PIPE,
                            check=True, text=True).stdout
    shown = {line.split()[-1].split("@")[0] for line in listed.splitlines() if line.strip()}
    expected = wanted()
    problems = [f"{name}: exported, but not in client_icd/exports.map"
                for name in sorted(shown - expected)]
    problems += [f"{name}: in client_icd/exports.map, but not exported"
                 for name in sorted(expected - shown)]
    tree.finish(problems, f"{len(shown)} exported symbols, as exports.map says")


if __name__ == "__main__":
    main()
