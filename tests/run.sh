#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Sluice and runs its tests.
#
#   tests/run.sh [--lint] [--unit] [--conformance] [--sharing] [--system] [--failure] [--bench]
#                [--windows] [--quick] [--no-build]
#
#   --lint         clang-format on every source file; what the configure step refuses
#   --unit         ctest: unit, loopback, hostile and meta tests
#   --conformance  the OpenCL suite on the native driver, the ring and the network
#   --sharing      objects shared with OpenGL (EGL and, under Xvfb, GLX) on the ring and the network; each way
#   --system       real clients from Debian on the ring and the network
#   --failure      kills, crowds, leaks, isolation
#   --bench        the benchmark's smoke run (numbers are never judged)
#   --windows      the Windows build under Wine, where mingw-w64 and its libraries are there (deploy/windows)
#   --quick        a few minutes: unit tests, conformance and three clients on the ring
#   --no-build     test what is built
#
# Without a part, all of them. SLUICE_BUILD_DIR names the build tree (default: build/ of this checkout);
# logs go to test-logs/ in it. SLUICE_BUILD_OLD_VERSIONS=1 builds the versions before this one where they are not there,
# and holds them against it (compatibility/). The last line is `N passed, N failed, N skipped`; exit 1 when something
# failed. Each step has a time limit, so that one hang cannot eat the run: four times
# as long on a busy machine (limit.py).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=${SLUICE_BUILD_DIR:-$root/build}
export SLUICE_BUILD_DIR=$build
parts=
quick=no
do_build=yes
for option in "$@"; do
  case $option in
    --lint | --unit | --conformance | --sharing | --system | --failure | --bench | --windows) parts+=" ${option#--}" ;;
    --quick) quick=yes ;;
    --no-build) do_build=no ;;
    -h | --help) sed -n '3,23s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "run.sh: unknown option '$option'" >&2; exit 2 ;;
  esac
done
if [ -z "$parts" ]; then
  parts="lint unit conformance sharing system failure windows bench"
  [ "$quick" = no ] || parts="lint unit conformance sharing system"
fi
part() { [[ " $parts " == *" $1 "* ]]; }
kinds=(ring network)
[ "$quick" = no ] || kinds=(ring)

