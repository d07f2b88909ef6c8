#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Runs a command against a daemon whose driver is that of another system, in a folder: a second real driver beside this
machine's PoCL. Or runs a program on that driver, without Sluice.

driver_root.py ROOT ring|network -- CMD...
driver_root.py ROOT native -- PROGRAM [ARGUMENTS]

ROOT is a folder with Debian and one driver of DRIVERS, in which the daemon of this build tree runs (chroot; root
needed). For instance rusticl on llvmpipe, which has the two-channel and depth images that PoCL 3.1 lacks:

  tests/fresh/root.sh make trixie ROOT
  tests/fresh/root.sh run ROOT -- sh -c 'apt-get update &&
    apt-get install -y --no-install-recommends mesa-opencl-icd libvulkan1 mesa-vulkan-drivers'

and the same of unstable with pocl-opencl-icd, the newest PoCL. Vulkan is for resources in the daemon's Vulkan memory.

`tests/system/driver_root.py ROOT ring -- build/bin/sluice_sharing_test` is one command. The libraries that this build
needs and ROOT lacks are copied to ROOT/opt/sluice-libraries; what it has itself is newer, and right for both.

All of the conformance suite, natively and on the ring, and the comparison of the codes:

  tests/conformance/run_all.py "tests/system/driver_root.py ROOT native -- build/bin/sluice_conformance" --codes=build/native.codes
  tests/system/driver_root.py ROOT ring -- tests/conformance/run_all.py build/bin/sluice_conformance --codes=build/ring.codes
  tests/conformance/compare_codes.py build/native.codes build/ring.codes
"""
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys

import harness

# By the name of the file in /etc/OpenCL/vendors: what the platform's name has in it, and what the driver's environment
# must say.
DRIVERS = {
    "rusticl.icd": ("rusticl", {"RUSTICL_ENABLE": "llvmpipe"}),
    "pocl.icd": ("Portable", {}),
}
LIBRARIES = "opt/sluice-libraries"
# A mount namespace of its own: nothing is left mounted.
ENTER = """
root=$0
mount -t proc proc "$root/proc"
for shared in /dev /sys /tmp "$SLUICE_DRIVER_ROOT_SOURCE" "$SLUICE_DRIVER_ROOT_BUILD"; do
  mkdir -p "$root$shared"
  mount --rbind "$shared" "$root$shared"
done
export LD_LIBRARY_PATH=/opt/sluice-libraries
exec chroot "$root" "$@"
"""


def driver_of(root):
    """The root's driver: a row of DRIVERS."""
    vendors = root / "etc/OpenCL/vendors"
    (vendors / "mesa.icd").unlink(missing_ok=True)  # Clover, which comes with rusticl.
    found = [name for name in DRIVERS if (vendors / name).exists()]
    if len(found) != 1:
        sys.exit(f"driver_root.py: {root} has {len(found)} of the drivers {', '.join(DRIVERS)}, and one is needed: "
                 "make it as this script begins with")
    return DRIVERS[found[0]]


def copy_libraries(root, programs):
    folder = root / LIBRARIES
    folder.mkdir(parents=True, exist_ok=True)
    places = [root / place for place in ("usr/lib/x86_64-linux-gnu", "usr/lib64")]
    its_own = {path.name for place in places for path in place.glob("*.so*")}
    for program in programs:
        listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            path = pathlib.Path(line.split("=>")[1].split()[0] if "=>" in line else "")
            copy = folder / path.name
            # One that is there may be in use.
            if path.is_absolute() and path.name not in its_own and not (copy.exists() and filecmp.cmp(path, copy)):
                shutil.copy(path, copy)


class DriverDaemon(harness.Daemon):
    def __init__(self, kind, environment, **arguments):
        self.worker_environment = ", ".join(f'{name} = "{value}"' for name, value in environment.items())
        super().__init__(kind, **arguments)

    def _config_text(self, limits):
        text = super()._config_text(limits)
        if not self.worker_environment:
            return text
        return text.replace("[worker]\n", f"[worker]\nenvironment = {{ {self.worker_environment} }}\n")


def main(arguments):
    if len(arguments) < 5 or arguments[2] not in harness.KINDS or arguments[3] != "--":
        sys.exit(f"usage: {arguments[0]} ROOT ring|network|native -- CMD...")
    if os.geteuid() != 0:
        sys.exit("driver_root.py: only root can enter another root folder")
    root, kind, command = pathlib.Path(arguments[1]).resolve(), arguments[2], arguments[4:]
    platform, environment = driver_of(root)
    os.environ.update(SLUICE_DRIVER_ROOT_SOURCE=str(harness.ROOT), SLUICE_DRIVER_ROOT_BUILD=str(harness.build_dir()))
    programs = [harness.built(name) for name in ("sluiced", "sluice-worker", "sluice-gateway", "sluice-allocator")]
    if kind == "native":
        program = pathlib.Path(command[0]).resolve()
        copy_libraries(root, [*programs, program])
        os.environ.update(environment, SLUICE_TEST_KIND="native", SLUICE_TEST_PLATFORM=platform)
        os.execvp("unshare", ["unshare", "--mount", "bash", "-c", ENTER, str(root), str(program), *command[1:]])
    copy_libraries(root, programs)
    prefix = ["unshare", "--mount", "bash", "-c", ENTER, str(root)]
    with DriverDaemon(kind, environment, limits=os.environ.get("SLUICE_TEST_LIMITS", ""), prefix=prefix) as daemon:
        if kind == "network":
            # The harness leaves the port of a daemon that it did not start itself alone.
            harness.wait_until(lambda: harness.accepts("127.0.0.1", daemon.port), 30)
        environment = dict(daemon.environment(), SLUICE_TEST_SOCKET_DIR=str(daemon.socket.parent))
        return subprocess.call(command, env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
