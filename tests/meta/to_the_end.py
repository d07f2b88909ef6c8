#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""tests/to_the_end.sh: a program's exit code 0 counts only where GoogleTest has written its report."""
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "to_the_end.sh"
REPORTS = 'for i; do case $i in --gtest_output=xml:*) echo "<testsuites/>" >"${i#*:}" ;; esac; done\n'


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program")
        for what, body, arguments, expected in (
                ("all tests ended", REPORTS + "exit 0", [], 0),
                ("a test failed", REPORTS + "exit 1", [], 1),
                ("an end before the tests'", "exit 0", [], 1),
                ("a crash", "kill -SEGV $$", [], 139),
                ("a list of tests", '[ $# = 1 ] && exit 0', ["--gtest_list_tests"], 0)):
            program.write_text("#!/bin/sh\n" + body + "\n")
            program.chmod(0o755)
            code = subprocess.run([str(SCRIPT), str(program), *arguments], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, check=False).returncode
            if code != expected:
                wrong.append(f"{what}: exit code {code}, not {expected}")
    print("\n".join(wrong) or "all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