logs=$build/test-logs
mkdir -p "$logs"
rm -f "$logs"/*.log "$logs"/*.report "$logs"/*.xml "$logs"/*.codes
export SLUICE_TEST_LOG_DIR=$logs
# One kernel cache for the whole run, natively and in the workers: PoCL's compiler is the slowest part.
export POCL_CACHE_DIR=$build/test-pocl-cache
mkdir -p "$POCL_CACHE_DIR"
# The caller's own OpenCL set-up must not decide what is tested.
unset OCL_ICD_VENDORS OCL_ICD_FILENAMES SLUICE_ENDPOINT SLUICE_TEST_KIND SLUICE_TEST_PLATFORM

# What each step passed, failed and skipped: a line of a file, since some steps run side by side.
counts=$logs/counts
: >"$counts"

# What this shell waits for. It ends with the script: limit.py puts its command out of reach of the terminal's Ctrl-C.
running=()
end_with_script() { trap 'trap - INT TERM; kill "${running[@]}" 2>/dev/null; wait; exit 130' INT TERM; }
end_with_script

# limited SECONDS COMMAND...: the command, ended after that time (124, or 137 if it had to be killed).
limited() {
  /usr/bin/python3 -B "$root/tests/limit.py" "$@" </dev/null &
  running=($!)
  wait $!
}

# add NAME SECONDS PASSED FAILED SKIPPED: prints one step's result and adds it up.
add() {
  echo "$3 $4 $5" >>"$counts"
  printf '%-28s %5d passed %4d failed %4d skipped  (%d s)\n' "$1" "$3" "$4" "$5" "$2"
}

# skips FILE: which tests of that log did not run, and why. GoogleTest prints the reason on the line before.
skips() {
  awk '/^SKIP / { print "    " $0 } /^\[  SKIPPED \] .* ms\)$/ { print "    SKIP " $4 ": " before }
       NF { before = $0 }' "$1" | head -n 30
}

# step NAME LIMIT_SECONDS COMMAND...: runs it into a log of its own and counts the verdict lines in it.
step() {
  local name=$1 limit=$2 start=$SECONDS code p f s
  shift 2
  limited "$limit" "$@" >"$logs/$name.log" 2>&1
  code=$?
  p=$(grep -cE '^(PASS |\[       OK \] )' "$logs/$name.log")
  f=$(grep -cE '^(FAIL |\[  FAILED  \] .*\([0-9]+ ms\)|\[  CRASHED \] )' "$logs/$name.log")
  s=$(grep -cE '^(SKIP |\[  SKIPPED \] .*\([0-9]+ ms\))' "$logs/$name.log")
  [ "$code" -ne 124 ] && [ "$code" -ne 137 ] || echo "FAIL $name: no end after $limit s" >>"$logs/$name.log"
  # A command that failed without a verdict, or gave none at all, is a failure of its own.
  if [ "$f" -eq 0 ] && { [ "$code" -ne 0 ] || [ $((p + s)) -eq 0 ]; }; then
    f=1
    echo "FAIL $name: exit code $code, $p passed" >>"$logs/$name.log"
  fi
  # At once: another step may run beside this one.
  {
    add "$name" $((SECONDS - start)) "$p" "$f" "$s"
    skips "$logs/$name.log"
    if [ "$f" -gt 0 ]; then
      grep -hE '^(FAIL |\[  FAILED  \] .*\([0-9]+ ms\)|\[  CRASHED \] )' "$logs/$name.log" |
        sed 's/^/    /' | head -n 40
      echo "    log: $logs/$name.log"
    fi
  } >"$logs/$name.report"
  cat "$logs/$name.report"
}

# side_by_side "FUNCTION [ARGUMENT]"...: these at the same time, for most steps wait more than they compute; one by one
# where there is one processor.
side_by_side() {
  local one
  running=()
  for one in "$@"; do
    # shellcheck disable=SC2086
    (end_with_script; $one) &
    running+=($!)
    [ "$(nproc)" -gt 1 ] || wait
  done
  for one in "${running[@]}"; do
    wait "$one" && continue
    echo "FAIL: a process of this script ended before its steps did"
    echo "0 1 0" >>"$counts"
  done
}

finish() {
  awk '{ passed += $1; failed += $2; skipped += $3 }
       END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }' "$counts"
  exit
}

build_all() {
  local start=$SECONDS jobs unity=() targets=()
  # The suite alone needs a tenth of the tests' programs.
  [ "$parts" != " conformance" ] || targets=(--target sluiced sluice-worker sluice-gateway sluice-allocator sluicectl
    sluice_icd sluice_remote sluice-network-helper sluice sluice-resource-helper sluice_conformance sluice_complete_driver)
  # Several files at once take half the time where all are to be compiled; an older tree stays as it was made.
  [ -e "$build/CMakeCache.txt" ] || unity=(-DCMAKE_UNITY_BUILD=ON)
  # One compiler per 1.5 GiB of memory, or they starve each other.
  jobs=$(awk -v n="$(nproc)" '/MemTotal/ { m = int($2 / 1572864); print (m < 1 ? 1 : m < n ? m : n) }' \
    /proc/meminfo)
  if limited 300 cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE="${SLUICE_BUILD_TYPE:-Release}" \
    -DSLUICE_BUILD_TESTS=ON -DSLUICE_WERROR="${SLUICE_WERROR:-OFF}" "${unity[@]}" >"$logs/build.log" 2>&1 &&
    limited 2400 cmake --build "$build" -j "$jobs" "${targets[@]}" >>"$logs/build.log" 2>&1; then
    echo "built in $((SECONDS - start)) s"
    return
  fi
  tail -n 60 "$logs/build.log"
  echo "FAIL build: log $logs/build.log"
  echo "0 1 0" >>"$counts"
  finish
}

# ctest names a test more coarsely than GoogleTest does; its own summary is what counts.
run_unit() {
  local start=$SECONDS code results
  limited 1200 ctest --test-dir "$build" -LE 'conformance|sharing' -j "$(nproc)" --timeout 300 \
    --output-on-failure --no-tests=error --output-junit "$logs/unit.xml" >"$logs/unit.log" 2>&1
  code=$?
  results=$(tr '\n\t' '  ' <"$logs/unit.xml" 2>/dev/null | sed -E \
    's/.*tests="([0-9]+)".* failures="([0-9]+)".* disabled="([0-9]+)".* skipped="([0-9]+)".*/\1 \2 \3 \4/; t; s/.*//')
  # shellcheck disable=SC2086
  set -- $results
  if [ $# -ne 4 ] || { [ "$code" -ne 0 ] && [ "$2" -eq 0 ]; }; then
    add unit $((SECONDS - start)) 0 1 0
    tail -n 30 "$logs/unit.log"
    return
  fi
  add unit $((SECONDS - start)) $(($1 - $2 - $3 - $4)) "$2" $(($3 + $4))
  # What GoogleTest said of it.
  sed -nE 's/^[0-9]+: //; /: Failure$/,/^$/p; /^\[  FAILED  \] .* ms\)$/p' "$logs/unit.log" | head -n 60 | sed 's/^/    /'
  skips "$logs/unit.xml"
  [ "$2" -eq 0 ] || sed -n '/The following tests FAILED/,$p' "$logs/unit.log"
}

