#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rooms include downwards only, as the table in ARCHITECTURE.md says; operating systems are told apart only
where they may be."""
import re

import tree

# The suite sees what an application sees.
CONFORMANCE = "tests/conformance"

# Headers that strangers' programs include: with a system's type in them.
PUBLIC_HEADERS = {"client_icd/libsluice/sluice/sluice.h"}


def read_rows():
    """The table's rows: room, namespace, the rooms that it may include."""
    section = tree.read(tree.ROOT / "ARCHITECTURE.md").split("\n## Rooms\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w/]+)` \| ([^|]*) \|[^|]*\|([^|]*)\|$", section, re.M)


def read_table():
    """room -> the rooms that it may include."""
    return {room: set(re.findall(r"[\w/]+", may)) for room, _, may in read_rows()}


def read_namespaces():
    """room -> its namespace; none for C."""
    names = {room: space.strip("`") for room, space, _ in read_rows()}
    return {room: None if name == "C" else name if name == "sluice" else "sluice::" + name for room, name in names.items()}


def room_of(name, rooms):
    """The row that speaks for a file."""
    folder = name.rsplit("/", 1)[0]
    while folder and folder not in rooms:
        folder = folder.rpartition("/")[0]
    return folder


def check_rows(rooms, problems):
    for room, may in rooms.items():
        if not (tree.ROOT / room).is_dir():
            problems.append(f"ARCHITECTURE.md: there is no room {room}")
        for other in sorted(may - rooms.keys()):
            inside = any(other.startswith(row + "/") for row in rooms) and (tree.ROOT / other).is_dir()
            if not inside:
                problems.append(f"ARCHITECTURE.md: {room} may include {other}, which is no room")
    # A cycle between rooms is no order.
    def reaches(start, goal, seen):
        for other in rooms.get(start, ()):
            if other == goal or (other not in seen and reaches(other, goal, seen | {other})):
                return True
        return False
    for room in rooms:
        if reaches(room, room, {room}):
            problems.append(f"ARCHITECTURE.md: {room} includes itself by way of others")


def may_include(room, target, rooms):
    other = room_of(target, rooms)
    return other == room or other in rooms[room] or target.rsplit("/", 1)[0] in rooms[room]


def main():
    rooms = read_table()
    problems, count = [], 0
    check_rows(rooms, problems)
    folders = {room.split("/")[0] for room in rooms} | {"tests"}
    used = {room: set() for room in rooms}
    for path in tree.files(".h", ".cc", ".c", ".inc", ".proto"):
        name = tree.relative(path)
        count += 1
        room = room_of(name, rooms)
        if not room and not name.startswith("tests/"):
            problems.append(f"{name}: no row of ARCHITECTURE.md speaks for this folder")
            continue
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = re.match(r'\s*(?:#\s*include|import)\s+"([^"]+)"', line)
            target = match.group(1) if match else ""
            if room and target.split("/")[0] in folders and "/" in target:
                if target.startswith("tests/") or not may_include(room, target, rooms):
                    problems.append(f"{name}:{number}: {room} must not include {target} (ARCHITECTURE.md, Rooms)")
                used[room].add(room_of(target, rooms))
                used[room].add(target.rsplit("/", 1)[0])
            if match and name.startswith(CONFORMANCE + "/") and "/" in target and not target.startswith(CONFORMANCE):
                problems.append(f"{name}:{number}: the suite includes nothing of Sluice")
            if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*\b_WIN32\b", line) and \
                    not name.startswith(("platform_", "broker/os/")) and name not in PUBLIC_HEADERS:
                problems.append(f"{name}:{number}: _WIN32 is for platform_*, broker/os and the public header only")
    for room, may in rooms.items():
        for other in sorted(may - used[room]):
            problems.append(f"ARCHITECTURE.md: {room} may include {other} and does not")
    tree.finish(problems, f"{count} files in {len(rooms)} rooms include downwards")


if __name__ == "__main__":
    main()
