#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the tests of the levels unit, loopback and hostile, with the daemon that they start, for a sanitizer and runs
# them. (sanitizers/run.sh runs the conformance suite as well.)
#   tests/sanitize.sh address|thread [BUILD_FOLDER]     by default build-sanitize-address and -thread
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
case ${1:-} in
  address) preset=asan-ubsan ;;
  thread) preset=tsan ;;
  *) sed -n '3,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
build=$(realpath -m "${2:-build-sanitize-$1}")
logs=$build/sanitizer-logs
rm -rf "$logs"
mkdir -p "$logs" || exit 1
fail() {
  echo "FAIL sanitize $1: $2; logs in $logs"
  exit 1
}
# The least that still says where: the compiler takes half the time of -O2 -g.
cmake --preset "$preset" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=ON -DSLUICE_BUILD_TESTS=ON \
  "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" "-DCMAKE_C_FLAGS_DEBUG=-O1 -g1" >"$logs/build.txt" 2>&1 &&
  cmake --build "$build" --target sluice_level_tests >>"$logs/build.txt" 2>&1 ||
  { grep -E '(error|warning): ' "$logs/build.txt" || tail -n 20 "$logs/build.txt"; fail "$1" "it does not build"; }
. tests/sanitizers/options.sh
export SLUICE_BUILD_DIR=$build SLUICE_TEST_LOG_DIR=$logs
failed=0
# Those of containers install the product, which is not built here.
ctest --test-dir "$build" -L '^(unit|loopback|hostile)$' -E '^container_' -j "$(nproc)" --output-on-failure >"$logs/ctest.txt" 2>&1 || failed=1
grep -E '\*\*\*|tests passed|did not run' "$logs/ctest.txt"
cp "$build/Testing/Temporary/LastTest.log" "$logs/tests.log"  # With what passing tests wrote.
reports=$(sanitizer_reports "$logs")
[ "$reports" -eq 0 ] || fail "$1" "$reports reports"
[ "$failed" -eq 0 ] || fail "$1" "tests failed"
echo "PASS sanitize $1"
