#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy (.clang-tidy) on the product's files that changed since COMMIT: 10 to 30 s of processor time a file.
# By default COMMIT is where this branch left main; on main it is main's state before the last landing, and where the
# repository does not know that, the commit before this one. Of many files the 24 that changed last are checked
# (SLUICE_TIDY_MOST).
#   tests/tidy.sh [COMMIT]
# SLUICE_TIDY_BUILD names the build folder with the commands (build-tidy), of which only generated sources are built.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=${SLUICE_TIDY_BUILD:-build-tidy}
if ! command -v clang-tidy-14 >/dev/null; then
  echo "SKIP tidy: clang-tidy-14 is not installed (deploy/install-deps.sh --lint)"
  exit
fi
if ! git rev-parse --verify --quiet HEAD >/dev/null; then
  echo "SKIP tidy: no git repository tells what changed"
  exit
fi
commit() { git rev-parse --verify --quiet "$1^{commit}"; }
# A branch has left main somewhere. On main itself, the first parent of a merge is the state before, or main's own log
# knows it, which a fresh clone does not have.
states_before() {
  git merge-base HEAD origin/main
  git merge-base HEAD main
  ! commit HEAD^2 >/dev/null || commit HEAD^1
  commit 'origin/main@{1}'
  commit 'main@{1}'
}
since=${1:-}
if [ -z "$since" ]; then
  for state in $(states_before 2>/dev/null); do
    [ "$state" != "$(commit HEAD)" ] && git merge-base --is-ancestor "$state" HEAD && since=$state && break
  done
fi
if [ -z "$since" ]; then
  since=$(commit HEAD~1) || { echo "SKIP tidy: the history is too short to tell what changed"; exit; }
  echo "tidy: nothing here tells main's state before the last landing; the last commit's files are checked"
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
if cmake --preset release -B "$build" -DSLUICE_BUILD_TESTS=OFF -DCMAKE_UNITY_BUILD=OFF \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$log" 2>&1 &&
    cmake --build "$build" --target sluice_generated >>"$log" 2>&1 &&
    SLUICE_TIDY_MOST=${SLUICE_TIDY_MOST:-24} deploy/lint.sh --tidy-since "$since" "$build" >>"$log" 2>&1; then
  echo "PASS tidy: $(tail -n 1 "$log"), since $(git log -1 --format=%h "$since")"
else
  grep -E '(error|warning): ' "$log" | sort -u || tail -n 20 "$log"
  echo "FAIL tidy: see the lines above; tests/tidy.sh ${1:-} shows them again"
  exit 1
fi
