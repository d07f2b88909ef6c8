#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measurable rules of how this project writes, over all *.md files: a sentence has at most 35 words, and none begins
with What, Who, Whose, Whether or Where as its subject. A README has at most 150 lines, and no line over 120 columns.
    words.py [FILE...]

A sentence is prose between two full stops. Headings, tables and code are no sentences. Each item of a list stands for
itself: its sentences count, but never together with the line before it. Code between backticks, and a link, is one word.
Questions may begin with any word. A row of a table cannot be wrapped: it may have 240 columns.

Both rules on sentences hold for comments as well, of the product and of its tests, but not for their drawings. In
headers comments between /* and */ count too: the public ones have those."""
import pathlib
import re
import sys

import tree

WORDS, LINES, COLUMNS, ROW_COLUMNS = 35, 150, 120, 240
# "Where X is, do Y" is a clause before its main sentence. The other words open questions only: "What X is, is Y",
# "What X has, Y gets" and the label "What X has, by its name" all have a plainer form.
SUBJECT = re.compile(r"(?:What|Who|Whose|Whether|Where)\b")
CLAUSE = re.compile(r"Where\b[^,;:]*,")
DRAWN = re.compile(r"\S {2,}\S|->|\||\);")  # A diagram, a table or code in a comment.
WRITTEN_BY_PROGRAMS = "tests/bench/results/"


def blocks_of(text):
    """The paragraphs and items of lists, each as (its first line's number, its text)."""
    blocks, current, fenced, code = [], None, False, False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced, current = not fenced, None
            continue
        blank = not line.strip()
        if fenced or blank or re.match(r"\s*(#|\||<!--|={3,}|-{3,}|\d+\.?\s*$)", line):
            current, code = None, code and blank
            continue
        if re.match(r" {4}", line) and (current is None or code):
            code = True
            continue
        code = False
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+", line)
        if current is None or item:
            current = [number, line[item.end():] if item else line.strip()]
            blocks.append(current)
        else:
            current[1] += " " + line.strip()
    return blocks


def sentences_of(text):
    text = re.sub(r"``?[^`]+``?", "Code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", lambda found: "Link" if found.group(1) else "", text)
    text = re.sub(r"\b(e\.g|i\.e|etc|cf|vs|p|No)\.", r"\1", text)
    for sentence in re.split(r"(?<=[.!?])[)\"*_]*\s+", text):
        yield sentence.strip(" *_(\"")


def begins_with_clause(sentence):
    return SUBJECT.match(sentence) and not sentence.endswith("?") and not CLAUSE.match(sentence)


def check(path, problems):
    name, text = tree.relative(path), tree.read(path)
    count = 0
    for number, block in blocks_of(text):
        for sentence in sentences_of(block):
            count += 1
            words = re.findall(r"[^\s]*[A-Za-z0-9][^\s]*", sentence)
            shown = " ".join(words[:8])
            if len(words) > WORDS:
                problems.append(f"{name}:{number}: a sentence of {len(words)} words, at most {WORDS}: \"{shown} ...\"")
            if begins_with_clause(sentence):
                problems.append(f"{name}:{number}: a sentence's subject begins with {words[0]}: \"{shown} ...\"")
    lines = text.splitlines()
    if path.name == "README.md" and len(lines) > LINES:
        problems.append(f"{name}: {len(lines)} lines, at most {LINES}: give a room or a reference a file of its own")
    for number, line in enumerate(lines, 1):
        limit = ROW_COLUMNS if line.lstrip().startswith("|") else COLUMNS
        if len(line) > limit:
            problems.append(f"{name}:{number}: {len(line)} columns, at most {limit}")
    return count


def comments_of(text):
    """The paragraphs of comments of a C++ or proto file, each as (its first line's number, its text)."""
    current = None
    for number, line in enumerate(text.splitlines(), 1):
        alone = re.match(r"\s*//\s?(.*)", line)
        behind = None if alone else re.search(r"[;{},)]\s+//\s?(.*)", line)
        ends = alone and (not alone[1].strip() or alone[1].startswith("SPDX-"))
        if alone and current and not ends:
            current[1] += " " + alone[1].strip()
            continue
        if current:
            yield current
        found = None if ends else alone or behind
        current = [number, found[1].strip()] if found else None
    if current:
        yield current


def c_comments_of(text):
    """The same of comments between /* and */; the /*names*/ of unused arguments are none."""
    for found in re.finditer(r"/\*\s(.*?)\*/", text, re.DOTALL):
        first, current = text.count("\n", 0, found.start()) + 1, None
        for number, line in enumerate(found[1].splitlines(), first):
            line = re.sub(r"^\s*\* ?" if number > first else r"^", "", line)
            ends = not line.strip() or line.startswith("SPDX-")
            if current and not ends:
                current[1] += " " + line.strip()
                continue
            if current:
                yield current
            current = None if ends else [number, line.strip()]
        if current:
            yield current


def check_comments(path, problems):
    count, text = 0, tree.read(path)
    for number, block in [*comments_of(text), *(c_comments_of(text) if path.suffix == ".h" else [])]:
        drawn = DRAWN.search(block)
        for sentence in sentences_of(block):
            count += 1
            words = len(re.findall(r"[^\s]*[A-Za-z0-9][^\s]*", sentence))
            if words > WORDS and not drawn:
                problems.append(f"{tree.relative(path)}:{number}: a comment's sentence of {words} words, at most "
                                f"{WORDS}: \"{sentence[:60]} ...\"")
            if begins_with_clause(sentence):
                problems.append(f"{tree.relative(path)}:{number}: a comment's subject: \"{sentence[:60]} ...\"")
    return count


def main():
    problems = []
    paths = [pathlib.Path(name).resolve() for name in sys.argv[1:]] or tree.files(".md")
    count = sum(check(path, problems) for path in paths
                if not tree.relative(path).startswith(WRITTEN_BY_PROGRAMS))
    if not sys.argv[1:]:
        count += sum(check_comments(path, problems) for path in tree.files(".h", ".c", ".cc", ".inc", ".proto"))
    tree.finish(problems, f"{count} sentences are short and begin with their subject")


if __name__ == "__main__":
    main()