conformance() {
  local suite=$build/bin/sluice_conformance
  [ -x "$suite" ] || suite=$(find "$build/tests" -name sluice_conformance -type f | head -n 1)
  step "conformance-$1" 900 /usr/bin/python3 -B "$root/tests/system/harness.py" with "$1" -- \
    /usr/bin/python3 -B "$root/tests/conformance/run_all.py" "$suite" "--codes=$logs/$1.codes"
}

conformance_like_native() {
  conformance "$1"
  # The codes that this kind returned are native's, apart from the suite's table of differences.
  step "codes-$1" 60 bash -c '[ -s "$3" ] && /usr/bin/python3 -B "$@" && echo "PASS codes equal native"' - \
    "$root/tests/conformance/compare_codes.py" "$logs/native.codes" "$logs/$1.codes"
  # What the native driver of these runs lacks.
  step "complete-driver-$1" 120 /usr/bin/python3 -B "$root/tests/system/complete_driver.py" "$1"
}

run_conformance() {
  conformance native
  side_by_side "${kinds[@]/#/conformance_like_native }"
}

sharing() { step "sharing-$1" 600 "$root/tests/sharing/run.sh" "$1"; }

# Everything again by device shadow, which only a GPU takes by itself.
sharing_by_shadow() { step "sharing-$1" 600 env SLUICE_SHARING="$1" "$root/tests/sharing/run.sh" ring; }

run_sharing() {
  side_by_side "${kinds[@]/#/sharing }"
  side_by_side "sharing_by_shadow shadow" "sharing_by_shadow shadow,shader"
  # Each way and its fallbacks.
  step sharing-ways 300 /usr/bin/python3 -B "$root/tests/system/sharing_ways.py"
}

clients() {
  local client clients=(all)
  [ "$quick" = no ] || clients=(clinfo pyopencl sandbox)
  for client in "${clients[@]}"; do
    step "clients-$1-$client" 1500 "$root/tests/system/run_client.sh" "$1" "$client"
  done
  step "queue-hints-$1" 100 /usr/bin/python3 -B "$root/tests/system/queue_hints.py" "$1"
}

run_system() { side_by_side "${kinds[@]/#/clients }"; }

run_resources() {
  step resources 300 /usr/bin/python3 -B "$root/tests/system/resources.py"
  step folders 300 /usr/bin/python3 -B "$root/tests/system/folders.py"
  step guides 300 /usr/bin/python3 -B "$root/tests/system/guides.py"
  step waits 300 /usr/bin/python3 -B "$root/tests/system/waits.py"
  step turns 300 /usr/bin/python3 -B "$root/tests/system/turns.py"
  step turns-shares 300 /usr/bin/python3 -B "$root/tests/system/turns.py" shares
  step pools 600 /usr/bin/python3 -B "$root/tests/system/pools.py"
  step quotas 200 /usr/bin/python3 -B "$root/tests/system/quotas.py"
  step lost-device-ring 120 /usr/bin/python3 -B "$root/tests/system/lost_device.py" ring
  step lost-device-network 120 /usr/bin/python3 -B "$root/tests/system/lost_device.py" network
  step control-groups 300 /usr/bin/python3 -B "$root/tests/system/control_groups.py"
  step tenants 300 /usr/bin/python3 -B "$root/tests/system/tenants.py"
  step compatibility "${SLUICE_BUILD_OLD_VERSIONS:+2}900" /usr/bin/python3 -B "$root/tests/compatibility/run.py" --quick \
    ${SLUICE_BUILD_OLD_VERSIONS:+--build}
  # Where podman and flatpak are there (deploy/install-deps.sh --containers).
  step containers 900 /usr/bin/python3 -B "$root/tests/fresh/containers.py" --quick bare
  step flatpak 600 /usr/bin/python3 -B "$root/tests/fresh/flatpak.py"
  # The installed service under a systemd of its own, in this machine's kernel.
  step systemd 900 /usr/bin/python3 -B "$root/tests/vm/run.py" --namespaces --short
}

