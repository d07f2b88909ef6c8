#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a GoogleTest program, and fails also where it ends with 0 before its tests have: somebody's exit() in the middle of
# one, or a main that never came to them, is no passed test.
#
#   tests/to_the_end.sh PROGRAM [ARGUMENTS]
set -u
case " $* " in *" --gtest_list_tests "*) exec "$@" ;; esac
report=$(mktemp) || exit 2
trap 'rm -f "$report"' EXIT
"$@" --gtest_output=xml:"$report"  # GoogleTest writes it when all tests have ended.
code=$?
if [ "$code" -eq 0 ] && [ ! -s "$report" ]; then
  echo "FAIL $1: it ended with 0 before its tests had"
  code=1
fi
exit "$code"
