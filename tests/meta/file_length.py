#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files stay short enough to read: headers and protos 300 lines, sources 600."""
import tree

LIMITS = {".h": 300, ".cc": 600, ".c": 600, ".proto": 300}

# Longer for a reason; the number is what they may have.
ALLOWED = {}  # path: (lines, "reason")


def main():
    problems, count = [], 0
    for path in tree.files(*LIMITS):
        name, lines = tree.relative(path), len(tree.read(path).splitlines())
        limit = ALLOWED.get(name, (LIMITS[path.suffix], ""))[0]
        count += 1
        if lines > limit:
            problems.append(f"{name}: {lines} lines, at most {limit}; split it, or name a reason "
                            "in tests/meta/file_length.py")
    for name in ALLOWED:
        if not (tree.ROOT / name).is_file():
            problems.append(f"{name}: in the allow-list of file_length.py, but not in the tree")
    tree.finish(problems, f"{count} files are within their limits")


if __name__ == "__main__":
    main()
