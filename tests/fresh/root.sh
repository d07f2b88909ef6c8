#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Minimal Debian systems in folders, and commands run in them as on a machine of their own.
#
#   tests/fresh/root.sh make RELEASE DIR            bookworm, trixie, bullseye or unstable: debootstrap's minbase, with
#                                                   ca-certificates, git and sudo, and a user "tester" who may use sudo
#   tests/fresh/root.sh run DIR [OPTION]... -- COMMAND [ARGUMENT]...
#       --user NAME          as this user (default: root)
#       --bind SOURCE:PATH   a folder or file of this machine at PATH in there; may be given several times
#       --ro-bind SOURCE:PATH   the same, for reading
#       --no-network         with a network of its own, which has loopback only
#
# `make` keeps each release's tarball in ${SLUICE_ROOT_CACHE:-$HOME/.cache/sluice/roots} for 7 days, so that the next
# root takes seconds. `run` has a mount, PID and IPC namespace of its own, /proc, /sys, /dev and this machine's
# resolver; what it started ends with it, and no mount is left behind. Both need root.
set -euo pipefail
usage() { sed -n '3,15s/^# \{0,1\}//p' "$0"; }
die() {
  echo "root.sh: $*" >&2
  exit 2
}

make_root() {
  [ $# -eq 2 ] || die "make takes RELEASE and DIR"
  local release=$1 dir=$2 cache=${SLUICE_ROOT_CACHE:-$HOME/.cache/sluice/roots} tarball work
  [ ! -e "$dir" ] || die "$dir exists already"
  command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
  tarball=$cache/$release.tar
  mkdir -p "$cache"
  if [ -z "$(find "$tarball" -mtime -7 2>/dev/null)" ]; then
    work=$(mktemp -d "$cache/$release.XXXXXX")
    debootstrap --variant=minbase --include=ca-certificates,git,sudo "$release" "$work/root" \
      "${SLUICE_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/log" 2>&1 || {
      tail -n 20 "$work/log" >&2
      rm -rf "$work"
      die "debootstrap $release failed; its last lines are above"
    }
    # sudo's question for a password has nobody to answer it.
    chroot "$work/root" useradd --create-home --shell /bin/bash tester
    echo 'tester ALL=(ALL) NOPASSWD: ALL' >"$work/root/etc/sudoers.d/tester"
    tar -C "$work/root" -cf "$work/tar" .
    mv "$work/tar" "$tarball"
    rm -rf "$work"
  fi
  mkdir -p "$dir"
  tar -C "$dir" -xpf "$tarball"
}

# In the namespaces: the mounts, then the command.
enter() {
  local dir=$1 user=$2 binds=$3 source path mode
  shift 3
  mount --bind "$dir" "$dir"
  mount -t proc proc "$dir/proc"
  mount --rbind /sys "$dir/sys"
  mount --rbind /dev "$dir/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$dir/dev/shm"
  mount -t tmpfs -o mode=0755 tmpfs "$dir/run"
  cp -L /etc/resolv.conf "$dir/etc/resolv.conf" 2>/dev/null || true
  # What Debian's installer writes there.
  grep -qs "^127.0.0.1" "$dir/etc/hosts" || echo "127.0.0.1 localhost" >>"$dir/etc/hosts"
  grep -qs " $(hostname)\$" "$dir/etc/hosts" || echo "127.0.1.1 $(hostname)" >>"$dir/etc/hosts"
  while IFS=: read -r mode source path; do
    [ -n "$source" ] || continue
    if [ -d "$source" ]; then mkdir -p "$dir$path"; else mkdir -p "$(dirname "$dir$path")" && touch "$dir$path"; fi
    mount --rbind "$source" "$dir$path"
    [ "$mode" = rw ] || mount -o remount,bind,ro "$dir$path"
  done <<<"$binds"
  local environment=(HOME="$(awk -F: -v u="$user" '$1 == u { print $6 }' "$dir/etc/passwd")" USER="$user" LOGNAME="$user"
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM="${TERM:-dumb}")
  # A root of its own, as a machine has: the kernel lets nobody in a chroot make a user namespace.
  cd "$dir"
  pivot_root . .
  umount -l .
  cd /
  exec chroot --userspec="$user" --groups="$(id -G "$user" | tr ' ' ,)" / env -i "${environment[@]}" "$@"
}

run_in_root() {
  local dir=${1:?root.sh: run takes DIR} user=root binds="" namespaces=()
  shift
  [ -d "$dir/etc" ] || die "$dir holds no system: tests/fresh/root.sh make RELEASE $dir"
  while [ $# -gt 0 ]; do
    case $1 in
      --user) user=$2; shift ;;
      --bind) binds+="rw:$2"$'\n'; shift ;;
      --ro-bind) binds+="ro:$2"$'\n'; shift ;;
      --no-network) namespaces+=(--net) ;;
      --) shift; break ;;
      *) die "unknown option $1 of run" ;;
    esac
    shift
  done
  [ $# -gt 0 ] || die "run takes -- COMMAND"
  grep -qs "^$user:" "$dir/etc/passwd" || die "$dir has no user $user"
  # --kill-child: what was started in there ends with this script, however that ends.
  exec unshare --mount --propagation private --pid --fork --kill-child --ipc "${namespaces[@]}" \
    bash "$0" enter "$(realpath "$dir")" "$user" "$binds" "$@"
}

[ "$(id -u)" -eq 0 ] || die "needs root, for chroot and mounts"
case ${1:-} in
  make) shift; make_root "$@" ;;
  run) shift; run_in_root "$@" ;;
  enter) shift; enter "$@" ;;
  -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
