#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""A GL application goes each way that its bytes can go, and falls back with a reason when a way is not there.

The contents of every round are verified by the application itself (programs/gl_ways.cc), which also says which way
each object went. `sluicectl sessions` says the same. Usage: sharing_ways.py
"""
import json
import subprocess

import harness

SECONDS = 120
report = harness.Report("sharing_ways")
ROUNDS = ["--side=512", "--rounds=5", "--warm=1"]


def gl_ways(daemon, ways, *arguments, **variables):
    """(exit code, everything it printed), with SLUICE_SHARING naming the ways that may be taken."""
    env = dict(daemon.environment(), SLUICE_SHARING=ways, SLUICE_LOG="info", **variables)
    done = subprocess.run([str(harness.built("gl_ways")), *ROUNDS, *arguments], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
    return done.returncode, done.stdout


def passes(daemon, name, ways, taken, *reasons, **variables):
    """The objects go by `taken`, and the log says what was wrong with the ways before it."""
    code, output = gl_ways(daemon, ways, f"--way={taken}", **variables)
    report.check(code == 0 and "gl_ways: PASS" in output, f"{name}: right contents by {taken}", output)
    for reason in reasons:
        report.check(reason in output, f"{name}: the log says '{reason}'", output)


def refused(daemon, name, ways, reason):
    """No object is made, since no other way may be taken."""
    code, output = gl_ways(daemon, ways)
    report.check(code != 0 and "clCreateFromGLTexture: -4" in output, f"{name}: CL_MEM_OBJECT_ALLOCATION_FAILURE",
                 output)
    report.check(reason in output, f"{name}: the log says '{reason}'", output)


# An operator sees by which way the objects of a session go, while they are there.
def operator_sees(daemon, way):
    env = dict(daemon.environment(), SLUICE_SHARING=way)
    program = subprocess.Popen([str(harness.built("gl_ways")), *ROUNDS, "--hold"], env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lines = iter(program.stdout.readline, "")
    held = any(line.strip() == "holding" for line in lines)
    listed = subprocess.run([str(harness.built("sluicectl")), "sessions", "--json", "--admin-socket",
                             str(daemon.admin_socket)], capture_output=True, text=True, timeout=SECONDS)
    sessions = json.loads(listed.stdout)["sessions"] if listed.returncode == 0 else []
    counts = sessions[0]["shared_by"] if sessions else listed.stderr
    wanted = {name: int(name == way) for name in ("import", "shadow", "staging")}
    report.check(held and counts == wanted, f"sluicectl sessions counts the object that goes by {way}", counts)
    order = sessions[0]["shadows_ordered_by"] if sessions else {}
    report.check(order == {"semaphores": 0, "keyed mutex": 0, "host": int(way == "shadow")},
                 f"and that nothing but the host orders it (llvmpipe has no semaphores), by {way}", order)
    program.communicate(timeout=SECONDS)
    report.check(program.returncode == 0, f"and the application by {way} ends well", program.returncode)


def main():
    with harness.Daemon("ring") as daemon:
        for way in ("shadow", "staging"):
            passes(daemon, f"ring, {way} only", way, way)
            operator_sees(daemon, way)
        refused(daemon, "ring, import only", "import", "by import: not possible: ")
        passes(daemon, "ring, import or shadow", "import,shadow", "shadow", "by import: not possible: ",
               "shadow is copied by OpenGL's transfers", "shadow has no semaphores: ")
        passes(daemon, "ring, any way", "", "staging", "by import: not possible: ",
               "by shadow: not worth it: the device works in the host's memory")
        passes(daemon, "ring, copies by shaders", "shadow,shader", "shadow", "shadow is copied by shaders")
        # Mesa's other software renderer imports no memory.
        passes(daemon, "ring, a GL that imports nothing", "shadow,staging", "staging",
               "by shadow: not possible: the native API opens no memory of another process",
               GALLIUM_DRIVER="softpipe")
    with harness.Daemon("ring").start_with({"VK_ICD_FILENAMES": "/nonexistent",
                                            "VK_DRIVER_FILES": "/nonexistent"}) as daemon:
        passes(daemon, "ring, a worker without Vulkan", "shadow,staging", "staging",
               "by shadow: not possible: the worker has no shared device memory: ")
        refused(daemon, "ring, a worker without Vulkan, shadow only", "shadow", "no shared device memory")
    with harness.Daemon("network") as daemon:
        passes(daemon, "network", "import,shadow,staging", "staging", "by import: not possible: ",
               "by shadow: not possible: the daemon is on another host")


main()
report.exit()
