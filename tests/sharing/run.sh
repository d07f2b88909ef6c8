#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the sharing tests with Sluice as the only OpenCL driver and, where the machine has no X display, an Xvfb of its
# own for GLX.
#
#   tests/sharing/run.sh ring|network [GOOGLETEST FLAGS]
#
# SLUICE_BUILD_DIR names the build tree (default: build/ of this checkout).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${SLUICE_BUILD_DIR:-$root/build}
kind=${1:?usage: run.sh ring|network [GOOGLETEST FLAGS]}
shift

xvfb=
if [ -z "${DISPLAY:-}" ] && command -v Xvfb >/dev/null; then
  # Xvfb writes the number of the display that it took once it can be connected to. Without -noreset it starts anew when
  # its last client goes, and refuses connections meanwhile: tests were skipped.
  coproc XVFB { exec Xvfb -displayfd 1 -screen 0 640x480x24 -nolisten tcp -noreset 2>/dev/null; }
  xvfb=$XVFB_PID
  read -r -t 20 number <&"${XVFB[0]}" && export DISPLAY=:$number
fi
/usr/bin/python3 -B "$root/tests/system/harness.py" with "$kind" -- "$root/tests/to_the_end.sh" \
  "$build/bin/sluice_sharing_test" "$@"
code=$?
[ -z "$xvfb" ] || kill "$xvfb"
exit "$code"
