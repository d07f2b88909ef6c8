#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""No class of the product has more than 25 data members, but the two that are named.

A class is read as text: declarations directly in its body that are no functions, types, friends or static members.
"""
import re
import tree

MOST = 25
# Each is one connection's state, with a comment per group.
LARGER = {"StreamSession", "RemoteTransport"}
CLASS = re.compile(r"\b(?:class|struct)\s+(?:[A-Z_]+(?:\([^)]*\))?\s+)?([\w:]+)\s*(?:final\s*)?(?::[^;{()]*)?\{")
NO_MEMBER = ("using", "friend", "enum", "static", "typedef", "class", "struct", "template", "union")


def body(text, start):
    """What stands directly in the braces that open before `start`: nested braces are left empty."""
    depth, kept, end = 1, [], start
    while end < len(text) and depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 1 or (depth == 2 and text[end] == "{"):
            kept.append(text[end])
        end += 1
    return "".join(kept)


def members(declarations):
    # A function's body ends it; an initialiser's braces do not.
    declarations = re.sub(r"\{\}(?!\s*[;,])", ";", declarations)
    declarations = re.sub(r"\b(public|private|protected):", "", declarations)
    count = 0
    for one in declarations.split(";"):
        one = re.sub(r"\w*(GUARDED_BY|ACQUIRED_\w+)\([^)]*\)", "", one.replace("{}", ""))
        one = re.sub(r"=.*", "", one, flags=re.DOTALL).strip()
        plain = re.sub(r"<[^;]*>", "", one)
        if not one or one.startswith(NO_MEMBER) or "(" in plain:
            continue
        if re.search(r"[\w>&*]\s*[&*]*\s+[&*]*\w+(\[.*\])?$", one) or re.search(r">\s*\w+$", one):
            count += 1 + plain.count(",")
    return count


problems, seen, largest = [], 0, 0
for path in tree.files(".h", ".cc"):
    if tree.relative(path).startswith("tests/"):
        continue
    text = re.sub(r"//[^\n]*", "", tree.read(path))
    for found in CLASS.finditer(text):
        name, count = found.group(1), members(body(text, found.end()))
        seen += 1
        if name in LARGER:
            continue
        largest = max(largest, count)
        if count > MOST:
            problems.append(f"{tree.relative(path)}: {name} has {count} data members, {MOST} at most: group what "
                            "belongs together into a class or a struct of its own")
if seen < 300 or largest < 15:
    problems.append(f"only {seen} classes were found, the largest with {largest} members: this test does not see them")
tree.finish(problems, f"none of {seen} classes has more than {largest} data members but {', '.join(sorted(LARGER))}")
