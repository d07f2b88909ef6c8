#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the prefix of static libraries that the Windows build links: abseil, re2, c-ares, protobuf, OpenSSL, gRPC.
#
#   deploy/windows/make-deps.sh PREFIX            from Debian's source packages; about 25 minutes on two cores
#   deploy/windows/make-deps.sh PREFIX ARCHIVE    unpacks a prefix that was made before (a .tar.xz)
#
# Does nothing if PREFIX is complete. The sources and build trees stay in PREFIX.work until the end, so that a run that
# was interrupted goes on where it was.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] && [ $# -le 2 ] && [[ $1 != -* ]] || { sed -n '3,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
[ ! -e "$prefix/.complete" ] || { echo "make-deps.sh: $prefix is complete"; exit 0; }
if [ $# -eq 2 ]; then
  tar -xf "$2" -C "$prefix" --strip-components=1
  [ -e "$prefix/lib/libgrpc++.a" ] || { echo "make-deps.sh: $2 holds no such prefix" >&2; exit 1; }
  touch "$prefix/.complete"
  exit 0
fi

work=$prefix.work
jobs=${SLUICE_BUILD_JOBS:-$(nproc)}
. "$here/../static-deps.sh"
need_packages g++-mingw-w64-x86-64-posix libz-mingw-w64-dev cmake ninja-build nasm perl python3-six unicode-data dpkg-dev \
  protobuf-compiler protobuf-compiler-grpc
mkdir -p "$work/done"

# A security revision of openssl may be absent from a mirror: its original archive is enough.
download() {
  "$here/../fetch-source.sh" "$work" re2 c-ares abseil protobuf grpc &&
    { "$here/../fetch-source.sh" "$work" openssl || [ -n "$(ls "$work"/download/openssl_*.orig.tar.gz 2>/dev/null)" ]; }
}

unpack() {
  unpack_sources re2 c-ares abseil protobuf grpc
  rm -rf "$work/openssl"
  mkdir "$work/openssl"
  tar -xf "$work"/download/openssl_*.orig.tar.gz -C "$work/openssl" --strip-components=1
  patch -d "$work/grpc" -p1 <"$here/grpc-wine-partial-send.patch"
}

# with_cmake FOLDER [OPTION...]
with_cmake() {
  local source=$1
  shift
  cmake -S "$source" -B "$source/build-windows" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" \
    -DSLUICE_MINGW_PREFIX="$prefix" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_CXX_STANDARD=17 "$@"
  cmake --build "$source/build-windows" -j "$jobs"
  cmake --install "$source/build-windows"
}

c_ares() {
  with_cmake c-ares -DCARES_STATIC=ON -DCARES_SHARED=OFF -DCARES_BUILD_TOOLS=OFF -DCMAKE_C_FLAGS=-DINADDRSZ=4
}
protobuf() {
  with_cmake protobuf -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF -Dprotobuf_WITH_ZLIB=OFF
}
openssl() {
  cd openssl
  ./Configure mingw64 --cross-compile-prefix=x86_64-w64-mingw32- --prefix="$prefix" --libdir=lib no-shared no-tests \
    no-engine no-module no-legacy
  make -j "$jobs" build_libs
  make install_dev
}
grpc() {
  local options
  mapfile -t options < <(grpc_options)
  with_cmake grpc "${options[@]}" -DgRPC_BUILD_CODEGEN=OFF -DZLIB_USE_STATIC_LIBS=ON \
    -DCMAKE_C_FLAGS=-DCARES_STATICLIB -DCMAKE_CXX_FLAGS=-DCARES_STATICLIB
}

once download download
once unpack unpack
once re2 re2
once c-ares c_ares
once abseil abseil
once protobuf protobuf
once openssl openssl
once grpc grpc
rm -rf "$work"
touch "$prefix/.complete"
echo "make-deps.sh: made $prefix"
