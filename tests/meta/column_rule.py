#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command stands once in each place of its column: a message in proto/commands, a field of
Command, a row in commands.inc, one handler in the daemon, and at least one use in the client."""
import collections
import re

import tree


def sources(folder, *suffixes):
    return {tree.relative(path): tree.read(path) for path in tree.files(*suffixes)
            if tree.relative(path).startswith(folder + "/")}


def command_fields():
    """message -> field of the oneof in Command."""
    text = re.sub(r"//[^\n]*", "", tree.read(tree.ROOT / "proto/command.proto"))
    body = text[text.index("message Command"):]
    body = body[body.index("oneof body"):]
    body = body[:body.index("}")]
    return dict(re.findall(r"^\s*(\w+)\s+(\w+)\s*=\s*\d+;", body, re.M))


def main():
    rows = re.findall(r"^COMMAND\((\w+),\s*(\w+),\s*(\w+)\)",
                      tree.read(tree.ROOT / "proto/commands.inc"), re.M)
    fields = command_fields()
    protos = "\n".join(sources("proto", ".proto").values())
    handlers = sources("daemon/worker/handlers", ".cc")
    client = "\n".join(sources("client_icd", ".cc", ".h").values())
    problems = []
    for message, count in collections.Counter(row[0] for row in rows).items():
        if count > 1:
            problems.append(f"{message}: {count} rows in commands.inc")
    for message, field, reply in rows:
        if fields.get(message) != field:
            problems.append(f"{message}: the row says {field}, Command's oneof says "
                            f"{fields.get(message)}")
        if not re.search(r"^message " + message + r"\b", protos, re.M):
            problems.append(f"{message}: no message in proto/")
        if reply not in ("Answer", "Deferred", "None"):
            problems.append(f"{message}: {reply} is no reply mode")
        homes = [name for name, text in handlers.items()
                 if re.search(rf"^\S.*\bHandle{message}\(", text, re.M)]
        if len(homes) != 1:
            problems.append(f"{message}: Handle{message} should be in one file of daemon/worker/handlers, "
                            f"is in {homes}")
        if not re.search(rf"\b(mutable_{field}|set_{field}|k{message})\b|pb::{message}\b", client):
            problems.append(f"{message}: nothing in client_icd sends it")
    for message in fields.keys() - {row[0] for row in rows}:
        problems.append(f"{message}: in Command's oneof, but without a row in commands.inc")
    tree.finish(problems, f"{len(rows)} commands are whole in their columns")


if __name__ == "__main__":
    main()
