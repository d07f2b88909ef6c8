#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual machine, once at each start of it: which checks are due, and what happens after them.
# shellcheck disable=SC1091,SC2154
set -u
cd /opt/sluice-checks || exit 1
. ./settings # checks, reboots, namespaces, worst_score
. ./lib.sh
. ./activation.sh
. ./service.sh
. ./confinement.sh
. ./control_groups.sh
. ./upgrade.sh
. ./trouble.sh
mkdir -p "$STATE"
[ "$namespaces" = yes ] || for port in "$RESULTS" "$DETAILS"; do stty -F "$port" raw -echo; done

leave() {
  # Everything that a person needs to understand a failure.
  {
    cat "/proc/$(main_pid)/mountinfo"
    journalctl --no-pager -o short-precise -u sluiced.service -u sluiced.socket -u sluice-checks.service
    journalctl --no-pager -k -p warning
    systemctl --no-pager status sluiced.service sluiced.socket
  } >"$DETAILS" 2>&1
  say "END $(cat "$STATE/verdicts")"
  systemctl --no-block poweroff
  exit 0
}

if [ ! -e "$STATE/rebooted" ]; then
  echo 0 >"$STATE/verdicts"
  say "NOTE up after $(cut -d' ' -f1 /proc/uptime) s: $(. /etc/os-release && echo "$PRETTY_NAME"), $(systemctl --version | head -1), kernel $(uname -r)"
  machine_is_up
  for part in $checks; do "$part"; done
  [ "$reboots" = yes ] || leave
  touch "$STATE/rebooted"
  say "NOTE rebooting after $(cut -d' ' -f1 /proc/uptime) s"
  systemctl --no-block reboot
else
  say "NOTE up again after $(cut -d' ' -f1 /proc/uptime) s"
  machine_is_up
  after_reboot
  leave
fi
