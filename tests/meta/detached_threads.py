#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No thread is detached after it was made in what is built for Windows, whose runtime loses others by it
(platform_win/threads.cc): StartThread and StartDetached (broker/os/threads.h) are for that."""
import re

import tree

DETACH = re.compile(r"\bpthread_detach\(|\.detach\(\)")
FOLDERS = ("broker/", "client_icd/", "daemon/", "deploy/", "platform_win/", "proto/")
# Programs and files that only Linux has.
LINUX = ("client_icd/libsluice/linux/", "client_icd/remote/network_helper_main.cc")


def main():
    problems, count = [], 0
    for path in tree.files(".cc", ".h"):
        name = tree.relative(path)
        if not name.startswith(FOLDERS) or name.startswith(LINUX):
            continue
        count += 1
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if DETACH.search(line.split("//")[0]):
                problems.append(f"{name}:{number}: detaches a thread: use StartDetached")
    tree.finish(problems, f"{count} files detach no thread")


if __name__ == "__main__":
    main()
