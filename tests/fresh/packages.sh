#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the Debian packages work for a stranger? From empty roots of a release: install, use, upgrade with a session running,
# remove, purge; and the packages' own tests (autopkgtest). The answers are lines PASS, FAIL and SKIP.
#
#   tests/fresh/packages.sh RELEASE [FOLDER]     bookworm or trixie; FOLDER has what deploy/packages.sh has made, which is
#                                                run with --lint otherwise
#
# Needs root, and Debian's archive. What is run inside is packages_inside.sh. A real systemd is not here: the daemon is
# started by hand as its unit says.
set -euo pipefail
case ${1:-} in
  bookworm | trixie) ;;
  -h | --help) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
[ "$(id -u)" -eq 0 ] || { echo "FAIL packages $1: needs root: run me with sudo"; exit 1; }
release=$1
tree=$(cd "$(dirname "$0")/../.." && pwd)
enter=${SLUICE_ROOT_SCRIPT:-$tree/tests/fresh/root.sh}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/sluice-packages-test.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
failed=0
fail() {  # fail WHAT [LOG]: the log's last lines, indented, then the verdict.
  [ -z "${2:-}" ] || tail -n 40 "$2" | sed 's/^/    /'
  echo "FAIL $1"
  failed=1
}

made=${2:-$work/made}
if [ $# -lt 2 ]; then
  mkdir "$made"
  "$tree/deploy/packages.sh" --lint "$release" "$made" >"$work/log" 2>&1 || {
    fail "packages of $release are built, and lintian has no error and no warning" "$work/log"
    exit 1
  }
  echo "PASS packages of $release are built, and lintian has no error and no warning"
fi
made=$(realpath "$made")
compgen -G "$made/sluiced_*.deb" >/dev/null || { fail "packages of $release: no sluiced_*.deb in $made"; exit 1; }

# Two versions in two repositories: the second is the first under a higher number, so that dpkg replaces every file.
repository() {  # repository FOLDER: the list that apt reads.
  (cd "$1" && for deb in *.deb; do
    dpkg-deb -f "$deb"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d ' ' -f 1)"
  done >Packages)
}
mkdir -p "$work/repository/1" "$work/repository/2"
for deb in "$made"/*.deb; do
  case $deb in *-dbgsym_*) continue ;; esac
  cp "$deb" "$work/repository/1"
  version=$(dpkg-deb -f "$deb" Version)
  rm -rf "$work/unpacked"
  dpkg-deb -R "$deb" "$work/unpacked"
  sed -i "s/$version/$version+later/g" "$work/unpacked/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/unpacked" "$work/repository/2/$(basename "$deb" .deb)+later.deb" >/dev/null
done
repository "$work/repository/1"
repository "$work/repository/2"

"$enter" make "$release" "$work/root"
"$enter" run "$work/root" --ro-bind "$work/repository:/repository" --ro-bind "$tree/tests:/tests" \
  --ro-bind "$tree/deploy/debian/tests/share.c:/share.c" \
  -- bash /tests/fresh/packages_inside.sh || failed=1
rm -rf --one-file-system "$work/root"

"$enter" make "$release" "$work/root"
code=0
# autopkgtest's answer 2: some tests were skipped, here the one that needs a machine with systemd.
"$enter" run "$work/root" --ro-bind "$made:/made" -- env DEBIAN_FRONTEND=noninteractive bash -ec '
  apt-get update -q && apt-get install -y -q --no-install-recommends autopkgtest apt-utils dpkg-dev build-essential
  code=0
  autopkgtest --summary-file=/summary /made/sluice*.deb /made/libsluice*.deb /made/sluice_*.dsc -- null || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 2 ]' >"$work/log" 2>&1 || code=$?
if [ -s "$work/root/summary" ]; then
  while read -r name verdict why; do
    case $verdict in
      PASS) echo "PASS autopkgtest $name on $release" ;;
      SKIP) echo "SKIP autopkgtest $name on $release: $why" ;;
      *) fail "autopkgtest $name on $release: $verdict $why" ;;
    esac
  done <"$work/root/summary"
fi
if [ "$code" -ne 0 ] || [ ! -s "$work/root/summary" ]; then
  fail "autopkgtest on $release: ended with $code; its last lines are above" "$work/log"
fi
exit "$failed"
