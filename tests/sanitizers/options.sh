# SPDX-License-Identifier: Apache-2.0
# How programs run that have a sanitizer in them; sourced, with the tree in $root.
# Reports of the thread sanitizer are counted at the end: a process that ends with a code of the sanitizer's is not what
# its test waits for; nor is one that ends with a code where a signal should kill it.
export TSAN_OPTIONS="suppressions=$root/tests/sanitizers/tsan.supp ignore_noninstrumented_modules=1 history_size=4 exitcode=0 handle_segv=0"
export ASAN_OPTIONS="detect_stack_use_after_return=1"
export LSAN_OPTIONS="suppressions=$root/tests/sanitizers/lsan.supp print_suppressions=0"
export UBSAN_OPTIONS="print_stacktrace=1"
unset OCL_ICD_VENDORS OCL_ICD_FILENAMES SLUICE_ENDPOINT SLUICE_TEST_KIND SLUICE_TEST_PLATFORM

# sanitizer_reports FOLDER: how many reports its logs have; names those that come most often on stderr.
sanitizer_reports() {
  find "$1" -name '*.log' -exec cat {} + | grep -E 'SUMMARY: |runtime error: ' | cut -c1-200 | sort | uniq -c |
    sort -rn | tee >(head -n 40 >&2) | awk '{ all += $1 } END { print all + 0 }'
}

# for_clang: programs that clang has built. Its runtime would start a process that names places, also for what is
# suppressed: a child and two descriptors more than a test counts, and seconds each. first_reports names them afterwards.
clang=14
! command -v clang++-19 >/dev/null || clang=19
for_clang() {
  local options
  for options in TSAN_OPTIONS ASAN_OPTIONS UBSAN_OPTIONS; do
    export "$options=${!options} symbolize=0 stack_trace_format='    #%n %p (%m+%o)'"
  done
}

# first_reports FOLDER: the whole of three reports that differ.
first_reports() {
  find "$1" -name '*.log' -exec cat {} + | awk '
    /runtime error: |(ERROR|WARNING): [A-Za-z]+Sanitizer/ && !inside { inside = 1; text = "" }
    inside && length(text) < 9000 { text = text substr($0, 1, 400) "\n" }
    /^SUMMARY: / && inside { inside = 0; if (!seen[$0]++ && ++shown <= 3) printf "%s\n", text }' |
    LLVM_SYMBOLIZER_PATH=/usr/lib/llvm-$clang/bin/llvm-symbolizer "asan_symbolize-$clang"
}
