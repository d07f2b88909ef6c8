#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the codes that two runs of the conformance suite recorded (SLUICE_TEST_RECORD, or
run_all.py --codes).

usage: compare_codes.py NATIVE OTHER
A check that both runs made must have seen the same set of codes, unless the table of differences
lists it: those are read from harness/differences_*.cc. Exit code 1 if any other check
differs.
"""
import collections
import pathlib
import re
import sys


def load(path):
    codes = collections.defaultdict(set)
    for line in pathlib.Path(path).read_text().splitlines():
        name, _, code = line.partition("\t")
        codes[name].add(code)
    return codes


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    files = list((pathlib.Path(__file__).parent / "harness").glob("differences_*.cc"))
    if not files:
        sys.exit("compare_codes.py: the table of differences is not there")
    table = "".join(path.read_text() for path in files)
    known = set(re.findall(r'\{"(cl\w+\.\w+)"', table))
    native, other = load(sys.argv[1]), load(sys.argv[2])
    different = [name for name in sorted(native.keys() & other.keys())
                 if name not in known and native[name] != other[name]]
    for name in different:
        print(f"{name}: {' '.join(sorted(native[name]))} against {' '.join(sorted(other[name]))}")
    both = len(native.keys() & other.keys())
    print(f"{both} checks in both runs, {len(different)} differ outside the table; "
          f"{len(native.keys() - other.keys())} only in the first, "
          f"{len(other.keys() - native.keys())} only in the second")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
