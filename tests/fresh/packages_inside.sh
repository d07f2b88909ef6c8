#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The part of packages.sh that runs in the empty root: /repository/1 and /2 hold two versions, /tests this folder's parent.
set -uo pipefail
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
export DEBIAN_FRONTEND=noninteractive
work=$(mktemp -d)
chmod 0755 "$work"
failed=0
daemon=

# check WHAT CONDITION...: a command with its arguments; what it prints is shown if it fails.
check() {
  local what=$1 code=0
  shift
  "$@" >"$work/check.log" 2>&1 || code=$?
  if [ "$code" -eq 0 ]; then
    echo "PASS $what on $release"
  else
    tail -n 30 "$work/check.log" | sed 's/^/    /'
    echo "FAIL $what on $release: \`$*\` ended with $code"
    failed=1
  fi
}
# must WHAT COMMAND...: the same, for what all later checks stand on.
must() {
  local before=$failed
  failed=0
  check "$@"
  [ "$failed" -eq 0 ] || exit 1
  failed=$before
}
use_version() {
  echo "deb [trusted=yes] file:/repository/$1 ./" >/etc/apt/sources.list.d/sluice.list
  apt-get update -q
}
as_user() { runuser -u tester -- "$@"; }
says() {  # says TEXT COMMAND...: its output has a line that the pattern fits.
  local text=$1
  shift
  "$@" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
  cat "$work/said"
  grep -q -- "$text" "$work/said"
}
says_not() {
  local text=$1
  shift
  "$@" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
  cat "$work/said"
  ! grep -qi -- "$text" "$work/said"
}
until_true() {  # until_true SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# As sluiced.service does it: its command, without more rights than it leaves.
start_daemon() {
  local unit command rights
  unit=$(ls /usr/lib/systemd/system/sluiced.service /lib/systemd/system/sluiced.service 2>/dev/null | head -n 1)
  command=$(sed -n 's/^ExecStart=//p' "$unit")
  rights=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
  # shellcheck disable=SC2086
  setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,$rights" $command >>"$work/sluiced.log" 2>&1 </dev/null &
  daemon=$!
  until_true 60 as_user sluicectl devices || { cat "$work/sluiced.log"; return 1; }
}
stop_daemon() {
  kill "$daemon" && { wait "$daemon" || true; }
}
leftovers() {  # Nothing of ours but the user, which stays (Debian's way), what is in /run, and this test's own files.
  local left
  left=$(find / -xdev \( -path /run -o -path /proc -o -path /sys -o -path /dev -o -path /tests -o -path /repository \
    -o -path /var/lib/apt -o -path /var/cache/apt -o -path /var/log -o -path /etc/apt -o -path "$work" \) -prune \
    -o -iname '*sluice*' -print; find /etc/sluice -iname '*sluice*' 2>/dev/null)
  echo "$left"
  [ -z "$left" ]
}
worker_ids() { pgrep -x sluice-worker | sort; }
workers_have_own_user() {
  local pid
  for pid in $(worker_ids); do
    stat -c '%u %n' "/proc/$pid"
    [ "$(stat -c %u "/proc/$pid")" -ge 1000 ] || return 1
  done
  [ -n "$(worker_ids)" ]
}

# 1. The driver alone, as in a container: no platform, no message, no failure.
must "the list of packages is read" use_version 1
must "the driver's package is installed alone" \
  apt-get install -y -q --no-install-recommends sluice-opencl-icd clinfo ocl-icd-libopencl1
check "without a daemon a program sees no platform, and no message" says_not sluice clinfo -l

# 2. All of it. An ordinary user's programs.
must "sluiced is installed, and brings driver and tool" apt-get install -y -q sluiced
must "what the test's programs need is installed" \
  apt-get install -y -q --no-install-recommends gcc libc6-dev ocl-icd-opencl-dev libsluice-dev pkgconf procps
check "no installed file differs from its package" sh -c '! dpkg --verify sluiced sluice-opencl-icd sluice-tools libsluice0 | grep .'
check "every library that is needed is there" sh -c \
  '! ldd /usr/bin/sluiced /usr/bin/sluicectl /usr/libexec/sluice/* /usr/lib/*/libsluice*.so* /usr/lib/*/sluice/* | grep "not found"'
check "the user sluice is made" getent passwd sluice
check "the configuration is accepted" sluiced --check-config /etc/sluice/sluiced.toml
must "the daemon starts as its unit says" start_daemon
check "an ordinary user's clinfo lists the device" says '^Platform #[0-9]*: Sluice (' as_user clinfo -l
gcc -O2 -o "$work/vector_add" /tests/system/programs/vector_add.c -lOpenCL
gcc -O2 -o "$work/victim" /tests/system/programs/victim.c -lOpenCL
export SLUICE_TEST_KIND=ring
check "an ordinary user's vector_add computes on it" says 'every element right$' as_user "$work/vector_add"
check "doctor finds nothing wrong" as_user sluicectl doctor

# What containers are given: sluice-tools' folder and the CDI file that mounts it.
mounted_paths_are_there() {
  local paths path
  paths=$(sed -n 's/.*"hostPath": "\(.*\)".*/\1/p' /etc/cdi/sluice.json)
  echo "$paths"
  [ "$(wc -w <<<"$paths")" -eq 3 ] || return 1
  for path in $paths; do [ -e "$path" ] || { echo "$path is missing" && return 1; }; done
}
check "the CDI file is sluice-tools'" says '^sluice-tools: ' dpkg-query -S /etc/cdi/sluice.json
check "it passes sluicectl cdi validate" sluicectl cdi validate /etc/cdi/sluice.json
check "container runtimes find the device in it" says 'sluice.dev/gpu=all' sluicectl cdi list
check "the folders and the file that it mounts are there" mounted_paths_are_there
check "export-client copies a client that needs glibc alone" says '"self_contained": true' \
  sluicectl export-client "$work/client" --json
# shellcheck disable=SC2046
check "a program is made with libsluice-dev" gcc -Wall -Werror -o "$work/share" /share.c \
  $(pkg-config --cflags --libs sluice)
check "and shares memory" says 'the other has read$' as_user "$work/share"

# 3. An upgrade, while a program of an ordinary user has a session. Its configuration was changed by hand.
sed -i 's/^log_level = .*/log_level = "warning"  # by hand/' /etc/sluice/sluiced.toml
mkfifo "$work/line"
as_user "$work/victim" idle <"$work/line" >"$work/victim.log" 2>&1 &
victim=$!
exec 7>"$work/line"
must "a program of an ordinary user has a session" until_true 60 grep -q '^READY idle' "$work/victim.log"
check "its worker is not root" workers_have_own_user
before=$(worker_ids)
must "the list of newer packages is read" use_version 2
must "an upgrade goes through" apt-get dist-upgrade -y -q
cp "$work/check.log" "$work/upgrade.log"
# shellcheck disable=SC2016
check "all packages are of the new version" sh -c 'cat "$1" && [ "$(dpkg-query -W -f "\${Version}\n" "*sluice*" | grep -c "+later$")" -eq 5 ]' - \
  "$work/upgrade.log"
check "the daemon runs on" kill -0 "$daemon"
check "and so does the session's worker" sh -c "[ -n '$before' ] && kill -0 $before"
echo >&7
exec 7>&-
wait "$victim"
code=$?
check "the program ends well" [ "$code" -eq 0 ]
for fact in ended_with later_launch later_read later_create later_finish new_context; do
  check "across the upgrade: $fact is CL_SUCCESS" says "^$fact 0\$" cat "$work/victim.log"
done
check "a new program gets a session of the daemon that still runs" says 'every element right$' as_user "$work/vector_add"
check "what was changed by hand in sluiced.toml is still there" grep -q 'by hand$' /etc/sluice/sluiced.toml
stop_daemon
check "the new version's daemon starts" start_daemon
check "and serves" says 'every element right$' as_user "$work/vector_add"

# 4. Remove, purge, and once more. systemd would stop the service; here it is stopped by hand.
stop_daemon
packages="sluiced sluice-tools sluice-opencl-icd libsluice0 libsluice-dev"
# shellcheck disable=SC2086
check "the packages are removed" apt-get remove -y -q $packages
check "without the programs" sh -c '! ls /usr/bin/sluice* /usr/libexec/sluice /usr/lib/*/libsluice* /usr/lib/*/sluice 2>/dev/null | grep .'
check "but with the configuration" grep -q 'by hand$' /etc/sluice/sluiced.toml
check "programs see no Sluice then, and no message" says_not sluice clinfo -l
# shellcheck disable=SC2086
check "the packages are purged" apt-get purge -y -q $packages
check "without anything left" leftovers
must "sluiced is installed again" apt-get install -y -q sluiced
check "and starts" start_daemon
check "and serves an ordinary user" says 'every element right$' as_user "$work/vector_add"
stop_daemon
exit "$failed"
