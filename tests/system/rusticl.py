#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Runs a command against a daemon whose driver is rusticl on llvmpipe, a second real driver beside PoCL: it has
two-channel and depth images, which PoCL 3.1 lacks. Or runs a program on that driver, without Sluice.

rusticl.py ROOT ring|network -- CMD...
rusticl.py ROOT native -- PROGRAM [ARGUMENTS]

ROOT is a folder with Debian 13, in which the daemon of this build tree runs (chroot; root needed):

  debootstrap --variant=minbase --include=mesa-opencl-icd trixie ROOT http://deb.debian.org/debian

For instance `tests/system/rusticl.py ROOT ring -- build/bin/sluice_sharing_test`. The libraries that this build needs
and Debian 13 has in other versions are copied to ROOT/opt/sluice-libraries; its C library stays its own.

All of the conformance suite, natively and on the ring, and the comparison of the codes:

  tests/conformance/run_all.py "tests/system/rusticl.py ROOT native -- build/bin/sluice_conformance" --codes=build/native.codes
  tests/system/rusticl.py ROOT ring -- tests/conformance/run_all.py build/bin/sluice_conformance --codes=build/ring.codes
  tests/conformance/compare_codes.py build/native.codes build/ring.codes
"""
import os
import pathlib
import shutil
import subprocess
import sys

import harness

# Of the C and C++ libraries the newer is right for both.
OWN = ("libc.so", "libm.so", "libstdc++", "libgcc_s", "ld-linux")
LIBRARIES = "opt/sluice-libraries"
# A mount namespace of its own: nothing is left mounted.
ENTER = """
root=$0
mount -t proc proc "$root/proc"
for shared in /dev /sys /tmp "$SLUICE_RUSTICL_SOURCE" "$SLUICE_RUSTICL_BUILD"; do
  mkdir -p "$root$shared"
  mount --rbind "$shared" "$root$shared"
done
export LD_LIBRARY_PATH=/opt/sluice-libraries
exec chroot "$root" "$@"
"""


def copy_libraries(root, programs):
    folder = root / LIBRARIES
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            path = line.split("=>")[1].split()[0] if "=>" in line else ""
            if path.startswith("/") and not pathlib.Path(path).name.startswith(OWN):
                shutil.copy(path, folder)


class RusticlDaemon(harness.Daemon):
    def _config_text(self, limits):
        text = super()._config_text(limits)
        return text.replace("[worker]\n", '[worker]\nenvironment = { RUSTICL_ENABLE = "llvmpipe" }\n')


def main(arguments):
    if len(arguments) < 5 or arguments[2] not in ("ring", "network", "native") or arguments[3] != "--":
        sys.exit(f"usage: {arguments[0]} ROOT ring|network|native -- CMD...")
    if os.geteuid() != 0:
        sys.exit("rusticl.py: only root can enter another root folder")
    root, kind, command = pathlib.Path(arguments[1]).resolve(), arguments[2], arguments[4:]
    vendors = root / "etc/OpenCL/vendors"
    if not (vendors / "rusticl.icd").exists():
        sys.exit(f"rusticl.py: no rusticl in {root}: make it with debootstrap, as `{arguments[0]}` begins with")
    (vendors / "mesa.icd").unlink(missing_ok=True)  # Clover, Mesa's older one.
    os.environ.update(SLUICE_RUSTICL_SOURCE=str(harness.ROOT), SLUICE_RUSTICL_BUILD=str(harness.build_dir()))
    if kind == "native":
        program = pathlib.Path(command[0]).resolve()
        copy_libraries(root, [program])
        os.environ.update(RUSTICL_ENABLE="llvmpipe", SLUICE_TEST_KIND="native", SLUICE_TEST_PLATFORM="rusticl")
        os.execvp("unshare", ["unshare", "--mount", "bash", "-c", ENTER, str(root), str(program), *command[1:]])
    copy_libraries(root, map(harness.built, ("sluiced", "sluice-worker", "sluice-gateway", "sluice-allocator")))
    with RusticlDaemon(kind, prefix=["unshare", "--mount", "bash", "-c", ENTER, str(root)]) as daemon:
        if kind == "network":
            # The harness leaves the port of a daemon that it did not start itself alone.
            harness.wait_until(lambda: harness.accepts("127.0.0.1", daemon.port), 30)
        return subprocess.call(command, env=dict(daemon.environment(), SLUICE_TEST_SOCKET_DIR=str(daemon.socket.parent)))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
