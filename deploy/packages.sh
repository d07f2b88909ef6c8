#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages in a fresh root of a release, from what git tracks here; the checkout stays as it is.
# With --rpm it builds rpm/sluice.spec there instead: against Debian's libraries, so to see that the spec is right.
#
#   deploy/packages.sh [OPTION...] RELEASE OUTDIR      RELEASE: bookworm (Debian 12) or trixie (Debian 13)
#
#   --lint               run that release's lintian (rpmlint) as well; an error or a warning fails
#   --rpm                build RPMs (rpmbuild --nodeps), with what debian/control names installed
#   --client DIR         the client that deploy/portable/build.sh has made, which needs glibc only (default: it is run here)
#   --own-libraries      no such client: that of the packages needs the release's libraries, and sluice-tools has no
#                        folder for containers
#   --root DIR           a root to build in, made if there is none, and kept: the second build need not install anything
#
# OUTDIR gets the .deb, .dsc, .changes and .buildinfo (or .rpm) files, and the log. Needs root, and Debian's archive.
#
# SLUICE_BUILD_JOBS   compilers at once (default: one per processor)
# SLUICE_BUILD_LOCK   a file that is locked while compiling, where several builds share a machine
# CCACHE_DIR          a compiler cache to use (default: ~/.cache/ccache if there is one)
set -euo pipefail
usage() { sed -n '3,19s/^# \{0,1\}//p' "$0"; }
fail() {
  echo "packages.sh: $*" >&2
  exit 1
}

rpm=no lint=no client=portable kept_root=""
while [ $# -gt 0 ]; do
  case $1 in
    --lint) lint=yes; shift ;;
    --rpm) rpm=yes; shift ;;
    --client)
      client=$(realpath -m "${2:?--client needs a folder}")
      [ -f "$client/libsluice_icd.so" ] ||
        fail "--client $2 is no folder with a libsluice_icd.so: name one that deploy/portable/build.sh has made"
      shift 2
      ;;
    --own-libraries) client=""; shift ;;
    --root) kept_root=$(realpath -m "${2:?--root needs a folder}"); shift 2 ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "packages.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    *) break ;;
  esac
done
[ $# -eq 2 ] || { usage >&2; exit 2; }
release=$1 out=$(realpath -m "$2")
case $release in
  bookworm) suffix=deb12 ;;
  trixie) suffix=deb13 ;;
  *) fail "'$release' is no release that packages are made for: bookworm or trixie" ;;
esac
[ "$(id -u)" -eq 0 ] || fail "only root can make a root of another release: run me with sudo"
tree=$(cd "$(dirname "$0")/.." && pwd)
enter=${SLUICE_ROOT_SCRIPT:-$tree/tests/fresh/root.sh}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/sluice-packages.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
root=${kept_root:-$work/root}
mkdir -p "$out"

# The client that containers of every distribution can have is the packages' own as well: there is one to test.
if [ "$client" = portable ]; then
  client=$work/client
  echo "packages.sh: building the portable client; the log is $out/client.log"
  "$tree/deploy/portable/build.sh" "$client" >"$out/client.log" 2>&1 ||
    { tail -n 20 "$out/client.log" >&2; fail "cannot build the portable client; the whole log is $out/client.log"; }
fi

# 1. The source: one tarball of the tree, and debian/ beside it. One version per release, so that a machine that goes
#    from Debian 12 to 13 gets 13's packages.
upstream=$(sed -nE 's/^project\(sluice VERSION ([0-9.]+).*/\1/p' "$tree/CMakeLists.txt")
[ -n "$upstream" ] || fail "CMakeLists.txt names no version"
source=$work/build/sluice-$upstream
mkdir -p "$source"
SOURCE_DATE_EPOCH=$(git -C "$tree" log -1 --format=%ct)
git -C "$tree" ls-files -z | while IFS= read -r -d '' file; do
  [ ! -e "$tree/$file" ] || printf '%s\0' "$file"
done | tar -C "$tree" --null -T - --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
  --transform "s,^,sluice-$upstream/,S" -cf "$work/orig.tar"
tar -C "$work/build" -xf "$work/orig.tar"
gzip -n9 <"$work/orig.tar" >"$work/build/sluice_$upstream.orig.tar.gz"
cp -a "$source/deploy/debian" "$source/debian"
listed=$(sed -nE '1s/^sluice \(([^)]*)\).*/\1/p' "$source/debian/changelog")
[ "${listed%-*}" = "$upstream" ] ||
  fail "deploy/debian/changelog begins with $listed, and CMakeLists.txt has $upstream: add an entry"
