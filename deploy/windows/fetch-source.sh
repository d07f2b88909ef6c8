#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads Debian's source packages, for whatever else this machine's package sources are set up.
#
#   deploy/windows/fetch-source.sh FOLDER NAME...    into FOLDER/download; the lists of packages stay in FOLDER/lists
#
# A mirror may lack a part of a package for a while: each is tried three times, the first time with the lists that are there.
set -euo pipefail
[ $# -ge 2 ] && [[ $1 != -* ]] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
mkdir -p "$work"/{lists/partial,sources,download}

# This machine's own package sources, as sources of source packages, in lists of our own.
for file in /etc/apt/sources.list.d/*.sources; do
  [ ! -e "$file" ] || sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/${file##*/}"
done
[ ! -e /etc/apt/sources.list ] || sed -nE 's/^deb(-src)? /deb-src /p' /etc/apt/sources.list >"$work/sources/debian.list"
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
