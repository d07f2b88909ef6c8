#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every entry point of cl_icd_dispatch, and of the extensions beside it, has a check of its success
and one of an error, in tests/conformance or tests/sharing.

The checks are found by their names in the macros of tests/conformance/harness/expect.h, as in
EXPECT_CL("clFlush.null_queue", CL_INVALID_COMMAND_QUEUE, ...). Entry points of Direct3D's extensions
are left out: they are Windows'.

usage: every_entry_is_tested.py [cl_icd.h]
"""
import pathlib
import re
import sys

import tree

WINDOWS = re.compile(r"D3D1[01]|DX9")
FOLDERS = ("tests/conformance/", "tests/sharing/")

# Entry points that cannot have one of the two, and why.
NO_SUCCESS = {
    "clSetCommandQueueProperty": "devices after OpenCL 1.0 refuse it",
    "clSetProgramReleaseCallback": "refused where there are no program-scope destructors",
}
NO_ERROR = {
    "clUnloadCompiler": "takes no argument and always succeeds",
    "clSVMFree": "returns nothing",
}
# Returns nothing, so only a call can be asked for.
ONLY_CALLED = {"clSVMFree"}

def extension_functions():
    """The entry points beside the dispatch table, which client_icd/base/api.h declares at its end."""
    text = tree.read(tree.ROOT / "client_icd/base/api.h").split("// Functions without a slot")[1]
    return re.findall(r"\bCL_API_CALL (cl\w+)\(", text)


def dispatch_entries(header):
    text = tree.read(header)
    struct = text[text.index("typedef struct _cl_icd_dispatch"):]
    # Of headers before 2023, and since.
    members = re.findall(r"cl_api_(\w+)\s+(\w+);", struct) + re.findall(r"(\w+)_t\s*\*\s*(\w+);", struct)
    return [name for kind, name in members if kind == name and not WINDOWS.search(name)]


def arguments(text, start):
    """The top-level arguments of the call whose opening parenthesis is at `start`."""
    parts, depth, quoted, begin = [], 0, False, start + 1
    for at in range(start, len(text)):
        char = text[at]
        if quoted:
            quoted = char != '"' or text[at - 1] == "\\"
        elif char == '"':
            quoted = True
        elif char in "({[":
            depth += 1
        elif char in ")}]":
            depth -= 1
            if depth == 0:
                parts.append(text[begin:at])
                return parts
        elif char == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
    return parts


def main():
    header = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/include/CL/cl_icd.h")
    sources = [path for path in tree.files(".cc", ".h")
               if tree.relative(path).startswith(FOLDERS)]
    text = "\n".join(tree.read(path) for path in sources)
    succeeded, refused = set(), set()
    for match in re.finditer(r"\b(EXPECT_CL|ASSERT_CL|EXPECT_CREATE|MAKE)\s*\(", text):
        found = arguments(text, match.end() - 1)
        name = re.search(r'"(cl\w+)\.', found[0]) if found else None
        if name is None:
            continue
        made = match.group(1) == "MAKE"
        codes = ["CL_SUCCESS"] if made else re.findall(r"\bCL_[A-Z_]+", found[1])
        if "CL_SUCCESS" in codes:
            succeeded.add(name.group(1))
        if any(code != "CL_SUCCESS" for code in codes):
            refused.add(name.group(1))
    entries = dispatch_entries(header) + extension_functions()
    problems = []
    for entry in entries:
        # By name, or through the pointer that was asked for by this name.
        if not re.search(r"\b" + entry + r"\(|\(\s*\"" + entry + r"\"", text):
            problems.append(f"{entry}: no test calls it")
            continue
        if entry in ONLY_CALLED:
            continue
        if entry not in succeeded and entry not in NO_SUCCESS:
            problems.append(f"{entry}: no check of its success, such as "
                            f'EXPECT_CL("{entry}.plain", CL_SUCCESS, ...)')
        if entry not in refused and entry not in NO_ERROR:
            problems.append(f"{entry}: no check of an error, such as "
                            f'EXPECT_CL("{entry}.null_...", CL_INVALID_..., ...)')
    if len(entries) < 100:
        problems.append(f"{header}: only {len(entries)} entries were found; is it cl_icd.h?")
    tree.finish(problems, f"{len(entries)} entry points have their checks")


if __name__ == "__main__":
    main()
