# SPDX-License-Identifier: Apache-2.0
# Sourced by the client scripts: one verdict line, and proof that the client runs where it should.
# SLUICE_TEST_KIND says where (native, ring, network); CLIENT names the client; WORK is a fresh directory
# that is removed at the end.

KIND=${SLUICE_TEST_KIND:?run me through tests/system/run_client.sh}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LIMIT=$HERE/../../limit.py
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
# No client may write into the caller's home.
mkdir -p "$WORK/home"
export HOME=$WORK/home XDG_CACHE_HOME=$WORK/home/.cache XDG_CONFIG_HOME=$WORK/home/.config
export XDG_DATA_HOME=$WORK/home/.local/share

fail() {
  echo "FAIL $CLIENT: $1"
  [ -z "${2:-}" ] || { echo "--- the last lines of its output:"; tail -n 25 "$2"; }
  exit 1
}

pass() {
  echo "PASS $CLIENT: $1"
  exit 0
}

# The name of the platform a client will see first, checked against the kind.
platform_under_test() {
  local name
  name=$(clinfo --raw 2>/dev/null | sed -n 's/^ *CL_PLATFORM_NAME  *//p' | head -n 1)
  [ -n "$name" ] || fail "clinfo sees no OpenCL platform"
  case "$KIND:$name" in
    native:Sluice*) fail "expected a native driver, the platform is '$name'" ;;
    native:*) ;;
    *:"Sluice ("*) ;;
    *) fail "expected Sluice, the platform is '$name'" ;;
  esac
  PLATFORM=$name
}