# The Windows daemon under Wine, and Windows programs against this machine's daemon.
run_windows() {
  local reason
  if ! reason=$("$root/deploy/windows/build.sh" --check); then
    echo "    SKIP windows: $reason"
    echo "0 0 1" >>"$counts"
    return
  fi
  # One of this run, for Wine may be another next time.
  export SLUICE_WINE_TEMPLATE=$build/test-wine-prefix
  rm -rf "$SLUICE_WINE_TEMPLATE"
  step windows-build 2400 bash -c '"$1" && echo "PASS built for Windows"' - "$root/deploy/windows/build.sh"
  side_by_side windows_programs windows_services
}

# The two halves of it take as long as each other. Most of their steps wait much of the time, for Wine's server or for
# the end of a time: one uses less than one processor.
windows_programs() {
  step windows-conformance-network 600 "$root/tests/windows/conformance.py" network
  step windows-conformance-ring 600 "$root/tests/windows/conformance.py" ring
  step windows-gateway-linux 900 "$root/tests/windows/conformance.py" gateway
  step windows-clients 400 "$root/tests/windows/clients.py"
  step windows-clfft 900 "$root/tests/windows/clfft.py"
  step windows-sharing-ring 900 "$root/tests/sharing/d3d/run.py" ring
  step windows-opengl 700 "$root/tests/sharing/wgl/run.py" network
  step windows-opengl-ring 700 "$root/tests/sharing/wgl/run.py" ring
}
windows_services() {
  step windows-service 900 "$root/tests/windows/service.py"
  step windows-installer 600 "$root/tests/windows/installer.py"
  step windows-restart 600 "$root/tests/windows/restart.py"
  step windows-gateway-windows 900 "$root/tests/windows/conformance.py" windows-network
  step windows-gateway 600 "$root/tests/windows/gateway.py"
  step windows-resources 600 "$root/tests/windows/resources.py"
  step windows-sharing 1200 "$root/tests/sharing/d3d/run.py"
}

run_failure() {
  local kind name
  step failure-config 300 /usr/bin/python3 -B "$root/tests/system/failure_config.py"
  step failure-sluicectl 300 /usr/bin/python3 -B "$root/tests/system/failure_sluicectl.py"
  step failure-endpoints 300 /usr/bin/python3 -B "$root/tests/system/failure_endpoints.py"
  step failure-gateway-front 900 env SLUICE_TEST_HALF_OPEN=4000 \
    /usr/bin/python3 -B "$root/tests/system/failure_gateway_front.py"
  # Short here; before a release: --clients 64 --seconds 600.
  step failure-chaos 300 /usr/bin/python3 -B "$root/tests/system/chaos.py" --clients 12 --seconds 30
  step failure-rights 200 /usr/bin/python3 -B "$root/tests/system/failure_rights.py"
  for kind in "${kinds[@]}"; do
    for name in no_daemon no_resources doctor kill kernels isolation sandbox leak crowd limits; do
      step "failure-$name-$kind" 600 /usr/bin/python3 -B "$root/tests/system/failure_$name.py" "$kind"
    done
  done
}

[ "$do_build" = no ] || build_all
# clang-tidy only on what changed since SLUICE_TIDY_SINCE, and only if that is set: it is slower than the build.
no_clang_format() {
  command -v clang-format-14 >/dev/null && return 1
  echo "    SKIP lint: the code's form is that of clang-format 14, which this release has not"
  echo "0 0 1" >>"$counts"
}
! part lint || no_clang_format || step lint 1200 bash -c '"$@" && echo "PASS lint"' - "$root/deploy/lint.sh" \
  ${SLUICE_TIDY_SINCE:+--tidy-since "$SLUICE_TIDY_SINCE" "$build"}
! part lint || step configure 400 bash -c '/usr/bin/python3 -B "$1" cmake && echo "PASS refusals of the configure step"' - \
  "$root/tests/meta/configure_refusals.py"
! part unit || run_unit
! part conformance || run_conformance
! part sharing || run_sharing
! part system || run_system
! part system || run_resources
! part failure || run_failure
! part windows || run_windows
! part bench || step bench-smoke 300 bash -c '"$1" --quick && echo "PASS bench: every row has a number"' - \
  "$root/tests/bench/run.sh"
! part bench || step bench-sharing-smoke 300 bash -c '"$1" --sharing --quick && echo "PASS bench of sharing"' - \
  "$root/tests/bench/run.sh"
finish
