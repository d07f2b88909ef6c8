#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs what finds most under a sanitizer: unit, loopback and hostile tests, and the conformance suite through the ring
# and over the network, with the client, the worker, the gateway and the broker all instrumented.
#
#   tests/sanitizers/run.sh thread|address [GOOGLETEST_FILTER]
#
# after `cmake --preset tsan` or `asan-ubsan` and a build of it (SLUICE_BUILD_DIR names another tree). Logs go to
# sanitizer-logs/ in the tree, the daemons' among them. Exit 1 if a test failed or a sanitizer reported something.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
filter=${2:-*}
case ${1:-} in
  thread) build=${SLUICE_BUILD_DIR:-$root/build-tsan} ;;
  address) build=${SLUICE_BUILD_DIR:-$root/build-asan-ubsan} ;;
  *) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
. "$root/tests/sanitizers/options.sh"
export SLUICE_BUILD_DIR=$build
logs=$build/sanitizer-logs
rm -rf "$logs"
mkdir -p "$logs"
export SLUICE_TEST_LOG_DIR=$logs POCL_CACHE_DIR=$build/test-pocl-cache
mkdir -p "$POCL_CACHE_DIR"

failed=0
step() {
  local name=$1
  shift
  timeout -k 10 1500 "$@" >"$logs/$name.log" 2>&1 </dev/null || failed=1
  echo "$name: $(grep -E '^conformance:|\[  PASSED  \]|tests passed' "$logs/$name.log" | tail -n 1)"
  grep -E '^ +(failed|crashed): |^\[  FAILED  \] .* ms\)' "$logs/$name.log"
}
for program in proto_test client_icd_test daemon_test loopback_test broker_test gateway_test platform_linux_test \
  hostile_test broker_process_test gateway_process_test resource_process_test lying_allocator_test; do
  [ ! -x "$build/bin/$program" ] || step "$program" "$root/tests/to_the_end.sh" "$build/bin/$program"
done
for kind in ring network; do
  step "conformance-$kind" python3 "$root/tests/system/harness.py" with "$kind" -- \
    python3 "$root/tests/conformance/run_all.py" "$build/bin/sluice_conformance" --filter="$filter"
done
reports=$(sanitizer_reports "$logs")
echo "$reports reports; logs in $logs"
[ "$reports" -eq 0 ] && [ "$failed" -eq 0 ]
