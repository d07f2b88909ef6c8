#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver as the Khronos loader uses it, which Debian 12 does not have: loader_rules does the same steps,
# and loads and closes the driver twenty times in one process.
CLIENT=loader
. "$(dirname "$0")/common.sh"
[ "$KIND" != native ] || { echo "SKIP loader: it is about Sluice's driver"; exit 77; }
log=$WORK/log
"$LIMIT" 120 "$SLUICE_TEST_BIN_DIR/loader_rules" "$(cat "$OCL_ICD_VENDORS/sluice.icd")" 20 >"$log" 2>&1 ||
  fail "it ended with $?" "$log"
pass "$(tail -n 1 "$log")"
