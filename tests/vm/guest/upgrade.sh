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

# --- from the first version, by deploy/guides/upgrading.md -----------------------------------------------------

OLD_ICD=/opt/sluice-old-client/sluice.icd # The old driver outside of the installation, as an image has it.

# start_container NAME SOURCE: a mount namespace whose /run/sluice is SOURCE, as a container has it mounted. Its process is
# in container_NAME.
start_container() {
  rm -f "$STATE/container"
  # shellcheck disable=SC2016
  unshare --mount --propagation private sh -c 'mkdir -p /mnt/given && mount --bind "$1" /mnt/given &&
    mount -t tmpfs tmpfs /run && mkdir /run/sluice && mount --move /mnt/given /run/sluice &&
    echo mounted && exec sleep infinity' - "$2" >"$STATE/container" &
  printf -v "container_$1" %s $!
  wait_for "$LONG" grep -q mounted "$STATE/container"
}

# in_container NAME: vector_add there, with the old driver at its default place.
in_container() {
  local -n holder=container_$1
  nsenter --mount --target "$holder" timeout "$LONG" runuser -u "$USER_NAME" -- \
    env OCL_ICD_VENDORS="$OLD_ICD" "$HERE/vector_add" 2>&1
}

old_version_runs() {
  check "the old version's socket is listened at" is_active sluiced.socket
  configure '[broker]' 'socket = "/run/sluice/broker.sock"' 'admin_socket = "/run/sluice/admin.sock"' 'drain_timeout_ms = 600000'
  check_vector_add "the old version serves programs"
  check "a container of before has /run/sluice" start_container before /run/sluice
  check_has "and computes" "$(in_container before)" 'every element right'
  check "a program gets a session of the old version's" start_victim old
}

# Step 1 of the guide, with the new sluiced before it is installed.
check_old_config() {
  local said new=/opt/sluice-next-tree
  if [ -d /opt/sluice-now ]; then
    new=$STATE/unpacked
    check "the new sluiced is taken out of its package" dpkg-deb -x /opt/sluice-now/sluiced_*.deb "$new"
  fi
  new=$new/usr/bin/sluiced
  said=$("$new" --check-config "$CONFIG" 2>&1)
  check_equal "the new sluiced takes the old version's configuration" 0 $?
  check_has "it names the clients' socket, which has moved" "$said" 'socket.*/run/sluice/clients/broker\.sock'
  check_has "and the administration socket" "$said" 'admin_socket'
  configure '[broker]' 'drain_timeout_ms = 600000'
  check_equal "and has nothing to say to the mended one" 0 "$("$new" --check-config "$CONFIG" 2>&1 | grep -c warning)"
}

# Step 2, the part between stop and start. Whoever goes to packages removes what cmake has installed first.
install_over_old() {
  if [ -d /opt/sluice-now ]; then
    check "the old units are disabled" systemctl disable sluiced.socket sluiced.service
    check "the old version's files are removed" xargs -d '\n' rm -f </opt/sluice-old-manifest
    check "the packages are installed" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-confold /opt/sluice-now/*.deb
    check_equal "the .icd file is the package's" libsluice_icd.so "$(cat /etc/OpenCL/vendors/sluice.icd)"
    check "the packages have started the socket" is_active sluiced.socket
    check_equal "and no daemon" inactive "$(systemctl is-active sluiced.service)"
    return
  fi
  check "a build is installed in the same places" cp -a --remove-destination /opt/sluice-next-tree/. /
  check "systemd-sysusers works" systemd-sysusers
  check "systemd-tmpfiles works" systemd-tmpfiles --create
  check "systemctl daemon-reload works" systemctl daemon-reload
  check "the socket is started" systemctl start sluiced.socket
}

upgrade_from_old() {
  local job
  old_version_runs
  check_old_config
  # Step 2. The old one waits for its session, which ends well.
  systemctl stop sluiced.socket sluiced.service &
  job=$!
  check "the old daemon waits for its session" wait_for "$LONG" journal_has 'draining: no new sessions.*sessions=1'
  go_on old
  # shellcheck disable=SC2086
  check_said old "the session goes on to its end" 0 $session_words
  check "socket and daemon have stopped" wait "$job"
  install_over_old
  check_vector_add "programs are served"
  check_equal "the daemon is the one that is installed" "$(command -v sluiced)" "$(readlink "/proc/$(main_pid)/exe")"
  check_equal "the clients' folder has the socket alone" broker.sock "$(ls -A /run/sluice/clients)"
  check_equal "the old place leads to it" clients/broker.sock "$(readlink /run/sluice/broker.sock)"
  check_has_not "the daemon warns of nothing" "$(journalctl -u sluiced.service --no-pager -o cat _PID="$(main_pid)")" '^warning'
  check "doctor finds nothing wrong, root's" sluicectl doctor --timeout-ms 300000
  check "nor does an ordinary user's" as_user sluicectl doctor --timeout-ms 300000
  # Step 5.
  check_has "the container that ran goes on" "$(in_container before)" 'every element right'
  check "a container of the old version's has the new folder in the old place" start_container after /run/sluice/clients
  check_has "and computes" "$(in_container after)" 'every element right'
  # Step 6.
  check "a user joins sluice-monitor" usermod -aG sluice-monitor "$USER_NAME"
  check "and looks at sessions" as_user sluicectl sessions
  gpasswd -d "$USER_NAME" sluice-monitor >/dev/null
  # shellcheck disable=SC2154
  kill "$container_before" "$container_after"
}
