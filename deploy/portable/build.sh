#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the portable client: an OpenCL driver, and libsluice, which need nothing but glibc.
#
#   deploy/portable/build.sh [--release RELEASE | --here] [--folder PATH] OUT
#
#   OUT             this folder is made, or replaced if it holds nothing but these:
#                     libsluice_icd.so  libsluice.so.0  sluice.icd  copyright.txt (of what is linked in)
#                     sluice/libsluice_remote.so  sluice/sluice-network-helper  sluice/sluice-resource-helper
#   --release NAME  in a root of this release of Debian, with its compiler: bullseye (the default: the files then need
#                   no symbol newer than glibc 2.28), bookworm, trixie. Needs root and debootstrap.
#   --here          on this system, with its compiler, without a root
#   --folder PATH   where OUT will lie when it is used: sluice.icd names the driver there (default: /usr/lib/sluice-client)
#
# The first build of a release makes its libraries (make-deps.sh): about half an hour of one core. They are kept, as
# RELEASE.tar.xz, and the root, the build tree and the compiler's cache in the folder RELEASE, both in:
# SLUICE_PORTABLE_CACHE    (default: ${XDG_CACHE_HOME:-$HOME/.cache}/sluice/portable)
# SLUICE_PORTABLE_ARCHIVE  libraries that were made before, unpacked there if there are none (default: RELEASE.tar.xz
#                          in ../shared/portable beside the checkout, else in SLUICE_PORTABLE_CACHE)
# SLUICE_BUILD_JOBS        compilers at once
set -euo pipefail
usage() { sed -n '3,22s/^# \{0,1\}//p' "$0"; }
die() {
  echo "build.sh: $*" >&2
  exit 2
}
checkout=$(cd "$(dirname "$0")/../.." && pwd)
# What the build needs in its system, beside the libraries that make-deps.sh makes.
packages=(g++ cmake ninja-build make ccache perl python3 python3-six unicode-data dpkg-dev patch xz-utils
  opencl-headers libegl-dev libgl-dev)

# build_client SOURCE CACHE FOLDER: in the system that compiles. CACHE has prefix/ and gets build/ and out/.
build_client() {
  local source=$1 cache=$2 folder=$3 jobs=${SLUICE_BUILD_JOBS:-$(nproc)} made=()
  export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
  [ ! -e "$cache/prefix.tar.xz" ] || made=("$cache/prefix.tar.xz")
  "$source/deploy/portable/make-deps.sh" "$cache/prefix" "${made[@]}"
  # Several files at once take half the time.
  cmake -S "$source" -B "$cache/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSLUICE_CLIENT_PREFIX="$cache/prefix" \
    -DSLUICE_CLIENT_FOLDER="$folder" -DSLUICE_BUILD_TESTS=OFF -DCMAKE_UNITY_BUILD=ON >"$cache/configure.log" 2>&1 || {
    cat "$cache/configure.log" >&2
    exit 1
  }
  cmake --build "$cache/build" -j "$jobs"
  rm -rf "$cache/out"
  cmake --install "$cache/build" --component portable --strip --prefix "$cache/out"
}
# What OUT may hold, each with its type.
client_files='d sluice|f (libsluice_icd\.so|libsluice\.so\.0|sluice\.icd|copyright\.txt|sluice/libsluice_remote\.so)'
client_files+='|f sluice/sluice-(network|resource)-helper'
# check_out FOLDER: only an earlier client may be replaced. Whoever installed to /usr has a libsluice_icd.so in /usr/lib.
check_out() {
  local foreign
  [ -e "$1" ] || [ -L "$1" ] || return 0
  [ -d "$1" ] && [ ! -L "$1" ] || die "$1 is there and is no folder; name a new one"
  foreign=$(find "$1" -mindepth 1 -printf '%y %P\n' | sort | grep -vxE "$client_files" || true)
  [ -z "$foreign" ] || { foreign=${foreign%%$'\n'*}; die "$1 holds ${foreign#* }, which is no file of a client; name a new folder"; }
}
if [ "${1:-}" = inside ]; then
  shift
  build_client "$@"
  exit 0
fi

