#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark: native against ring against loopback network, in one run.
#
#   tests/bench/run.sh [--quick] [--rounds N] [--kinds native,ring,network] [--platform TEXT] [--out DIR]
#                      [--record [FILE]]
#   tests/bench/run.sh --sharing [--quick] [--rounds N] [--platform TEXT] [--record [FILE]]
#   tests/bench/run.sh --tenants [--quick] [--rounds N] [--seconds S]
#   tests/bench/run.sh --shares [--quick] [--seconds S] [--only TEXT] [--kinds off,auto,on]
#   tests/bench/run.sh --processors [--quick] [--rounds N] [--seconds S]
#   tests/bench/run.sh --programs [--rounds N] [--programs hashcat,clpeak] [--modes LIST]
#
# --programs runs whole programs instead: hashcat's benchmark and clpeak (programs.py).
# --processors measures launch + clFinish instead where processors are few, and how many are used (processors.py).
# --tenants measures programs beside each other on one device instead (tenants.py).
# --shares measures what tenants of different shares get of one device, and one beside floods (shares.py).
# --sharing measures objects shared with OpenGL and daemon-owned resources instead (sharing.py).
# Prints the table and writes table.md and results.json (default: build/bench). --record measures the shaped
# links too (root) and writes both tables with the machine's facts as Markdown, by default to
# tests/bench/results/cpu.md or gpu.md, which README.md names. A full run takes some six minutes. Needs a Release build with
# nothing else running; SLUICE_BUILD_DIR names the build tree (default: build/ of this checkout). Numbers
# are reported, never asserted: it fails only when something does not run or a row is missing.
if [ "${1:-}" = --sharing ]; then
  shift
  exec /usr/bin/python3 -B "$(dirname "$0")/sharing.py" "$@"
fi
if [ "${1:-}" = --tenants ] || [ "${1:-}" = --shares ] || [ "${1:-}" = --processors ] || [ "${1:-}" = --programs ]; then
  part=${1#--}
  shift
  exec /usr/bin/python3 -B "$(dirname "$0")/$part.py" "$@"
fi
exec /usr/bin/python3 -B "$(dirname "$0")/bench.py" "$@"
