#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Troubleshooting has each step of `sluicectl doctor` as a heading, and quotes no text that doctor does not say. Links
of guides lead to files. Guides and README name no key and no command of sluicectl that its man page lacks;
meta_manual compares those with the programs. README.md has fewer than 150 lines."""
import re
import tomllib

import tree

PROBLEMS = []
GUIDES = tree.ROOT / "deploy/guides"


def strings_of(path):
    """The string literals of a source, those that stand behind each other as one, each on a line."""
    text = re.sub(r'"\s*\n\s*"', "", tree.read(path))
    return re.sub(r"\\(.)", r"\1", "\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)))


def check_troubleshooting():
    text = tree.read(GUIDES / "troubleshooting.md")
    sources = sorted((tree.ROOT / "deploy/sluicectl").rglob("*doctor*.cc"))
    steps = set()
    for path in sources:
        source = tree.read(path)
        steps |= set(re.findall(r'\b(?:Ok|Failed|Skipped|Warning)\(\s*"([^"]+)"', source))
        steps |= set(re.findall(r'kName\[\] = "([^"]+)"', source))
    part = re.search(r"^## What doctor says\n(.*?)^## ", text, re.S | re.M).group(1)
    headings = set(re.findall(r"^### `([^`]+)`$", part, re.M))
    for name in sorted(steps - headings):
        PROBLEMS.append(f"troubleshooting.md: doctor's step \"{name}\" has no heading")
    for name in sorted(headings - steps):
        PROBLEMS.append(f"troubleshooting.md: doctor has no step \"{name}\"")
    said = "\n".join(strings_of(path) for path in sources)
    for bullet in re.findall(r"^- ((?:`[^`]+`(?:, )?)+):", part, re.M):
        for quoted in re.findall(r"`([^`]+)`", bullet):
            for piece in quoted.split("…"):
                if piece.strip() not in said:
                    PROBLEMS.append(f"troubleshooting.md: doctor does not say \"{piece.strip()}\"")


def check_links(path, text):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target and not (path.parent / target).exists():
            PROBLEMS.append(f"{tree.relative(path)}: there is no {target}")


def code_of(text):
    """What stands in a Markdown text as code: fenced, indented, or between backticks."""
    fenced = re.findall(r"^```(?!toml)[^\n]*\n(.*?)^```", text, re.S | re.M)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return "\n".join([*fenced, *re.findall(r"^ {4}(.*)$", rest, re.M), *re.findall(r"`([^`\n]+)`", rest)])


def check_words(path, text, keys, commands):
    where = tree.relative(path)
    for name in re.findall(r"\bsluicectl (?:--json )?([a-z][a-z-]+)", code_of(text)):
        if name not in commands:
            PROBLEMS.append(f"{where}: sluicectl has no command {name}")
    for block in re.findall(r"^```toml[^\n]*\n(.*?)^```", text, re.S | re.M):
        for section, tables in tomllib.loads(block).items():
            for table in tables if isinstance(tables, list) else [tables]:
                for key in set(table) - keys.get(section, set()):
                    PROBLEMS.append(f"{where}: there is no key {key} in [{section}]")


def check_windows():
    """What has no meaning on Windows is in its guide: the configuration's checks there name the keys."""
    text = tree.read(GUIDES / "windows.md")
    keys = set(re.findall(r'key == "(\w+)"', tree.read(tree.ROOT / "platform_win/broker/config_keys.cc")))
    keys |= set(re.findall(r'UnimplementedError\("(\w+): ', tree.read(tree.ROOT / "platform_win/gateway/front.cc")))
    refused = re.search(r" are refused, .*?(?=\n\n[^-])", text, re.S).group(0)  # With its list.
    for key in sorted(key for key in keys if f"`{key}`" not in refused and f"`[{key}]`" not in refused):
        PROBLEMS.append(f"windows.md: {key} is refused on Windows, and is not among what is")


def main():
    check_troubleshooting()
    check_windows()
    manual = tree.read(tree.ROOT / "deploy/man/sluiced.toml.5.scd")
    keys = {re.sub(r"\W", "", name): set(re.findall(r"^\*(\w+)\*$", body, re.M))
            for name, body in re.findall(r"^# (\[+\w+\]+)\n(.*?)(?=^# |\Z)", manual, re.S | re.M)}
    commands = set(re.findall(r"^## ([a-z-]+)", tree.read(tree.ROOT / "deploy/man/sluicectl.1.scd"), re.M))
    pages = [*sorted(GUIDES.glob("*.md")),
             *(tree.ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md"))]
    for path in pages:
        text = tree.read(path)
        check_links(path, text)
        check_words(path, text, keys, commands | {"install", "uninstall", "and"})  # Windows' two; a sentence in code.
    lines = len(tree.read(tree.ROOT / "README.md").splitlines())
    if lines >= 150:
        PROBLEMS.append(f"README.md has {lines} lines: move what is for some readers only into deploy/guides")
    tree.finish(PROBLEMS, "the guides name what is there")


if __name__ == "__main__":
    main()
