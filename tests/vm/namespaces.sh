#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# namespaces.sh ROOT RESULTS DETAILS GROUPS: boots ROOT's systemd in namespaces of its own on this machine's kernel, with
# control groups of version 2 in the folder GROUPS (mounted there, and gone at the end), until it is powered off.
# No hardware, no network; /sys and /proc/sys are for reading. Exit code 0 if it ended by itself.
set -euo pipefail

# Inside: makes the folders of the kernel's, and becomes systemd.
inside() {
  local root=$1 name node
  mount --bind "$root" "$root"
  touch "$root/results" "$root/details"
  mount --bind "$2" "$root/results"
  mount --bind "$3" "$root/details"
  cd "$root"
  mount -t proc proc proc
  mount --bind proc/sys proc/sys
  mount -o remount,bind,ro proc/sys
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  for name in dev run; do mount -t tmpfs -o mode=755 tmpfs "$name"; done
  for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    IFS=: read -r name major minor <<<"$node"
    mknod -m 666 "dev/$name" c "$major" "$minor"
  done
  mknod -m 600 dev/vda b 254 0 # What the service may not open; nothing is mounted from it.
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
  mount -t tmpfs tmpfs dev/shm
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  for name in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${name%:*}" "dev/${name#*:}"; done
  for name in ttyS1:results ttyS2:details; do
    touch "dev/${name%:*}"
    mount --bind "${name#*:}" "dev/${name%:*}"
  done
  mkdir -p mnt/old
  pivot_root . mnt/old
  cd /
  umount -l /mnt/old
  exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=no </dev/null
}

if [ "$1" = inside ]; then
  shift
  inside "$@"
fi

root=$1 results=$2 details=$3 groups=$4
mount -t cgroup2 cgroup2 "$groups"
own=$groups/sluice-checks.$$
ended() {
  # What is left of a system that was ended from outside.
  for kill in "$own"/*/cgroup.kill; do [ ! -e "$kill" ] || echo 1 >"$kill"; done
  find "$own" -depth -type d -exec rmdir {} + 2>/dev/null || true
  umount -l "$groups"
}
trap ended EXIT
trap 'exit 1' TERM INT
mkdir "$own"
# A PID namespace's reboot ends its first process by SIGHUP, and its poweroff by SIGINT.
code=129
for ((start = 0; code == 129 && start < 3; ++start)); do
  mkdir "$own/$start"
  code=0
  # shellcheck disable=SC2016
  bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$own/$start" \
    unshare --cgroup --pid --mount --uts --ipc --net --fork --kill-child --propagation private -- \
    "$0" inside "$root" "$results" "$details" &
  wait $! || code=$?
done
[ "$code" = 130 ] || [ "$code" = 0 ] || { echo "namespaces.sh: it ended with $code" >&2 && exit 1; }
