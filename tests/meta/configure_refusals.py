#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the configure step refuses, it refuses in words that help: a 32-bit target, and a missing dependency,
with the Debian package that has it."""
import subprocess
import sys
import tempfile

import tree

REFUSALS = {
    # The compiler is tried without linking: a machine need not have the libraries of such a target.
    "a 32-bit target": (["-DCMAKE_C_FLAGS=-m32", "-DCMAKE_CXX_FLAGS=-m32",
                         "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"], ["64-bit"]),
    "no spdlog": (["-DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON"], ["libspdlog-dev", "install-deps.sh"]),
}


def main():
    problems = []
    for what, (flags, words) in REFUSALS.items():
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run([sys.argv[1], "-S", str(tree.ROOT), "-B", build, "-G", "Ninja", *flags],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        output = " ".join(done.stdout.decode(errors="replace").split())
        if done.returncode == 0:
            problems.append(f"{what}: configured all the same")
        problems += [f"{what}: the message does not say {word}" for word in words if word not in output]
    tree.finish(problems, f"{len(REFUSALS)} configurations are refused in words that help")


if __name__ == "__main__":
    main()
