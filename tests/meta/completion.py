#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/completion, sourced in bash, completes what the programs at hand have: commands, every flag of every command,
files and names. Ids of sessions need a session: tests/system/guides.py.
    completion.py SLUICED SLUICECTL"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import tree

PROBLEMS = []
# What readline does with a line: the words, the function, its answers.
ASK = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\) .*/\1/')
"$function" "$1" "${@: -1}" "${@: -2:1}"
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(environment, *words):
    script = str(tree.ROOT / "deploy/completion/sluice.bash")
    answer = subprocess.run(["bash", "--norc", "-c", ASK, "bash", script, *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, check=False,
                            cwd=tree.ROOT)
    if answer.returncode != 0 or answer.stderr:
        PROBLEMS.append(f"{' '.join(words)}: code {answer.returncode}, {answer.stderr}")
    return {line for line in answer.stdout.splitlines() if line}


def expect(environment, words, real, whole=True):
    found = complete(environment, *words)
    if found != real if whole else not real <= found:
        PROBLEMS.append(f"{' '.join(words)}: completes {sorted(found)}, not {sorted(real)}")


def help_of(*command):
    return subprocess.run([*command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout


def long_flags(text):
    names = ",".join(re.findall(r"^  (-[^ ]+)", text, re.M)).split(",")
    return {name for name in names if name.startswith("--")}


def subcommands(text):
    block = re.search(r"^Subcommands:\n(.*?)(?:\n\n|\Z)", text, re.S | re.M)
    return re.findall(r"^  ([a-z][a-z-]*)(?: |$)", block.group(1), re.M) if block else []


def check_command(environment, sluicectl, names):
    text = help_of(sluicectl, *names)
    expect(environment, ["sluicectl", *names, "--"], long_flags(text))
    below = subcommands(text)
    if below:
        expect(environment, ["sluicectl", *names, ""], set(below))
    for name in below:
        check_command(environment, sluicectl, [*names, name])


def main():
    sluiced, sluicectl = (pathlib.Path(name) for name in sys.argv[1:])
    if not sluiced.exists() or not sluicectl.exists() or shutil.which("bash") is None:
        print(f"skipped: there is no bash, or {sluiced} or {sluicectl} is not built")
        sys.exit(77)
    environment = dict(os.environ, PATH=f"{sluicectl.parent}:{sluiced.parent}:{os.environ['PATH']}")
    check_command(environment, str(sluicectl), [])
    expect(environment, ["sluiced", "--"], long_flags(help_of(str(sluiced))))
    expect(environment, ["sluicectl", "--json", "dev"], {"devices"})
    expect(environment, ["sluicectl", "--endpoint", "kill", "st"], {"status"})  # kill is the endpoint here.
    expect(environment, ["sluicectl", "run", "--private", "--config", "CMakeLists"], {"CMakeLists.txt"})
    expect(environment, ["sluicectl", "run", "--config", "=", "CMakeLists"], {"CMakeLists.txt"})
    expect(environment, ["sluicectl", "run", "--", "bas"], {"bash"}, whole=False)
    expect(environment, ["sluicectl", "run", "--", "cat", "READ"], {"README.md"})
    expect(environment, ["sluiced", "--log-level", "w"], {"warning"})
    expect(environment, ["sluiced", "--token-file", "LIC"], {"LICENSE"})
    expect(environment, ["sluiced", "--worker-user", "roo"], {"root"}, whole=False)
    expect(dict(environment, PATH="/usr/bin:/bin"), ["sluicectl", ""], set())  # Not installed: nothing is said.
    tree.finish(PROBLEMS, "bash completes what the programs have")


if __name__ == "__main__":
    main()
