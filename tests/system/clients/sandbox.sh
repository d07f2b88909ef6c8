#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A client inside bubblewrap: no OpenCL driver (no /etc/OpenCL, no PoCL library), no device nodes beyond
# bwrap's minimal /dev, no network, a read-only root, an empty /run and /tmp. It gets the directory of the
# socket, the ICD and its .icd file only, and must compute the right result. With the network transport the sandbox keeps
# the network instead, since that is then its only way out.
CLIENT=sandbox
. "$(dirname "$0")/common.sh"
platform_under_test
[ "$KIND" != native ] || { echo "SKIP sandbox: a native driver cannot work in it"; exit 77; }
refusal=$(bwrap --ro-bind / / --dev /dev --proc /proc true 2>&1) ||
  { echo "SKIP sandbox: bubblewrap cannot make a sandbox on this machine: $refusal"; exit 77; }

driver_dirs=()
for library in /usr/lib/*/libpocl.so* /usr/lib/*/pocl /usr/share/pocl; do
  [ ! -d "$library" ] || driver_dirs+=(--tmpfs "$library")
  # A link is followed by its target's own entry; a bind over it would fail.
  [ ! -f "$library" ] || [ -L "$library" ] || driver_dirs+=(--ro-bind /dev/null "$library")
done
[ "${#driver_dirs[@]}" -gt 0 ] || fail "found no PoCL library to hide"
network=()
[ "$KIND" != ring ] || network=(--unshare-net)
vendors=$OCL_ICD_VENDORS  # The folder of the .icd file.
icd=$(cat "$vendors/sluice.icd")
remote=${icd%/*}/libsluice_remote.so  # Beside the ICD, for the network.
in_sandbox() {
  bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --tmpfs /etc/OpenCL \
    "${driver_dirs[@]}" "${network[@]}" --unshare-ipc --unshare-pid --unshare-uts \
    --ro-bind "$SLUICE_TEST_SOCKET_DIR" "$SLUICE_TEST_SOCKET_DIR" --ro-bind "$vendors" "$vendors" \
    --ro-bind "$icd" "$icd" --ro-bind "$remote" "$remote" \
    --ro-bind "$1" /tmp/client --die-with-parent /tmp/client
}

log=$WORK/log
# The counter-check: without Sluice the sandbox offers no OpenCL at all.
(unset OCL_ICD_VENDORS SLUICE_ENDPOINT && in_sandbox "$SLUICE_TEST_BIN_DIR/list_platforms") \
  >"$log" 2>&1 </dev/null
grep -qx 'count 0' "$log" || fail "the sandbox still has a driver of its own" "$log"
timeout 60 bash -c "$(declare -f in_sandbox); $(declare -p driver_dirs network vendors icd remote); in_sandbox \"\$1\"" \
  - "$SLUICE_TEST_BIN_DIR/vector_add" >"$log" 2>&1 </dev/null || fail "the client ended with $?" "$log"
grep -q '^platform: Sluice (' "$log" || fail "the client did not run on Sluice" "$log"
grep -q 'every element right' "$log" || fail "the client's result is wrong" "$log"
pass "$(tail -n 1 "$log"), in bubblewrap without driver, devices$([ "$KIND" != ring ] || echo ', network')"