release=bullseye here=no folder=/usr/lib/sluice-client out=
while [ $# -gt 0 ]; do
  case $1 in
    --release) release=${2:?build.sh: --release takes a name}; shift ;;
    --here) here=yes ;;
    --folder) folder=${2:?build.sh: --folder takes a path}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "build.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    *) [ -z "$out" ] || die "one OUT, not '$out' and '$1'"; out=$1 ;;
  esac
  shift
done
[ -n "$out" ] || { usage >&2; exit 2; }
command -v xz >/dev/null || die "keeps the libraries as a .tar.xz, and xz is missing: apt-get install xz-utils"
out=$(realpath -m "$out")
check_out "$out"
[[ $folder == /* && $folder != *[[:cntrl:]]* ]] ||
  die "--folder is '$folder': sluice.icd needs an absolute path, such as /usr/lib/sluice-client"
[ "$folder" = / ] || folder=$(realpath -sm "$folder")
case $release in
  bullseye | bookworm | trixie) ;;
  *) die "no release '$release': bullseye, bookworm or trixie" ;;
esac
[ "$here" = no ] || release=$(. /etc/os-release && echo "here-${VERSION_CODENAME:-$ID}")
cache=${SLUICE_PORTABLE_CACHE:-${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}}
[ -n "$cache" ] || die "has no place for what it keeps: HOME is not set; set SLUICE_PORTABLE_CACHE to a folder"
cache=${SLUICE_PORTABLE_CACHE:-$cache/sluice/portable}/$release
kept=$cache.tar.xz
[ -z "${SLUICE_PORTABLE_ARCHIVE:-}" ] || [ -f "$SLUICE_PORTABLE_ARCHIVE" ] ||
  die "SLUICE_PORTABLE_ARCHIVE is $SLUICE_PORTABLE_ARCHIVE, and there is no such file"
archive=${SLUICE_PORTABLE_ARCHIVE:-$checkout/../shared/portable/$release.tar.xz}
[ -n "${SLUICE_PORTABLE_ARCHIVE:-}" ] || [ -e "$archive" ] || archive=$kept
# root/ is the system, and sees work/ alone: prefix/, build/, ccache/, out/.
mkdir -p "$cache/work"
cache=$(cd "$cache" && pwd)
work=$cache/work
exec 9>"$cache/lock"
flock -n 9 || { echo "build.sh: waits for another build of $release"; flock 9; }
[ ! -e "$archive" ] || [ -e "$work/prefix/.complete" ] || cp "$archive" "$work/prefix.tar.xz"

if [ "$here" = yes ]; then
  build_client "$checkout" "$work" "$folder"
else
  [ "$(id -u)" -eq 0 ] || die "needs root to make and enter a root of Debian $release; or --here"
  roots=$checkout/tests/fresh/root.sh
  if [ "$(cat "$cache/root/.sluice-packages" 2>/dev/null)" != "${packages[*]}" ]; then
    rm -rf "$cache/root"
    "$roots" make "$release" "$cache/root"
    "$roots" run "$cache/root" -- sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
      --no-install-recommends "$@"' sh "${packages[@]}" >"$cache/root.log" 2>&1 || {
      tail -n 20 "$cache/root.log" >&2
      die "cannot install the compiler in $cache/root"
    }
    echo "${packages[*]}" >"$cache/root/.sluice-packages"
  fi
  "$roots" run "$cache/root" --ro-bind "$checkout:/sluice/source" --bind "$work:/sluice/cache" -- \
    env SLUICE_BUILD_JOBS="${SLUICE_BUILD_JOBS:-$(nproc)}" \
    bash /sluice/source/deploy/portable/build.sh inside /sluice/source /sluice/cache "$folder"
fi
rm -f "$work/prefix.tar.xz"
# Debian 11 will be gone some day, and its compiler with it.
if [ ! -e "$kept" ] || [ "$work/prefix/licenses" -nt "$kept" ]; then
  tar -C "$work" -cJf "$kept.part" prefix
  mv "$kept.part" "$kept"
fi
check_out "$out"  # Somebody may have put something there since.
rm -rf "$out"
mkdir -p "$(dirname "$out")"
cp -a "$work/out" "$out"
echo "built the client for $release in $out"
