#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing in the tree knows the machine it was written on: no path of this checkout, no home
directory, no package mirror that this machine happens to use."""
import os
import pathlib
import re

import tree

# Taken apart so that this file does not contain what it looks for.
HOMES = re.compile(r"(?<![\w.$}])/" + r"(?:home/[a-z][\w-]*/|root/|Users/[A-Z])")
WORK = re.compile(r"(?<![\w.$}/])/" + r"work/(?:main|scratch|shared)\b")
PUBLIC_HOSTS = {"deb.debian.org", "security.debian.org", "pypi.org", "files.pythonhosted.org",
                "github.com"}
BINARY = {".png", ".jpg", ".gz", ".xz", ".zip", ".bin", ".spv", ".ico", ".tif", ".pfm"}


def mirror_hosts():
    """Hosts from this machine's package configuration that are not the public ones."""
    hosts = set()
    home = pathlib.Path.home()
    candidates = [pathlib.Path("/etc/apt/sources.list"), pathlib.Path("/etc/pip.conf"),
                  home / ".config/pip/pip.conf", home / ".pip/pip.conf"]
    candidates += list(pathlib.Path("/etc/apt/sources.list.d").glob("*"))
    texts = [os.environ.get("PIP_INDEX_URL", "")]
    for path in candidates:
        try:
            texts.append(path.read_text(errors="replace"))
        except OSError:
            continue
    for text in texts:
        hosts.update(re.findall(r"https?://(?:[^@/\s]*@)?([\w.-]+)", text))
    return {host for host in hosts - PUBLIC_HOSTS if "." in host and host != "127.0.0.1"}


def main():
    hosts, problems, count = mirror_hosts(), [], 0
    for path in tree.files():
        if path.suffix in BINARY or b"\0" in path.read_bytes()[:4096]:
            continue
        count += 1
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            where = f"{tree.relative(path)}:{number}"
            if str(tree.ROOT) + "/" in line or WORK.search(line):
                problems.append(f"{where}: names the folder of a checkout")
            elif HOMES.search(line):
                problems.append(f"{where}: names a home directory")
            elif any(host in line for host in hosts):
                problems.append(f"{where}: names a package mirror of this machine")
    tree.finish(problems, f"{count} text files name no path or mirror of this machine")


if __name__ == "__main__":
    main()
