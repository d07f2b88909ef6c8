#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders include each other in one direction only (proto <- broker <- platform_*; proto, broker <-
client_icd, daemon, deploy; all <- tests), and operating systems are told apart only where they may
be."""
import re

import tree

MAY_INCLUDE = {
    "proto": {"proto"},
    "broker": {"proto", "broker"},
    "platform_linux": {"proto", "broker", "platform_linux"},
    "platform_win": {"proto", "broker", "platform_win"},
    "client_icd": {"proto", "broker", "client_icd"},
    "daemon": {"proto", "broker", "daemon"},
    "deploy": {"proto", "broker", "deploy"},
}
# The suite sees what an application sees.
CONFORMANCE = {"tests"}

# One file that may include one header against the rule, and why.
EXCEPTIONS = {
    ("proto/ring_writer.cc", "broker/os/doorbell.h"): "a full ring waits on a doorbell",
    ("proto/spin.h", "broker/os/threads.h"): "no spinning on one processor",
    ("proto/ring_reader.cc", "broker/os/doorbell.h"): "an empty ring waits on a doorbell",
}

# Headers that strangers' programs include: with a system's type in them.
PUBLIC_HEADERS = {"client_icd/libsluice/sluice/sluice.h"}

FOLDERS = set(MAY_INCLUDE) | {"tests"}


def allowed_for(name):
    folder = name.split("/")[0]
    if name.startswith("tests/conformance/"):
        return CONFORMANCE
    return MAY_INCLUDE.get(folder)


def main():
    problems, count = [], 0
    for path in tree.files(".h", ".cc", ".c", ".inc", ".proto"):
        name = tree.relative(path)
        text = tree.read(path)
        count += 1
        allowed = allowed_for(name)
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*(?:#\s*include|import)\s+"([^"]+)"', line)
            if match and allowed is not None:
                target = match.group(1)
                folder = target.split("/")[0]
                if folder in FOLDERS - allowed and (name, target) not in EXCEPTIONS:
                    problems.append(f"{name}:{number}: must not include {target}")
            if match and name.startswith("tests/conformance/") and "/" in match.group(1) and \
                    not match.group(1).startswith("tests/conformance/"):
                problems.append(f"{name}:{number}: the suite includes nothing of Sluice")
            if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*\b_WIN32\b", line) and \
                    not name.startswith(("platform_", "broker/os/")) and name not in PUBLIC_HEADERS:
                problems.append(f"{name}:{number}: _WIN32 is for platform_*, broker/os and the public header only")
    tree.finish(problems, f"{count} files include in the right direction")


if __name__ == "__main__":
    main()
