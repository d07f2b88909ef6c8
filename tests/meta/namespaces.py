#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file opens the namespace of its room and no other. ARCHITECTURE.md's table names the namespace of each room, TESTS
that of each test folder. A file that implements another room's header for one system is in that header's namespace.
Another namespace may be opened for forward declarations only."""
import re

import dependency_direction
import tree

# A unit test is in the namespace of what it tests.
TESTS = {
    "tests/unit/broker": "sluice::broker", "tests/unit/client_icd": "sluice::client", "tests/unit/daemon": "sluice::worker",
    "tests/unit/gateway": "sluice::gateway", "tests/unit/platform_linux": "sluice::os",
    "tests/unit/platform_win": "sluice::os", "tests/unit/proto": "sluice::wire", "tests/unit/resources": "sluice::broker",
    "tests/hostile": "sluice::worker", "tests/loopback": "sluice::worker", "tests/loopback/driver": "sluice::client",
    "tests/windows": "sluice::tests",
    "tests/fuzz": "sluice::fuzz", "tests/fake_cl": "sluice::fake", "tests/complete_driver": "sluice::complete_driver",
    "tests/conformance": "sluice::conformance", "tests/sharing": "sluice::gltest", "tests/sharing/d3d": "sluice::d3dtest",
}

FORWARD = re.compile(r"(?:\s*(?:class|struct|enum class) \w+(?: : \w+)?;[^\n]*\n|\s*\n)*\}")


def namespaces_of_rooms():
    return dependency_direction.read_namespaces()


def implemented(name, text):
    """The header that a file of one system implements for all: it is included first."""
    match = re.search(r'^#include "([^"]+)"', text, re.M)
    target = match.group(1) if match and name.endswith(".cc") else ""
    same = target.rpartition("/")[2] == name.rpartition("/")[2].replace(".cc", ".h")
    return target if name.startswith("platform_") or name.startswith("tests/windows/") and same else ""


def namespace_of(name, text, spaces):
    """The namespace of a file, or None where nothing says which."""
    for path in (implemented(name, text), name):
        room = dependency_direction.room_of(path, spaces) if "/" in path else ""
        if room:
            return spaces[room]
    return None


def main():
    spaces = {**namespaces_of_rooms(), **TESTS}
    problems, count = [], 0
    for path in tree.files(".h", ".cc"):
        name, text = tree.relative(path), tree.read(path)
        space = namespace_of(name, text, spaces)
        for match in re.finditer(r"^namespace (sluice[\w:]*) \{[^\n]*\n", text, re.M):
            opened = match.group(1)
            if space is None or opened == space or opened.startswith(space + "::") and space != "sluice":
                continue
            if space == "sluice" and opened == "sluice::internal":
                continue
            if not FORWARD.match(text, match.end()):
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{name}:{line}: {opened} is opened, and this folder's namespace is {space} "
                                "(ARCHITECTURE.md, Rooms)")
        count += space is not None
    tree.finish(problems, f"{count} files open the namespace of their room")


if __name__ == "__main__":
    main()
