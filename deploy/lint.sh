#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the form of the code: clang-format on every source file, and with --tidy clang-tidy on what a build tree compiles.
#   deploy/lint.sh [--fix] [--tidy [BUILD_DIR] | --tidy-since COMMIT [BUILD_DIR]]
# clang-tidy takes 10 to 30 s a file, more than the compiler: all files are for the nightly run, those changed
# since a commit for everybody's, of which SLUICE_TIDY_MOST may name how many at most.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=check tidy="" since=""
while (($#)); do
  case "$1" in
    --fix) mode=fix ;;
    --tidy) tidy=${2:-build}; [[ $# -gt 1 ]] && shift ;;
    --tidy-since) since=${2:?lint.sh: --tidy-since COMMIT}; tidy=${3:-build}; shift; [[ $# -gt 1 ]] && shift ;;
    *) echo "lint.sh: unknown option $1; see the head of this file" >&2; exit 2 ;;
  esac
  shift
done
command -v clang-format-14 >/dev/null || { echo "lint.sh: clang-format-14 is missing: apt-get install clang-format-14" >&2; exit 2; }
# Those that git tracks; where git lists none (a tarball, a checkout of somebody else's), all but build trees.
listed=$(git ls-files 2>/dev/null) && [[ -n $listed ]] ||
  listed=$(find . -type f -not -path './build*' -not -path './.*' -printf '%P\n')
source_files() { grep -E "$1" <<<"$listed" || true; }
mapfile -t files < <(source_files '\.(cc|h|c)$')
((${#files[@]})) || { echo "lint.sh: no source file in $PWD" >&2; exit 2; }
if [[ $mode == fix ]]; then
  clang-format-14 -i "${files[@]}"
else
  clang-format-14 --dry-run --Werror "${files[@]}"
  echo "clang-format: ${#files[@]} files are as they should be"
fi
if [[ -n $tidy ]]; then
  [[ -f $tidy/compile_commands.json ]] || { echo "lint.sh: $tidy is no build tree: cmake --preset release" >&2; exit 2; }
  ! grep -q '^CMAKE_UNITY_BUILD:.*=ON' "$tidy/CMakeCache.txt" ||
    { echo "lint.sh: $tidy compiles several files as one, and clang-tidy needs the commands of each: cmake --preset release -B build-tidy, and --tidy build-tidy" >&2; exit 2; }
  mapfile -t sources < <(source_files '^(proto|daemon|client_icd|broker|platform_linux|deploy)/.*\.cc$')
  if [[ -n $since ]]; then
    changed=$(git diff --name-only "$since")  # Not in <(): its failure would be taken for no change.
    mapfile -t sources < <(comm -12 <(printf '%s\n' "${sources[@]}" | sort) <(sort <<<"$changed"))
    if [[ -n ${SLUICE_TIDY_MOST:-} ]] && ((${#sources[@]} > SLUICE_TIDY_MOST)); then
      echo "clang-tidy: of ${#sources[@]} changed files the $SLUICE_TIDY_MOST that changed last"
      newest=$(git log --format= --name-only "$since..")
      mapfile -t sources < <(awk '!seen[$0]++' <<<"$newest" | grep -Fx -f <(printf '%s\n' "${sources[@]}") | awk -v most="$SLUICE_TIDY_MOST" 'NR <= most')
    fi
  fi
  # The build is GCC's: one of its warning flags is none of clang's.
  [[ ${#sources[@]} -eq 0 ]] || printf '%s\n' "${sources[@]}" |
    xargs -P "${SLUICE_TIDY_JOBS:-$(nproc)}" -n 4 clang-tidy-14 --quiet -p "$tidy" --extra-arg=-Wno-unknown-warning-option
  echo "clang-tidy: ${#sources[@]} files are as they should be"
fi
