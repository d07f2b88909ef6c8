# SPDX-License-Identifier: Apache-2.0
# Newer packages are installed while a program has a session.
# shellcheck shell=bash

upgrade() {
  local before
  if [ ! -d "$HERE/next" ]; then
    say "SKIP upgrade with a running session: this machine has an installed tree, no packages"
    return
  fi
  check "a program gets a session before the upgrade" start_victim upgraded
  before=$(dpkg-query -W -f '${Version}' sluiced)
  check "newer packages are installed" env DEBIAN_FRONTEND=noninteractive dpkg -i --force-confold "$HERE"/next/*.deb
  check "dpkg has another version than before" test "$(dpkg-query -W -f '${Version}' sluiced)" != "$before"
  check "the daemon can be used after the upgrade" is_active sluiced.socket
  go_on upgraded
  # shellcheck disable=SC2086
  check_said upgraded "a session goes on over an upgrade" 0 $session_words new_context
  check_vector_add "a new program is served after the upgrade"
  check "systemctl restart brings the new version" systemctl restart sluiced.service
  check_vector_add "the new version serves programs"
}
