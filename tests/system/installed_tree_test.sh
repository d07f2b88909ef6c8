#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install --prefix` lays down is whole: every file that an installed file names is there, also when the
# prefix is another than the configured one, and programs can be made with it.
#   installed_tree_test.sh BUILD_DIR
set -euo pipefail
build=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
for prefix in /usr /opt/sluice; do
  tree=$root$prefix.tree
  DESTDIR=$tree cmake --install "$build" --prefix "$prefix" >"$root/log" 2>&1 || {
    cat "$root/log"
    exit 1
  }
  library=$(cat "$tree/etc/OpenCL/vendors/sluice.icd")
  unit=$tree$prefix/lib/systemd/system/sluiced.service
  daemon=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
  document=$(sed -n 's/^Documentation=file://p' "$unit")
  libraries=${library%/*}
  for file in "$library" "$daemon" "$document" "$prefix/bin/sluicectl" "$prefix/libexec/sluice/sluice-worker" \
    "$prefix/libexec/sluice/sluice-gateway" "$prefix/libexec/sluice/sluice-allocator" \
    "$libraries/sluice/libsluice_remote.so" "$libraries/sluice/sluice-network-helper" \
    "$libraries/sluice/sluice-resource-helper" "$libraries/libsluice.so" "$prefix/include/sluice/sluice.h" \
    "$prefix/include/CL/cl_sluice.h" "$prefix/lib/systemd/system/sluiced.socket" \
    "$prefix/share/doc/sluice/examples/sluiced.toml" "$prefix/lib/sysusers.d/sluice.conf" \
    "$prefix/lib/tmpfiles.d/sluice.conf" "$prefix/share/bash-completion/completions/sluicectl" \
    "$prefix/share/bash-completion/completions/sluiced"; do
    [ -f "$tree$file" ] || {
      echo "FAILED: $file is missing after cmake --install --prefix $prefix"
      exit 1
    }
  done
  # Each man page is there if scdoc was, and is one: no macro that nobody knows.
  if grep -q '^SLUICE_SCDOC:.*/scdoc$' "$build/CMakeCache.txt"; then
    for page in man1/sluicectl.1 man3/libsluice.3 man5/sluiced.toml.5 man7/sluice-opencl.7 man8/sluiced.8; do
      grep -q '^\.TH ' "$tree$prefix/share/man/$page" || {
        echo "FAILED: $prefix/share/man/$page is no man page"
        exit 1
      }
    done
  else
    echo "man pages are not checked: the build had no scdoc"
  fi
  for path in "$library" "$daemon" "$document"; do
    case $path in
      "$prefix"/*) ;;
      *) echo "FAILED: $path is not below $prefix"; exit 1 ;;
    esac
  done
  # A page names its neighbours as they lie where it is installed.
  while IFS=: read -r page link; do
    [ -e "$(dirname "$page")/$link" ] || {
      echo "FAILED: ${page#"$tree"} links to $link, which is not installed"
      exit 1
    }
  done < <(grep -roP --include='*.md' '\]\((?!\w+:|#)\K[^)#]+' "$tree$prefix/share/doc")
  for place in includedir:include libdir:lib; do
    path=$(pkg-config --variable="${place%:*}" "$tree$prefix/lib/pkgconfig/sluice.pc")
    [ "$(realpath -m "$path")" = "$tree$prefix/${place#*:}" ] || {
      echo "FAILED: sluice.pc names $path as ${place%:*} of a tree in $tree$prefix"
      exit 1
    }
  done
  # Each public header is enough by itself, in C and C++, with what pkg-config says; what it declares is in the library.
  printf '#include <sluice/sluice.h>\n#include <sluice/sluice.h>\n%s\n' \
    'int main(void) { return sluice_status_string(SLUICE_OK) == NULL; }' >"$root/library.c"
  printf '#include <CL/cl_sluice.h>\n#include <CL/cl_sluice.h>\n%s\n' \
    'int main(void) { cl_sluice_sharing_way way = CL_SHARING_WAY_IMPORT_SLUICE; return way != 1; }' >"$root/opencl.c"
  read -ra flags <<<"$(PKG_CONFIG_PATH=$tree$prefix/lib/pkgconfig pkg-config --cflags --libs sluice)"
  for compile in "cc -std=c99" "c++ -std=c++11 -x c++"; do
    for program in library opencl; do
      # shellcheck disable=SC2086
      $compile -pedantic -Wall -Wextra -Werror -DCL_TARGET_OPENCL_VERSION=120 "$root/$program.c" -x none "${flags[@]}" \
        -o "$root/$program" && LD_LIBRARY_PATH=$tree$prefix/lib "$root/$program" || {
        echo "FAILED: $program.c does not compile or run by \`$compile\` and the installed sluice.pc"
        exit 1
      }
    done
  done
  # The installed programs find each other: a daemon for the program, its worker, the driver.
  env -u OCL_ICD_VENDORS -u SLUICE_ENDPOINT "$tree$prefix/bin/sluicectl" run --private -- clinfo -l >"$root/devices" 2>&1 || true
  grep -q 'Sluice (' "$root/devices" || {
    cat "$root/devices"
    echo "FAILED: clinfo sees no Sluice platform through the tree installed for $prefix"
    exit 1
  }
  # So do those that go by the network: the gateway, and what sluicectl and the driver load for it.
  port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  printf '[[network]]\nlisten = "127.0.0.1:%s"\n' "$port" >"$root/network.toml"
  for command in "$tree$prefix/bin/sluicectl devices" "clinfo -l"; do
    # shellcheck disable=SC2016
    env -u OCL_ICD_VENDORS -u SLUICE_ENDPOINT "$tree$prefix/bin/sluicectl" run --private --config "$root/network.toml" -- \
      sh -c 'SLUICE_ENDPOINT=127.0.0.1:$1 exec $2' - "$port" "$command" >"$root/devices" 2>&1 </dev/null || true
    grep -qE 'Sluice \(|compute units' "$root/devices" || {
      cat "$root/devices"
      echo "FAILED: ${command##*/} sees nothing over the network through the tree installed for $prefix"
      exit 1
    }
  done
done
echo "installed trees are whole"
