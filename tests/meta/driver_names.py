#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Product code asks for facts and names no driver: two tables do, and files where the name is an interface."""
import re

import tree

NAMES = re.compile(r"pocl|rusticl|nvidia|oclgrind|llvmpipe|\bmesa|\bintel\b|\bamd\b|0x10de", re.I)
FOLDERS = ("broker/", "client_icd/", "daemon/", "deploy/", "platform_linux/", "platform_win/", "proto/")
MAY = {
    "daemon/worker/driver_quirks.h": "the worker's table",
    "client_icd/sharing/gl/gl_quirks.h": "the client's table, of OpenGL",
    "broker/probe.cc": "advice: which package to install",
    "daemon/worker/driver.cc": "advice: which package to install",
    "deploy/sluicectl/doctor.cc": "advice: which package to install",
    "platform_linux/helpers/external_memory.cc": "advice: which package to install",
    "platform_linux/helpers/call_lists.h": "what each driver asks of the kernel",
    "platform_linux/helpers/driver_files.cc": "files and device nodes of drivers",
    "broker/children/worker_launcher.cc": "environment variables of drivers",
    "platform_linux/worker/worker_files.cc": "environment variables of drivers, and their caches",
    "deploy/sluicectl/private_daemon.cc": "environment variables of drivers, and their caches",
}


def main():
    problems, named = [], set()
    for path in tree.files(".h", ".cc", ".inc", ".proto"):
        name = tree.relative(path)
        if not name.startswith(FOLDERS):
            continue
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            found = NAMES.search(line)
            if found and name in MAY:
                named.add(name)
            elif found:
                problems.append(f'{name}:{number}: names "{found.group()}": ask a fact of {" or ".join(list(MAY)[:2])}')
    problems += [f"{name}: may name drivers ({MAY[name]}) and names none: take it off the list of driver_names.py"
                 for name in sorted(MAY.keys() - named)]
    tree.finish(problems, f"only {len(MAY)} files of the product name a driver")


main()
