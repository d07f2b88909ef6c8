#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh checkout on Debian 12 or 13 to a real OpenCL program running through Sluice, in one command.
#
#   deploy/quickstart.sh
#
# Installs what is missing, builds into build/, starts sluiced with PoCL on the CPU as its device, runs
# programs whose only OpenCL driver is libsluice_icd.so, says what happened, and stops what it started.
# SLUICE_BUILD_DIR names another build tree.
set -euo pipefail
case ${1:-} in
  '') ;;
  -h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "quickstart.sh: takes no arguments, not '$1' (--help says what it does)" >&2; exit 2 ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
build=${SLUICE_BUILD_DIR:-$root/build}

step() { printf '\n== %s\n' "$*"; }
fail() {
  printf '\nquickstart.sh: %s\n' "$*" >&2
  exit 1
}

step "1. Packages that are missing"
"$root/deploy/install-deps.sh" --build || fail "cannot install the packages that are missing; what failed is above.
Run me as root, or let an administrator run this once, after which I need no rights:
  $root/deploy/install-deps.sh --build"

{ mkdir -p "$build" && [ -w "$build" ]; } || fail "cannot write to $build, where the build goes.
Name a folder that can be written: SLUICE_BUILD_DIR=\$HOME/sluice-build $0"

step "2. Build (the first time takes some minutes)"
# On a small machine one compiler per 1.5 GiB of memory, or the linker starves them.
jobs=$(awk -v n="$(nproc)" '/MemTotal/ { m = int($2 / 1572864); print (m < 1 ? 1 : m < n ? m : n) }' /proc/meminfo)
# Several files at once take half the time where all are to be compiled; an older tree stays as it was made.
unity=()
[ -e "$build/CMakeCache.txt" ] || unity=(-DCMAKE_UNITY_BUILD=ON)
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSLUICE_BUILD_TESTS=OFF \
  -DSLUICE_WERROR="${SLUICE_WERROR:-OFF}" "${unity[@]}"
cmake --build "$build" -j "$jobs"
echo "built sluiced, sluicectl and libsluice_icd.so in $build"

run=$(mktemp -d)
socket=$run/sluice/clients/broker.sock
daemon=
same_user=()
finish() {
  if [ -n "$daemon" ] && kill -0 "$daemon" 2>/dev/null; then
    kill "$daemon"
    wait "$daemon" || true
  fi
  rm -rf "$run"
}
trap finish EXIT

step "3. Start the daemon"
# The daemon uses the machine's own drivers, also if this shell was already pointed at Sluice.
# Its socket's folder is closed to others, and a checkout may be: root's workers stay root here.
[ "$(id -u)" -ne 0 ] || same_user=(--worker-user root)
env -u OCL_ICD_VENDORS -u OCL_ICD_FILENAMES -u SLUICE_ENDPOINT \
  "$build/bin/sluiced" "${same_user[@]}" --socket "$socket" \
  >"$run/sluiced.log" 2>&1 </dev/null &
daemon=$!
for _ in $(seq 300); do
  [ ! -S "$socket" ] || break
  kill -0 "$daemon" 2>/dev/null || break
  sleep 0.1
done
[ -S "$socket" ] || {
  cat "$run/sluiced.log" >&2
  fail "sluiced did not start; its log is above"
}
echo "sluiced runs as process $daemon; applications reach it through $socket"

step "4. Programs that see no driver but libsluice_icd.so"
mkdir "$run/vendors"
find "$build/lib" -name libsluice_icd.so >"$run/vendors/sluice.icd"
export OCL_ICD_VENDORS=$run/vendors/ SLUICE_ENDPOINT=unix:$socket
echo "\$ clinfo -l"
clinfo -l | tee "$run/clinfo"
grep -q 'Platform #0: Sluice (' "$run/clinfo" || fail "clinfo does not see Sluice"
echo
cc -O2 -o "$run/vector_add" "$root/tests/system/programs/vector_add.c" -lOpenCL
echo "\$ vector_add        (tests/system/programs/vector_add.c, linked to libOpenCL only)"
SLUICE_TEST_KIND=ring "$run/vector_add"

step "What happened"
cat <<EOF
clinfo and vector_add are ordinary OpenCL programs. They loaded Sluice's driver, which has no device code:
it sent their calls to sluiced, whose worker process ran them on the CPU with PoCL, and the results came back.

Point any OpenCL program at a running sluiced in the same way:
  $build/bin/sluicectl run --private -- PROGRAM...     with a daemon for the duration of the program
  OCL_ICD_VENDORS=DIR/ SLUICE_ENDPOINT=unix:SOCKET PROGRAM...
README.md says how to install it for good.
EOF
