#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads Debian's source packages, for whatever else this machine's package sources are set up.
#
#   deploy/fetch-source.sh [--suite SUITE] FOLDER NAME...
#
# into FOLDER/download; the lists of packages stay in FOLDER/lists. With --suite they are those of that release of
# Debian (bookworm), from the mirror that this machine uses.
# A mirror may lack a part of a package for a while: each is tried three times, the first time with the lists that are there.
set -euo pipefail
suite=
if [ "${1:-}" = --suite ] && [ $# -ge 2 ]; then
  suite=$2
  shift 2
fi
[ $# -ge 2 ] && [[ $1 != -* ]] || { sed -n '3,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
mkdir -p "$work"/{lists/partial,sources,download}

# This machine's own package sources, as sources of source packages, in lists of our own.
for file in /etc/apt/sources.list.d/*.sources; do
  [ ! -e "$file" ] || sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/${file##*/}"
done
[ ! -e /etc/apt/sources.list ] || sed -nE 's/^deb(-src)? /deb-src /p' /etc/apt/sources.list >"$work/sources/debian.list"
if [ -n "$suite" ]; then
  # The first place that holds Debian itself; its other suites lie at the same place.
  mirror=$(cat "$work"/sources/* | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ')
  [ -n "$mirror" ] || { echo "fetch-source.sh: this machine's package sources name no mirror of Debian" >&2; exit 1; }
  rm -f "$work"/sources/*
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb-src [signed-by=$keys] $mirror $suite main" >"$work/sources/debian.list"
fi
apt() {
  apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" \
    -o Dir::State::lists="$work/lists" -o Acquire::http::Timeout=30 "$@"
}

cd "$work/download"
for name in "$@"; do
  for try in 1 2 3; do
    { [ "$try" -eq 1 ] && ls "$work"/lists/*Sources* >/dev/null 2>&1; } || apt update
    ! apt source --download-only "$name" || break
    [ "$try" -lt 3 ] || { echo "fetch-source.sh: cannot download the source of $name" >&2; exit 1; }
  done
done
