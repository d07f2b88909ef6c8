#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one real client, or all of them, where KIND says.
#
#   tests/system/run_client.sh native|ring|network CLIENT|all
#
# Prints PASS, FAIL or SKIP with a reason per client; exit 0 when nothing failed, 1 when something did, 2 for
# a wrong call. Binaries come from SLUICE_BUILD_DIR (default: build/ of this checkout). One daemon serves all
# the clients of a call, as it would on a real machine, but for clpeak, which has one with a small device.
set -u
here=$(cd "$(dirname "$0")" && pwd)
clients=(clinfo clpeak hashcat pyopencl pyopencl_gl clblast viennacl darktable sandbox loader)
usage() {
  echo "usage: $0 native|ring|network CLIENT|all   (clients: ${clients[*]})" >&2
  exit 2
}
[ $# -eq 2 ] || usage
kind=$1
client=$2
case $kind in native | ring | network) ;; *) usage ;; esac
[ "$client" != all ] && clients=("$client")

build=${SLUICE_BUILD_DIR:-$here/../../build}
export SLUICE_TEST_BIN_DIR=$build/tests/system
# Kernels are compiled once per suite, not once per client; the worker inherits the daemon's environment.
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$build/test-pocl-cache}
mkdir -p "$POCL_CACHE_DIR"

command_for() {
  case $1 in
    clinfo) echo "/usr/bin/python3 $here/clients/clinfo.py" ;;
    pyopencl | pyopencl_gl) echo "/usr/bin/python3 $here/clients/$1_client.py" ;;
    clblast | viennacl) echo "$SLUICE_TEST_BIN_DIR/$1_client" ;;
    clpeak | hashcat | darktable | sandbox | loader) echo "$here/clients/$1.sh" ;;
    *) usage ;;
  esac
}

run_all() {
  local failed=0 one start code
  for one in "${clients[@]}"; do
    start=$SECONDS
    # shellcheck disable=SC2046
    "$here/../limit.py" 480 $(command_for "$one") </dev/null
    code=$?
    # 77 is a skip, whose reason the client printed.
    case $code in
      0 | 77) ;;
      124 | 137) echo "FAIL $one: no end after 480 s"; failed=1 ;;
      *) echo "FAIL $one: exit code $code"; failed=1 ;;
    esac
    echo "  ($one took $((SECONDS - start)) s)"
  done
  return $failed
}

# run_under_daemon CLIENT...
run_under_daemon() {
  SLUICE_RUN_CLIENT_INNER="$*" /usr/bin/python3 "$here/harness.py" with "$kind" -- "$0" "$kind" "$client"
}

# clpeak takes as much of a device as it can, many times in each of its rows: 512 MiB each way, 256 work-items a group.
# That is minutes for numbers that nobody looks at; a device with little of both gives them in seconds.
run_clpeak() {
  SLUICE_TEST_LIMITS='memory_bytes_per_session = "32MiB"' POCL_MAX_WORK_GROUP_SIZE=16 run_under_daemon clpeak
}

if [ -n "${SLUICE_RUN_CLIENT_INNER:-}" ]; then
  read -ra clients <<<"$SLUICE_RUN_CLIENT_INNER"
  run_all
  exit
fi
command_for "${clients[0]}" >/dev/null
failed=0
others=()
for one in "${clients[@]}"; do
  [ "$one" = clpeak ] || others+=("$one")
done
[ "${#others[@]}" -eq 0 ] || run_under_daemon "${others[@]}" || failed=1
[[ " ${clients[*]} " != *" clpeak "* ]] || run_clpeak || failed=1
exit $failed
