#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rooms stay small: at most 40 files at a folder's own level, and no knot of more than 8 units that include each
other (a unit is x.h and x.cc)."""
import collections
import re

import tree

MOST_FILES = 40
MOST_UNITS = 8


def crowded():
    count = collections.Counter(tree.relative(path).rpartition("/")[0] for path in tree.files())
    return [f"{folder or '.'}: {files} files, at most {MOST_FILES}: give it rooms (ARCHITECTURE.md)"
            for folder, files in sorted(count.items()) if files > MOST_FILES]


def graph():
    """unit -> the units that it includes, product code only."""
    units, edges = set(), collections.defaultdict(set)
    texts = {}
    for path in tree.files(".h", ".cc", ".inc"):
        name = tree.relative(path)
        if not name.startswith("tests/"):
            texts[name] = tree.read(path)
            units.add(name.rpartition(".")[0])
    for name, text in texts.items():
        unit = name.rpartition(".")[0]
        for target in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
            other = target.rpartition(".")[0]
            if other in units and other != unit:
                edges[unit].add(other)
    return units, edges


def knots(units, edges):
    """The strongly connected components with more than one unit (Tarjan, without recursion)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(units):
        work = [(root, iter(sorted(edges[root])))] if root not in index else []
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
        while work:
            unit, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(edges[other]))))
                    break
                if other in on_stack:
                    low[unit] = min(low[unit], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[unit])
                if low[unit] == index[unit]:
                    knot = []
                    while not knot or knot[-1] != unit:
                        knot.append(stack.pop())
                        on_stack.discard(knot[-1])
                    if len(knot) > 1:
                        found.append(sorted(knot))
    return found


def main():
    units, edges = graph()
    found = knots(units, edges)
    problems = crowded()
    problems += [f"{len(knot)} units include each other, at most {MOST_UNITS}: {' '.join(knot)}"
                 for knot in found if len(knot) > MOST_UNITS]
    largest = max((len(knot) for knot in found), default=1)
    tree.finish(problems, f"{len(units)} units, the largest knot has {largest}; no folder has over {MOST_FILES} files")


if __name__ == "__main__":
    main()
