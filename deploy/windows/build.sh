#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything for Windows, on Debian with mingw-w64, and packs it; the tests, too, where GoogleTest's source is
# installed (install-deps.sh --windows --test), and the installer where wixl is.
#
#   deploy/windows/build.sh [--check] [--no-package]
#
#   --check       say in one line what is missing, if anything, and build nothing; exit 1 if something is
#   --no-package  only build
#
# SLUICE_WINDOWS_BUILD_DIR  the build tree (default: build-windows/); in it lie then sluice-windows.zip, sluice-windows.msi,
#                           and sluice-windows-symbols.zip, which names the functions of a crash's stack
# SLUICE_MINGW_PREFIX       the libraries that make-deps.sh makes (default: build-mingw-deps/)
# SLUICE_MINGW_ARCHIVE      unpacked there if they are not (default: ../shared/windows/mingw-deps.tar.xz)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export SLUICE_MINGW_PREFIX=${SLUICE_MINGW_PREFIX:-$root/build-mingw-deps}
archive=${SLUICE_MINGW_ARCHIVE:-$root/../shared/windows/mingw-deps.tar.xz}
build=${SLUICE_WINDOWS_BUILD_DIR:-$root/build-windows}
check=no
package=yes
for option in "$@"; do
  case $option in
    --check) check=yes ;;
    --no-package) package=no ;;
    -h | --help) sed -n '3,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "build.sh: unknown option '$option'" >&2; sed -n '3,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

missing=
command -v x86_64-w64-mingw32-g++-posix >/dev/null || missing="mingw-w64 (deploy/install-deps.sh --windows)"
[ -e "$SLUICE_MINGW_PREFIX/lib/libgrpc++.a" ] || [ -e "$archive" ] ||
  missing="${missing:+$missing, }the prefix $SLUICE_MINGW_PREFIX (deploy/windows/make-deps.sh)"
if [ -n "$missing" ]; then
  echo "not built for Windows: missing $missing"
  exit 1
fi
[ "$check" = no ] || exit 0

[ -e "$SLUICE_MINGW_PREFIX/lib/libgrpc++.a" ] || "$root/deploy/windows/make-deps.sh" "$SLUICE_MINGW_PREFIX" "$archive"
# Several files at once take half the time where all are to be compiled; an older tree stays as it was made.
unity=()
tests=OFF
[ ! -e /usr/src/googletest/CMakeLists.txt ] || tests=ON
[ -e "$build/CMakeCache.txt" ] || unity=(-DCMAKE_UNITY_BUILD=ON)
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$root/deploy/windows/toolchain.cmake" \
  -DSLUICE_MINGW_PREFIX="$SLUICE_MINGW_PREFIX" -DCMAKE_BUILD_TYPE=Release \
  -DSLUICE_BUILD_TESTS="$tests" -DSLUICE_WERROR="${SLUICE_WERROR:-OFF}" "${unity[@]}"
cmake --build "$build" -j "${SLUICE_BUILD_JOBS:-$(nproc)}"
[ "$package" = yes ] || exit 0
rm -rf "$build/package" "$build/symbols" "$build"/sluice-windows{,-symbols}.zip "$build/sluice-windows.msi"
cmake --install "$build" --prefix "$build/package/sluice" --strip
(cd "$build/package" && cmake -E tar cf "$build/sluice-windows.zip" --format=zip sluice)
echo "packed $build/sluice-windows.zip"
mkdir "$build/symbols"
for program in "$build"/package/sluice/bin/*; do
  name=${program##*/}
  x86_64-w64-mingw32-objcopy --only-keep-debug "$build/bin/$name" "$build/symbols/$name.debug"
done
(cd "$build/symbols" && cmake -E tar cf "$build/sluice-windows-symbols.zip" --format=zip .)
echo "packed $build/sluice-windows-symbols.zip"
if command -v wixl >/dev/null && command -v msibuild >/dev/null; then
  version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
  "$root/deploy/windows/build-msi.sh" "$build/package/sluice" "$version" "$build/sluice-windows.msi"
else
  echo "no installer was made: apt-get install wixl msitools"
fi
