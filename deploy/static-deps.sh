# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What windows/make-deps.sh and portable/make-deps.sh have in common; sourced by them. They set:
#   work      the folder of sources and build trees      jobs   how many compilers at once
# and define with_cmake FOLDER [OPTION...], which configures, builds and installs one source.

# need_packages PACKAGE...
need_packages() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ "${#missing[@]}" -eq 0 ] || { echo "make-deps.sh: apt-get install ${missing[*]}" >&2; exit 1; }
}

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

# unpack_sources NAME...: Debian's source packages, with Debian's patches.
unpack_sources() {
  local name
  for name in "$@"; do
    rm -rf "${work:?}/$name"
    dpkg-source --no-check -x "$work"/download/"$name"_*.dsc "$work/$name"
  done
}

# Debian strips the tables that re2's scripts make from the system's Unicode data.
re2() {
  (cd re2/re2 && perl make_perl_groups.pl >perl_groups.cc && /usr/bin/python3 make_unicode_casefold.py \
    >unicode_casefold.cc && /usr/bin/python3 make_unicode_groups.py >unicode_groups.cc)
  with_cmake re2 -DRE2_BUILD_TESTING=OFF
}
abseil() { with_cmake abseil -DABSL_PROPAGATE_CXX_STD=ON; }

# gRPC's options: everything from outside, and no code generators but those that are given as arguments.
grpc_options() {
  local provider language
  for provider in ABSL CARES PROTOBUF RE2 SSL ZLIB; do echo "-DgRPC_${provider}_PROVIDER=package"; done
  for language in CPP CSHARP NODE OBJECTIVE_C PHP PYTHON RUBY; do
    [[ " $* " == *" $language "* ]] || echo "-DgRPC_BUILD_GRPC_${language}_PLUGIN=OFF"
  done
  printf '%s\n' -DgRPC_PROTOBUF_PACKAGE_TYPE=CONFIG -DgRPC_BUILD_TESTS=OFF -DgRPC_BUILD_CSHARP_EXT=OFF \
    -DOPENSSL_USE_STATIC_LIBS=ON
}
