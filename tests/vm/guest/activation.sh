# SPDX-License-Identifier: Apache-2.0
# The machine comes up, and the first program that asks for OpenCL starts the daemon.
# shellcheck shell=bash

machine_is_up() {
  check "the machine is up" wait_for "$LONG" systemctl is-active --quiet multi-user.target
  check_equal "no unit has failed" "" "$(systemctl list-units --failed --no-legend --plain)"
  check_equal "control groups are version 2" cgroup2fs "$(stat -fc %T /sys/fs/cgroup)"
  # shellcheck disable=SC2154
  [ "$namespaces" = no ] || {
    say "SKIP controllers of control groups: this machine's own systemd or root may have them"
    return
  }
  local controllers name
  controllers=$(cat /sys/fs/cgroup/cgroup.controllers)
  for name in cpu io memory pids; do
    check_has "the control group's controller $name is there" "$(tr ' ' '\n' <<<"$controllers")" "^$name\$"
  done
  say "NOTE controllers: $controllers"
}

activation() {
  local before
  check "the socket is listened at from the start on" is_active sluiced.socket
  # By the packages, and as README.md has it for a build tree.
  check_equal "the service itself is not enabled" disabled "$(systemctl is-enabled sluiced.service 2>&1)"
  check_equal "the daemon is not started before somebody asks" inactive "$(systemctl is-active sluiced.service)"
  before=$SECONDS
  platforms=$(as_user env -u OCL_ICD_VENDORS clinfo -l 2>&1)
  say "NOTE the first clinfo took $((SECONDS - before)) s, the daemon's start and its search for devices among it"
  check_has "an ordinary user's clinfo sees Sluice" "$platforms" '^Platform #[0-9]+: Sluice \('
  check_has "an ordinary user's clinfo sees a device behind it" "$platforms" 'Device #0'
  check "the daemon was started by it" is_active sluiced.service
  check_equal "the service has a main process that runs sluiced" "$(command -v sluiced)" \
    "$(readlink "/proc/$(main_pid)/exe")"
  check_has "the journal has the daemon's start" "$(journalctl -u sluiced.service --no-pager)" 'sluiced.*ready'
}

after_reboot() {
  check_equal "no daemon runs before somebody asks" inactive "$(systemctl is-active sluiced.service)"
  check_equal "the clients' folder has the socket alone" broker.sock "$(ls -A /run/sluice/clients)"
  check_equal "the old place leads to it" clients/broker.sock "$(readlink /run/sluice/broker.sock)"
  check_has "an ordinary user's clinfo sees Sluice after a reboot" \
    "$(as_user env -u OCL_ICD_VENDORS clinfo -l 2>&1)" '^Platform #[0-9]+: Sluice \('
  check "the socket is listened at after a reboot" is_active sluiced.socket
  check_has "an ordinary user's vector_add is right after a reboot" \
    "$(as_user "$HERE/vector_add" 2>&1)" 'every element right'
  if [ "$namespaces" = yes ]; then
    say "SKIP the journal of the time before the reboot: the kernel, which tells times apart, is the same"
  else
    check_has "the journal of the time before it ends with the daemon's stop" \
      "$(journalctl -b -1 -u sluiced.service --no-pager)" 'stopped'
  fi
  check_has "the journal of this time begins with the daemon's start" \
    "$(journalctl -b -u sluiced.service --no-pager)" 'started'
}
