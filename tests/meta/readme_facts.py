#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the READMEs and the example configuration say, where the code can be asked: the broker's messages and
their sizes, the worker's flags, the client's variables, the keys of sluiced.toml, and the files of the tables."""
import re

import tree

PROBLEMS = []


def text(name):
    return tree.read(tree.ROOT / name)


def differ(what, documented, real):
    for name in sorted(documented - real):
        PROBLEMS.append(f"{what}: {name} is documented and is not there")
    for name in sorted(real - documented):
        PROBLEMS.append(f"{what}: {name} is there and is not documented")


def broker_messages():
    documented = dict(re.findall(r"^\| ([A-Z]\w+) \| (\d+) \|", text("proto/broker_messages.md"), re.M))
    real = {}
    for path in (tree.ROOT / "proto").glob("*_messages.h"):
        if path.name != "handle_messages.h":
            real.update(re.findall(r"static_assert\(sizeof\((\w+)\) == (\d+)", tree.read(path)))
    for part in ("MessageHeader", "Quota"):
        real.pop(part, None)
    differ("proto/broker_messages.md", {f"{n} of {s} bytes" for n, s in documented.items()},
           {f"{n} of {s} bytes" for n, s in real.items()})


def worker_flags():
    block = re.search(r"## What a worker is started with\n(.*?)\n## ",
                      text("broker/children/README.md"), re.S).group(1)
    differ("broker/children/README.md, worker's flags", set(re.findall(r"--[a-z][a-z-]*", block)),
           set(re.findall(r'"(--[a-z]+[a-z-]*[a-z])"', text("daemon/worker/worker_options.cc"))))


def client_variables():
    documented = set(re.findall(r"^\| `(SLUICE_[A-Z_]+)`", text("client_icd/README.md"), re.M))
    documented |= set(re.findall(r"`(SLUICE_[A-Z_]+)(?:=[^`]*)?`", text("client_icd/README.md")))
    documented |= set(re.findall(r"`?(SLUICE_[A-Z_]+)`?", text("daemon/gateway/README.md")))
    real = set()
    for path in tree.files(".cc"):
        if tree.relative(path).startswith("client_icd/"):
            real |= set(re.findall(r'(?:getenv|Variable|variable|get)\(\s*"(SLUICE_[A-Z_]+)"', tree.read(path)))
    for name in sorted(real - documented):
        PROBLEMS.append(f"client_icd/README.md: {name} is read and not documented")


def configuration_keys():
    documented = set(re.findall(r"^#?([a-z_]+) =", text("deploy/linux/sluiced.toml"), re.M))
    readers = text("broker/config/config.cc") + text("broker/config/sharing_sections.cc")
    real = set(re.findall(
        r'section\.(?:Parsed|String|Boolean|Integer|Count|Bytes|StringOrList)\(\s*"([a-z_]+)"',
        readers))
    real |= set(re.findall(
        r'(?:socket_path|ReadOptional|devices\.StringOrList|access\.\w+)\(\s*(?:&section, )?"([a-z_]+)"',
        readers))
    differ("deploy/linux/sluiced.toml", documented, real)


def tables_name_files():
    """`name.*` and `name.cc` in the first column of a README's table exist beside it."""
    for path in tree.files(".md"):
        folder = path.parent
        for row in re.findall(r"^\| ((?:`[^`|]+`(?:, )?)+) \|", tree.read(path), re.M):
            for name in re.findall(r"`([^`]+)`", row):
                if not re.fullmatch(r"[\w/]+\.(\*|h|cc|inc|proto|py|sh|map)", name):
                    continue
                if not list(folder.glob(name)) and not list(folder.rglob(name)):
                    PROBLEMS.append(f"{tree.relative(path)}: there is no {name}")


def main():
    broker_messages()
    worker_flags()
    client_variables()
    configuration_keys()
    tables_name_files()
    tree.finish(PROBLEMS, "the READMEs say what is there")


if __name__ == "__main__":
    main()
