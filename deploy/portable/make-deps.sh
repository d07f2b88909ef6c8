#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the prefix of static, position-independent libraries that the portable client links: zlib, abseil, re2, c-ares,
# protobuf, OpenSSL, gRPC; and the generators protoc and grpc_cpp_plugin. With this system's compiler, from Debian 12's
# source packages: build.sh runs it in a root of the release that the client is for.
#
#   deploy/portable/make-deps.sh PREFIX            about 30 minutes of one core
#   deploy/portable/make-deps.sh PREFIX ARCHIVE    unpacks a prefix that was made before (a .tar.xz)
#
# Does nothing if PREFIX is complete. The sources and build trees stay in PREFIX.work until the end, so that a run that
# was interrupted goes on where it was. PREFIX/sources.txt names the sources, PREFIX/licenses has a text of each: a
# prefix of before that had none gets them. SLUICE_BUILD_JOBS: compilers at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] && [ $# -le 2 ] && [[ $1 != -* ]] || { sed -n '3,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
if [ $# -eq 2 ] && [ ! -e "$prefix/.complete" ]; then
  tar -xf "$2" -C "$prefix" --strip-components=1
  [ -e "$prefix/.complete" ] || { echo "make-deps.sh: $2 holds no complete prefix" >&2; exit 1; }
fi
[ ! -e "$prefix/.complete" ] || [ ! -d "$prefix/licenses" ] || { echo "make-deps.sh: $prefix is complete"; exit 0; }

work=$prefix.work
jobs=${SLUICE_BUILD_JOBS:-$(nproc)}
. "$here/../static-deps.sh"
need_packages g++ cmake ninja-build make perl python3 python3-six unicode-data dpkg-dev
mkdir -p "$work/done"
sources=(zlib re2 c-ares abseil protobuf openssl grpc)
# One section a function, so that the linker can leave out what the client does not call.
flags="-O2 -g0 -DNDEBUG -fPIC -ffunction-sections -fdata-sections -fstack-protector-strong -D_FORTIFY_SOURCE=2"
flags+=" -ffile-prefix-map=$work=."  # Messages name the file that they come from, not the folder that it lay in.
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

download() { "$here/../fetch-source.sh" --suite bookworm "$work" "${sources[@]}"; }
# Debian's texts, which say what applies to which file.
licenses() {
  local name
  rm -rf licenses
  mkdir licenses
  for name in "${sources[@]}"; do tar -xOf download/"$name"_*.debian.tar.* debian/copyright >"licenses/$name.txt"; done
  mv licenses "$prefix/"
}
unpack() { unpack_sources "${sources[@]}"; }

# configure FOLDER [OPTION...]
configure() {
  local source=$1
  shift
  cmake -S "$source" -B "$source/build-static" -G Ninja "${launcher[@]}" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF \
    -DCMAKE_CXX_STANDARD=17 "$@"
}
with_cmake() {
  configure "$@"
  cmake --build "$1/build-static" -j "$jobs"
  cmake --install "$1/build-static"
}

zlib() {
  cd zlib
  CFLAGS=$flags ./configure --static --prefix="$prefix"
  make -j "$jobs" libz.a
  make install
}
c_ares() { with_cmake c-ares -DCARES_STATIC=ON -DCARES_STATIC_PIC=ON -DCARES_SHARED=OFF -DCARES_BUILD_TOOLS=OFF; }
protobuf() { with_cmake protobuf -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_WITH_ZLIB=OFF; }

# Nothing of it is read from the machine that the client runs on: no configuration, no module, no engine. What TLS 1.2
# and 1.3 do not use is left out.
openssl() {
  local option without=()
  for option in shared tests engine module legacy autoload-config dso dtls srp ts cms ct comp idea seed mdc2 whirlpool \
    sm2 sm3 sm4 bf cast rc2 rc4 md4 gost; do without+=("no-$option"); done
  cd openssl
  [ -e Makefile ] || ./Configure linux-x86_64 --prefix="$prefix" --libdir=lib --openssldir=/etc/ssl "${without[@]}" "$flags"
  # The two folders are compiled in, although nothing is loaded from them: no prefix of this machine in the client.
  make -j "$jobs" build_libs MODULESDIR=/usr/lib/ossl-modules ENGINESDIR=/usr/lib/engines-3
  make install_dev
}

# xDS, by which a mesh configures its clients, is left out, as Bazel does it by the same name (GRPC_NO_XDS): half of the
# core's files. Nor what carries gRPC between programs of Android.
without_xds() {
  local files
  files='src/core/ext/xds/|lb_policy/xds/|resolver/(xds|google_c2p)/|filters/(rbac|server_config_selector)/'
  files+='|credentials/xds/|src/cpp/(client|server)/xds_|upb-generated/(envoy|udpa|xds/(annotations|core|type))/'
  files+='|upbdefs-generated/|transport/binder/|xds_channel_stack_modifier|xds_server_config_fetcher'
  sed -Ei "\\:^ +($files|src/core/.*($files)):d" grpc/CMakeLists.txt
}

# What most of gRPC's files include, compiled once: two thirds of their time goes into reading it.
grpc_common_headers() {
  local header library
  mkdir -p grpc-common
  {
    echo '#include <grpc/support/port_platform.h>'
    for header in channel/channel_stack config/core_configuration surface/call security/credentials/credentials \
      transport/transport resolver/resolver json/json; do echo "#include \"src/core/lib/$header.h\""; done
  } >grpc-common/common.h
  g++ -std=gnu++17 $flags -Igrpc -Igrpc/include -Igrpc/src/core/ext/upb-generated -Igrpc/third_party/upb -I"$prefix/include" \
    -x c++-header grpc-common/common.h -o grpc-common/common.h.gch
  # Of the libraries, not of the generator: what the headers define would want the core linked.
  for library in grpc grpc++; do
    echo "add_compile_options(\"\$<\$<AND:\$<COMPILE_LANGUAGE:CXX>,\$<STREQUAL:\$<TARGET_PROPERTY:NAME>,$library>>:SHELL:-include" \
      "$work/grpc-common/common.h>\")"
  done >grpc-common/include.cmake
}

# Its targets, not all of it: "all" compiles the core a second time, without TLS, and its install wants that.
grpc() {
  local options library
  without_xds
  flags+=" -DGRPC_NO_XDS"
  launcher=()  # ccache does not look into what was compiled beforehand.
  [ -e grpc-common/include.cmake ] || grpc_common_headers
  mapfile -t options < <(grpc_options CPP)
  configure grpc "${options[@]}" -DgRPC_BUILD_CODEGEN=ON -DCMAKE_PROJECT_grpc_INCLUDE="$work/grpc-common/include.cmake"
  cmake --build grpc/build-static -j "$jobs" --target grpc++ grpc_cpp_plugin
  for library in grpc++ grpc gpr upb address_sorting; do cp "grpc/build-static/lib$library.a" "$prefix/lib/"; done
  cp grpc/build-static/grpc_cpp_plugin "$prefix/bin/"
  cp -r grpc/include/grpc grpc/include/grpcpp "$prefix/include/"
}

once download download
once licenses licenses
if [ -e "$prefix/.complete" ]; then
  rm -rf "$work"
  echo "make-deps.sh: $prefix is complete, and has its licences now"
  exit 0
fi
once unpack unpack
once zlib zlib
once re2 re2
once c-ares c_ares
once abseil abseil
once protobuf protobuf
once openssl openssl
once grpc grpc
{
  echo "Built with $(g++ --version | head -n 1), $(ldd --version | head -n 1), from Debian's source packages:"
  sed -nE 's/^(Source|Version): //p' "$work"/download/*.dsc | paste -d ' ' - - | sort
} >"$prefix/sources.txt"
touch "$prefix/.complete"
rm -rf "$work"
echo "make-deps.sh: made $prefix"