sed -E "1s/\(.*/($listed~$suffix) $release; urgency=medium/" "$tree/deploy/debian/changelog" >"$source/debian/changelog"

# 2. The root, with what the build needs.
[ -d "$root" ] || "$enter" make "$release" "$root"
mkdir -p "$root/build"
find "$root/build" -mindepth 1 -delete
cp -a "$work/build/." "$root/build/"
binds=()
cache=${CCACHE_DIR:-${HOME:-/root}/.cache/ccache}
tools=(dpkg-dev fakeroot)
if [ -d "$cache" ]; then
  tools+=(ccache)
  binds+=(--bind "$cache:/var/cache/ccache")
fi
[ -z "$client" ] || binds+=(--ro-bind "$client:/opt/sluice-client")
[ "$rpm" = no ] || tools+=(rpm rpmlint)
[ "$rpm$lint" != noyes ] || tools+=(lintian)
in_root() { "$enter" run "$root" "${binds[@]}" -- env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
echo "packages.sh: installing what the build needs in $root"
# shellcheck disable=SC2016
in_root sh -ec 'export DEBIAN_FRONTEND=noninteractive
  apt-get update -q && apt-get install -y -q --no-install-recommends "$@" build-essential
  cd /build/sluice-* && apt-get build-dep -y -q --no-install-recommends ./' - "${tools[@]}" >"$out/build.log" 2>&1 ||
  { tail -n 20 "$out/build.log" >&2; fail "cannot install what the build needs; the whole log is $out/build.log"; }

# 3. The build, with the name of the folder the same each time: compiler caches know a file by it.
echo "packages.sh: building $listed~$suffix for $release; the log is $out/build.log"
lock=()
[ -z "${SLUICE_BUILD_LOCK:-}" ] || lock=(flock "$SLUICE_BUILD_LOCK")
# shellcheck disable=SC2016
build='cd /build/sluice-* && exec dpkg-buildpackage -us -uc'
# With Debian's flags and folder, so that what was compiled for its packages need not be compiled again.
# shellcheck disable=SC2016
[ "$rpm" = no ] || build='cd /build/sluice-* && flags=$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get CXXFLAGS)
  flags="$flags $(dpkg-buildflags --get CPPFLAGS)"
  cp deploy/rpm/sluice.spec deploy/rpm/sluice.rpmlintrc /build
  mv /build/sluice_*.orig.tar.gz "/build/${PWD##*/}.tar.gz"
  exec rpmbuild --nodeps -ba --define "_topdir /build/rpm" --define "_sourcedir /build" --define "_builddir /build" \
    --define "_srcrpmdir /build" --define "_rpmdir /build" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
    --define "optflags $flags" --define "_vpath_builddir obj-$(gcc -dumpmachine)" \
    ${SLUICE_INSTALL_CLIENT:+--define "sluice_client $SLUICE_INSTALL_CLIENT"} \
    --define "_smp_mflags -j${DEB_BUILD_OPTIONS#parallel=}" /build/sluice.spec'
"${lock[@]}" "$enter" run "$root" "${binds[@]}" -- env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
  CCACHE_DIR=/var/cache/ccache DEB_BUILD_OPTIONS="parallel=${SLUICE_BUILD_JOBS:-$(nproc)}" \
  SLUICE_INSTALL_CLIENT="${client:+/opt/sluice-client}" sh -ec "$build" >>"$out/build.log" 2>&1 ||
  { tail -n 30 "$out/build.log" >&2; fail "the build failed; the whole log is $out/build.log"; }
find "$root/build" -maxdepth 1 -type f -exec cp -t "$out" {} +

# 4. What the distribution would say to it.
if [ "$lint" = yes ]; then
  judge='cd /build && exec lintian --info --display-info --fail-on error,warning *.changes'
  [ "$rpm" = no ] || judge='cd /build && exec rpmlint --strict -r sluice.rpmlintrc sluice.spec *.rpm'
  in_root sh -ec "$judge" >"$out/lint.log" 2>&1 || { cat "$out/lint.log" >&2; fail "lintian or rpmlint has complaints"; }
  echo "packages.sh: no error and no warning; all remarks are in $out/lint.log"
fi
echo "packages.sh: made$(find "$out" -maxdepth 1 -newer "$work/orig.tar" \( -name '*.deb' -o -name '*.rpm' \) -printf ' %f')"
