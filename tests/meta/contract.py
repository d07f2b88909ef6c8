#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The contract guard: no field of proto/ that was ever recorded changes its number, its type or its name.

contract.py PROTOC             compares proto/ with proto/contract.txt, which has all of it
contract.py PROTOC --record    adds what is new to proto/contract.txt

A line is `Message.number label type name`, for enums `Enum.number = NAME`. Fields are only ever added: a
line never leaves the file. A field that is gone keeps its line, with `reserved` in the .proto.
"""
import re
import subprocess
import sys

import tree

RECORD = tree.ROOT / "proto" / "contract.txt"
HEADER = "# Every field number of proto/ and what it means, for ever. Written by tests/meta/contract.py --record.\n"


def descriptor_text(protoc):
    """The FileDescriptorSet of proto/, as protoc's own text format."""
    names = [tree.relative(path) for path in tree.files(".proto")
             if tree.relative(path).startswith("proto/")]
    binary = subprocess.run([protoc, f"-I{tree.ROOT}", "--descriptor_set_out=/dev/stdout", *names],
                            stdout=subprocess.PIPE, check=True).stdout
    return subprocess.run([protoc, "--decode=google.protobuf.FileDescriptorSet",
                           "google/protobuf/descriptor.proto"], input=binary, stdout=subprocess.PIPE,
                          check=True).stdout.decode()


def parse(lines):
    """One block of text format as a list of (key, value), where a value is a string or such a list."""
    block = []
    for line in lines:
        line = line.strip()
        if line == "}":
            return block
        if line.endswith("{"):
            block.append((line[:-1].strip(), parse(lines)))
        elif line:
            key, value = line.split(":", 1)
            block.append((key, value.strip().strip('"')))
    return block


def one(block, key, default=""):
    return next((value for name, value in block if name == key), default)


def entries_of(block, prefix):
    """The lines of one message or file, with all that is nested in it."""
    lines = {}
    for key, value in block:
        if key == "field":
            label = one(value, "label").replace("LABEL_", "").lower()
            kind = one(value, "type_name").lstrip(".") or one(value, "type").replace("TYPE_", "").lower()
            lines[f"{prefix}.{one(value, 'number')}"] = f"{label} {kind} {one(value, 'name')}"
        elif key == "value":
            lines[f"{prefix}.{one(value, 'number', '0')}"] = f"= {one(value, 'name')}"
        elif key in ("message_type", "nested_type", "enum_type"):
            lines.update(entries_of(value, f"{prefix}.{one(value, 'name')}"))
    return lines


def main():
    protoc = sys.argv[1]
    now = {}
    for key, value in parse(iter(descriptor_text(protoc).splitlines())):
        assert key == "file"
        now.update(entries_of(value, one(value, "package")))
    recorded = {}
    if RECORD.exists():
        for line in tree.read(RECORD).splitlines():
            if line and not line.startswith("#"):
                name, meaning = line.split(" ", 1)
                recorded[name] = meaning
    problems = [f"{name}: was `{meaning}`, is `{now[name]}`: numbers are never given a new meaning"
                for name, meaning in recorded.items() if now.get(name, meaning) != meaning]
    reserved = {tree.relative(path): tree.read(path) for path in tree.files(".proto")}
    for name in recorded.keys() - now.keys():
        number = name.rsplit(".", 1)[1]
        if not any(re.search(rf"reserved[^;]*\b{number}\b", text) for text in reserved.values()):
            problems.append(f"{name}: gone, and its number is not reserved")
    new = sorted(now.keys() - recorded.keys())
    if "--record" in sys.argv and not problems:
        recorded.update({name: now[name] for name in new})
        order = sorted(recorded, key=lambda name: (name.rsplit(".", 1)[0], int(name.rsplit(".", 1)[1])))
        RECORD.write_text(HEADER + "".join(f"{name} {recorded[name]}\n" for name in order))
    elif new:
        problems.append(f"{len(new)} fields are not recorded yet (contract.py PROTOC --record): "
                        f"{', '.join(new[:5])}{', ...' if len(new) > 5 else ''}")
    tree.finish(problems, f"{len(recorded)} recorded fields mean what they meant")


if __name__ == "__main__":
    main()
