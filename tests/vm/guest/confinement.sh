# SPDX-License-Identifier: Apache-2.0
# What the unit forbids the daemon and its workers, asked of the running ones.
# shellcheck shell=bash

confinement() {
  local unit=sluiced.service score
  systemd-analyze security --no-pager "$unit" >"$STATE/security" 2>&1
  cat "$STATE/security" >"$DETAILS"
  score=$(sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\) .*/\1/p' "$STATE/security")
  say "NOTE systemd-analyze security: $score"
  check "the unit's exposure is $worst_score or better" awk -v got="${score:-10}" -v worst="$worst_score" \
    'BEGIN { exit !(got <= worst) }'
  namespaces_of_workers
  files_of_the_daemon
  devices_of_the_daemon
  processes_it_sees
}

# The unit lets workers have all layers of their sandbox.
namespaces_of_workers() {
  local kind worker
  worker=$(workers | head -1) # Of a session that identities() has left.
  check "there is a worker to look at" [ -e "/proc/${worker:-none}/ns/user" ]
  for kind in user net ipc uts mnt; do
    check "a worker's namespace is its own: $kind" [ "$(readlink "/proc/$worker/ns/$kind")" != \
      "$(readlink "/proc/$(main_pid)/ns/$kind")" ]
  done
  check_equal "a worker has no capability" 0000000000000000 "$(status_of "$worker" CapBnd)"
  check "a worker sees no home" [ ! -e "/proc/$worker/root/home" ]
}

# with_its_files COMMAND...: sees files as the daemon does, and is root without limits otherwise.
with_its_files() { nsenter --mount --target "$(main_pid)" "$@"; }

files_of_the_daemon() {
  local path
  check_equal "the daemon has a filter of system calls" 2 "$(status_of "$(main_pid)" Seccomp)"
  check_equal "so have its workers" 2 "$(status_of "$(workers | head -1)" Seccomp)"
  for path in /usr /etc /boot /opt /var/lib /root /run/systemd; do
    check_has "the daemon cannot write in $path" "$(with_its_files touch "$path/.sluice-check" 2>&1)" \
      'Read-only file system|Permission denied|No such file'
  done
  check_equal "the daemon sees no home" "" "$(with_its_files ls -A /home 2>&1 | grep -v 'Permission denied')"
  for path in /var/cache/sluice /run/sluice /run/sluice-admin /run/sluice-tenants; do
    [ -d "$path" ] || continue
    check "the daemon can write in $path" with_its_files sh -c 'touch "$1/.sluice-check" && rm "$1/.sluice-check"' - "$path"
  done
}

# As a process of the service's control group: a node without a driver says ENXIO where it may be opened, else EPERM.
open_device() {
  local node=/dev/sluice-check group
  group=/sys/fs/cgroup$(property sluiced.service ControlGroup)/broker
  rm -f "$node"
  mknod "$node" "$1" "$2" "$3"
  # shellcheck disable=SC2016
  sh -c 'echo $$ >"$1/cgroup.procs" && exec timeout 10 head -c 1 "$2"' - "$group" "$node" 2>&1 >/dev/null
  rm -f "$node"
}

devices_of_the_daemon() {
  check_has "the service may open DRM's render nodes" "$(open_device c 226 191)" 'No such device'
  check_has "the service may open NVIDIA's nodes" "$(open_device c 195 254)" 'No such device'
  check_equal "the service may open /dev/zero" "" "$(open_device c 1 5)"
  check_has "the service may not open the disk" "$(open_device b "$((0x$(stat -c %t /dev/vda)))" 0)" 'Operation not permitted'
  check_has "the service may not open the machine's memory" "$(open_device c 1 1)" 'Operation not permitted'
  check_has "the service may not open a terminal" "$(open_device c 4 64)" 'Operation not permitted'
}

# The broker gives the user id of a tenant to another only when no process has it, and looks in /proc. Workers see
# nobody's processes but their own.
processes_it_sees() {
  local worker uid group
  check_has "the broker sees the processes of all users" "$(nsenter --mount --target "$(main_pid)" \
    setpriv --regid 0 --clear-groups --inh-caps -all --bounding-set -all ls /proc 2>&1)" "^$(pgrep_victim)\$"
  worker=$(workers | head -1)
  uid=$(status_of "$worker" Uid | cut -f1)
  group=$(status_of "$worker" Gid | cut -f1)
  check_has_not "a worker does not see the broker" "$(nsenter --mount --target "$worker" \
    setpriv --reuid "$uid" --regid "$group" --clear-groups ls /proc 2>&1)" "^($(main_pid)|1)\$"
}

# The ordinary user's program that has a session.
pgrep_victim() { sed -n 's/^\([0-9]*\)$/\1/p' <(for p in /proc/[0-9]*; do
  [ "$(cat "$p/comm" 2>/dev/null)" = victim ] && echo "${p#/proc/}"
done) | head -1; }
