#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the form of the code: clang-format on every source file, and with --tidy clang-tidy on what a build tree compiles.
#   deploy/lint.sh [--fix] [--tidy [BUILD_DIR]]
set -euo pipefail
cd "$(dirname "$0")/.."
mode=check tidy=""
while (($#)); do
  case "$1" in
    --fix) mode=fix ;;
    --tidy) tidy=${2:-build}; [[ $# -gt 1 ]] && shift ;;
    *) echo "lint.sh: unknown option $1; see the head of this file" >&2; exit 2 ;;
  esac
  shift
done
command -v clang-format-14 >/dev/null || { echo "lint.sh: clang-format-14 is missing: apt-get install clang-format-14" >&2; exit 2; }
mapfile -t files < <(git ls-files '*.cc' '*.h' '*.c')
if [[ $mode == fix ]]; then
  clang-format-14 -i "${files[@]}"
else
  clang-format-14 --dry-run --Werror "${files[@]}"
  echo "clang-format: ${#files[@]} files are as they should be"
fi
if [[ -n $tidy ]]; then
  [[ -f $tidy/compile_commands.json ]] || { echo "lint.sh: $tidy is no build tree: cmake --preset release" >&2; exit 2; }
  mapfile -t sources < <(git ls-files 'proto/*.cc' 'daemon/*.cc' 'client_icd/*.cc' 'broker/*.cc' 'platform_linux/*.cc' 'deploy/*.cc')
  printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-14 --quiet -p "$tidy"
fi
