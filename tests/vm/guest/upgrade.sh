# SPDX-License-Identifier: Apache-2.0
# Newer packages, or another installation into the same places, while a program has a session.
# shellcheck shell=bash

install_newer_packages() {
  local before
  before=$(dpkg-query -W -f '${Version}' sluiced)
  check "newer packages are installed" env DEBIAN_FRONTEND=noninteractive dpkg -i --force-confold "$HERE"/next/*.deb
  check "dpkg has another version than before" test "$(dpkg-query -W -f '${Version}' sluiced)" != "$before"
}

# As `cmake --install` does it: each file is another one in the same place. Then what deploy/linux/README.md says.
install_tree_again() {
  check "another build is installed in the same places" cp -a --remove-destination /opt/sluice-next-tree/. /
  check "systemd-sysusers works" systemd-sysusers
  check "systemd-tmpfiles works beside the running daemon" systemd-tmpfiles --create /usr/lib/tmpfiles.d/sluice.conf
  check "systemctl daemon-reload works" systemctl daemon-reload
  check_has "the daemon that runs is the old one" "$(readlink "/proc/$(main_pid)/exe")" 'sluiced \(deleted\)$'
}

upgrade() {
  check "a program gets a session before the upgrade" start_victim upgraded
  if [ -d "$HERE/next" ]; then install_newer_packages; else install_tree_again; fi
  check "the daemon can be used after the upgrade" is_active sluiced.socket
  go_on upgraded
  # shellcheck disable=SC2086
  check_said upgraded "a session goes on over an upgrade" 0 $session_words new_context
  check_vector_add "a new program is served after the upgrade"
  check "systemctl restart brings the new version" systemctl restart sluiced.service
  check_equal "that runs the file that is installed" "$(command -v sluiced)" "$(readlink "/proc/$(main_pid)/exe")"
  check_vector_add "the new version serves programs"
}
