#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the tests of the levels unit, loopback and hostile, with the daemon that they start, for a sanitizer and runs
# them. (sanitizers/run.sh runs the conformance suite as well.) clang compiles them in half of GCC's time. `address`
# compiles the whole product, as clang.sh does.
#   tests/sanitize.sh address|thread [BUILD_FOLDER]     by default build-sanitize-address and -thread
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
targets=(sluice_level_tests)
case ${1:-} in
  address) preset=asan-ubsan; targets+=(sluice_product) ;;
  thread) preset=tsan ;;
  *) sed -n '3,6s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
. tests/sanitizers/options.sh
if ! command -v "clang++-$clang" >/dev/null; then
  echo "SKIP sanitize $1: clang++-$clang is not installed (deploy/install-deps.sh --lint)"
  exit
fi
build=$(realpath -m "${2:-build-sanitize-$1}")
logs=$build/sanitizer-logs
rm -rf "$logs"
mkdir -p "$logs" || exit 1
fail() {
  echo "FAIL sanitize $1: $2; logs in $logs"
  exit 1
}
# The least that still says where; and of 24 files at once, each takes two thirds of what it takes of 8.
cmake --preset "$preset" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DSLUICE_BUILD_TESTS=ON \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 \
  "-DCMAKE_C_COMPILER=clang-$clang" "-DCMAKE_CXX_COMPILER=clang++-$clang" \
  "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1" "-DCMAKE_C_FLAGS_DEBUG=-O0 -g1" >"$logs/build.txt" 2>&1 &&
  cmake --build "$build" --target "${targets[@]}" -- -k 0 >>"$logs/build.txt" 2>&1 ||
  { grep -E '(error|warning): ' "$logs/build.txt" || tail -n 20 "$logs/build.txt"; fail "$1" "it does not build"; }
for_clang
export SLUICE_BUILD_DIR=$build SLUICE_TEST_LOG_DIR=$logs
failed=0
# Not those that install the product, which thread does not build. Most tests wait more than they compute.
ctest --test-dir "$build" -L '^(unit|loopback|hostile)$' -E '^(container_.*|installed_tree)$' -j "$(($(nproc) * 2))" \
  --output-on-failure >"$logs/ctest.txt" 2>&1 || failed=1
cp "$build/Testing/Temporary/LastTest.log" "$logs/tests.log"  # With what passing tests wrote.
grep -E '\*\*\*(Failed|Timeout|Exception|Not Run)|tests passed|did not run' "$logs/ctest.txt"
# The reason is on the line before.
awk '/^SKIP / { print "    " $0 } /^\[  SKIPPED \] .* ms\)$/ { print "    SKIP " $4 ": " before } { before = $0 }' "$logs/tests.log"
reports=$(sanitizer_reports "$logs")
if [ "$reports" -ne 0 ]; then
  first_reports "$logs"
  fail "$1" "$reports reports"
fi
if [ "$failed" -ne 0 ]; then
  sed -n '/: Failure$/,/^$/p' "$logs/tests.log" | head -n 60
  fail "$1" "tests failed"
fi
echo "PASS sanitize $1"
