#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the product with clang, whose -Wthread-safety compares every lock with what it guards; each warning is an
# error. Some 64 files of 3 to 6 s of processor time each, which the compiler cache keeps.
#   tests/clang.sh [BUILD_FOLDER]      by default build-clang
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=${1:-build-clang}
version=14
! command -v clang++-19 >/dev/null || version=19
if ! command -v "clang++-$version" >/dev/null; then
  echo "SKIP clang: clang++-14 is not installed (deploy/install-deps.sh --lint)"
  exit
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
if cmake --preset clang -B "$build" -DSLUICE_BUILD_TESTS=OFF -DCMAKE_C_COMPILER="clang-$version" \
    -DCMAKE_CXX_COMPILER="clang++-$version" >"$log" 2>&1 && cmake --build "$build" -- -k 0 >>"$log" 2>&1; then
  echo "PASS clang $version compiles the product without a warning"
else
  grep -E '(error|warning): ' "$log" || tail -n 20 "$log"
  echo "FAIL clang: see the lines above; cmake --build $build shows them again"
  exit 1
fi
