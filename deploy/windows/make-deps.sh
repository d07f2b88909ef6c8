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

packages=(g++-mingw-w64-x86-64-posix libz-mingw-w64-dev cmake ninja-build nasm perl python3-six unicode-data dpkg-dev
  protobuf-compiler protobuf-compiler-grpc)
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
    { echo "make-deps.sh: apt-get install $package" >&2; exit 1; }
done

work=$prefix.work
mkdir -p "$work/done"
jobs=${SLUICE_BUILD_JOBS:-$(nproc)}

# once NAME FUNCTION: not again after it succeeded.
once() {
  [ ! -e "$work/done/$1" ] || return 0
  echo "make-deps.sh: $1"
  # Not before `||` or in an `if`: nothing in it would end by `set -e` there.
  local code
  set +e
  (
    set -e
    cd "$work"
    "$2"
  ) >"$work/$1.log" 2>&1
  code=$?
  set -e
  [ "$code" -eq 0 ] || { tail -n 30 "$work/$1.log" >&2; exit 1; }
  touch "$work/done/$1"
}

# A security revision of openssl may be absent from a mirror: its original archive is enough.
download() {
  "$here/fetch-source.sh" "$work" re2 c-ares abseil protobuf grpc &&
    { "$here/fetch-source.sh" "$work" openssl || [ -n "$(ls "$work"/download/openssl_*.orig.tar.gz 2>/dev/null)" ]; }
}

unpack() {
  local name
  for name in re2 c-ares abseil protobuf grpc; do
    rm -rf "$work/$name"
    dpkg-source --no-check -x "$work"/download/"$name"_*.dsc "$work/$name"
  done
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

# Debian strips the tables that re2's scripts make from the system's Unicode data.
re2() {
  (cd re2/re2 && perl make_perl_groups.pl >perl_groups.cc && /usr/bin/python3 make_unicode_casefold.py \
    >unicode_casefold.cc && /usr/bin/python3 make_unicode_groups.py >unicode_groups.cc)
  with_cmake re2 -DRE2_BUILD_TESTING=OFF
}
c_ares() {
  with_cmake c-ares -DCARES_STATIC=ON -DCARES_SHARED=OFF -DCARES_BUILD_TOOLS=OFF -DCMAKE_C_FLAGS=-DINADDRSZ=4
}
abseil() { with_cmake abseil -DABSL_PROPAGATE_CXX_STD=ON; }
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
  local provider language options=()
  for provider in ABSL CARES PROTOBUF RE2 SSL ZLIB; do options+=("-DgRPC_${provider}_PROVIDER=package"); done
  for language in CPP CSHARP NODE OBJECTIVE_C PHP PYTHON RUBY; do
    options+=("-DgRPC_BUILD_GRPC_${language}_PLUGIN=OFF")
  done
  with_cmake grpc "${options[@]}" -DgRPC_PROTOBUF_PACKAGE_TYPE=CONFIG -DgRPC_BUILD_TESTS=OFF \
    -DgRPC_BUILD_CODEGEN=OFF -DgRPC_BUILD_CSHARP_EXT=OFF -DOPENSSL_USE_STATIC_LIBS=ON -DZLIB_USE_STATIC_LIBS=ON \
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
