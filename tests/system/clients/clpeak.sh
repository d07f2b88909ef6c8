#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clpeak measures the device: every test it was asked for must print a number above zero, on the platform
# under test.
CLIENT=clpeak
. "$(dirname "$0")/common.sh"
platform_under_test

log=$WORK/log
clpeak -p 0 -d 0 --global-bandwidth --compute-sp --compute-intfast --transfer-bandwidth \
  --kernel-latency >"$log" 2>&1 </dev/null || fail "clpeak ended with $?" "$log"
grep -qxF "Platform: $PLATFORM" "$log" || fail "clpeak did not run on '$PLATFORM'" "$log"
for row in float float16 int int16 enqueueWriteBuffer enqueueReadBuffer 'enqueueMapBuffer(for read)' \
  'memcpy from mapped ptr' 'Kernel launch latency'; do
  awk -F: -v row="$row" '{ name = $1; gsub(/^ +| +$/, "", name) } name == row && $2 + 0 > 0 { ok = 1 }
                         END { exit !ok }' "$log" || fail "no number above zero for '$row'" "$log"
done
pass "$(grep -c ' : [0-9]' "$log") measurements on $PLATFORM"
