# SPDX-License-Identifier: Apache-2.0
# What operators meet on a bad day: a disk that is full, and a daemon that crashes again and again.
# shellcheck shell=bash

# The cache's part of /var, as a small disk of its own, so that the machine's can still be written.
full_var() {
  local cache=/var/cache/sluice
  systemctl stop sluiced.socket sluiced.service
  check "/var/cache/sluice is a small disk" mount -t tmpfs -o size=4m,mode=0755 tmpfs "$cache"
  head -c 8M /dev/zero >"$cache/filler" 2>/dev/null
  check_equal "it is full" 0 "$(df --output=avail "$cache" | tail -1 | tr -d ' ')"
  check "the daemon starts with a full disk" systemctl start sluiced.socket sluiced.service
  check_has_not "a program that has to compile does not compute" "$(vector_add)" 'every element right'
  check "the journal says which place is full, and what to do" wait_for "$LONG" sh -c \
    'journalctl -b -u sluiced.service --no-pager -o cat -p warning | grep -qE "No space left on device at .*make room there"'
  check "the daemon goes on" is_active sluiced.service
  rm "$cache/filler"
  check_vector_add "with room again the same daemon serves programs"
  systemctl stop sluiced.socket sluiced.service
  umount "$cache"
  check "the daemon starts with the disk of before" systemctl start sluiced.socket sluiced.service
  check_vector_add "and serves programs"
}

has_new_main_or_failed() { has_new_main "$1" || systemctl is-failed --quiet sluiced.service; }

# The unit tries a daemon that crashes for ever. Operators who set a limit find the reason, and get out of it by hand.
crash_loop() {
  local limit=/run/systemd/system/sluiced.service.d/limit.conf shown before crash
  mkdir -p "${limit%/*}"
  printf '[Unit]\nStartLimitIntervalSec=1d\nStartLimitBurst=2\n' >"$limit"
  systemctl daemon-reload
  systemctl reset-failed sluiced.service 2>/dev/null
  check "a program gets a session before the crashes" start_victim looped
  for crash in 1 2 3; do
    before=$(main_pid)
    kill -SEGV "$before"
    check "crash $crash: a new daemon, or the end" wait_for "$LONG" has_new_main_or_failed "$before"
  done
  check_equal "after two restarts the service has failed" failed "$(systemctl is-failed sluiced.service)"
  shown=$(systemctl status --no-pager -l sluiced.service 2>&1)
  check_has "systemctl status says how the daemon ended" "$shown" 'Active: failed.*(signal|core-dump)'
  check_has "the journal says that it is not started again" "$(unit_journal)" 'Start request repeated too quickly'
  check_has "programs that come then see no platform" "$(vector_add)" 'none of the 0 platforms|clGetPlatformIDs failed'
  go_on looped
  # shellcheck disable=SC2086
  check_said looped "a session goes on to its end over all crashes" 0 $session_words
  rm "$limit"
  systemctl daemon-reload
  check "systemctl reset-failed works" systemctl reset-failed sluiced.service
  systemctl reset-failed sluiced.socket 2>/dev/null
  check "systemctl start works then" systemctl start sluiced.socket sluiced.service
  check_vector_add "and programs are served"
}
