#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program of a build tree in a container of its own (bubblewrap: user, mount, PID, IPC and network namespaces),
# which has the system's /usr, the folder of the clients' socket, Sluice's libraries and an .icd file, and nothing else:
# no device node, no network, no other OpenCL driver.
#
#   tests/system/contained.sh PROGRAM [ARGUMENT ...]
#
# SLUICE_BUILD_DIR names the build tree (default: build/ of this checkout), SLUICE_ENDPOINT the daemon, by one unix:PATH
# (default: as for every program).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${SLUICE_BUILD_DIR:-$root/build}
program=$build/tests/system/${1:?usage: contained.sh PROGRAM [ARGUMENT ...]}
shift
[ -x "$program" ] || { echo "contained.sh: no $program: build with -DSLUICE_BUILD_TESTS=ON" >&2; exit 2; }
socket=${XDG_RUNTIME_DIR:-/run}/sluice/clients/broker.sock
[ -S "$socket" ] || socket=/run/sluice/clients/broker.sock
[ -z "${SLUICE_ENDPOINT:-}" ] || socket=${SLUICE_ENDPOINT#unix:}
[ -S "$socket" ] || {
  echo "contained.sh: no daemon's socket at $socket, and no other endpoint is reached from inside: start a daemon," \
    "or sluicectl run --private -- ..." >&2
  exit 2
}
exec bwrap --unshare-all --die-with-parent --new-session --clearenv \
  --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin \
  --proc /proc --dev /dev --tmpfs /tmp \
  --ro-bind "$(dirname "$socket")" /run/sluice/clients \
  --setenv SLUICE_ENDPOINT "unix:/run/sluice/clients/$(basename "$socket")" \
  --ro-bind "$build/lib" /opt/sluice/lib --setenv LD_LIBRARY_PATH /opt/sluice/lib \
  --ro-bind-data 9 /etc/OpenCL/vendors/sluice.icd \
  --ro-bind "$program" /opt/program /opt/program "$@" 9<<<"/opt/sluice/lib/libsluice_icd.so"
