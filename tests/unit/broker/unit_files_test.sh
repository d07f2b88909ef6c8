#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The systemd units are valid, and the user and directories they need can be made from the files beside them.
# Arguments: the configured sluiced.service, the source directory deploy/linux, the path of sluiced in the unit.
set -eu
service=$1 source=$2 daemon=$3
if ! command -v systemd-analyze >/dev/null; then
  echo "SKIPPED: systemd-analyze is not installed (apt-get install systemd)"
  exit 77
fi
if [ "$(id -u)" -ne 0 ] && [ ! -d /run/systemd ]; then
  echo "SKIPPED: systemd-analyze wants /run/systemd, which root makes (systemd runs nowhere here)"
  exit 77
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
units=$root/etc/systemd/system
mkdir -p "$units" "$root/usr/lib/systemd/system" "$root/bin" "$root$(dirname "$daemon")"
cp "$service" "$source/sluiced.socket" "$units"
cp /usr/lib/systemd/system/*.target /usr/lib/systemd/system/*.slice "$root/usr/lib/systemd/system" 2>/dev/null || true
# What the units start must exist; verify starts nothing.
for program in /bin/sh "$daemon"; do
  printf '#!/bin/sh\n' >"$root$program"
  chmod 755 "$root$program"
done
systemd-analyze verify --root="$root" --man=no sluiced.service sluiced.socket
echo "units are valid"
# In tenths: 3.8, of which delegation is 0.1 and what namespaces of workers need 0.7 (deploy/linux/README.md). What the score cannot say, whether the daemon works so, tests/vm does.
systemd-analyze security --no-pager --offline=true --root="$root" --threshold=38 sluiced.service >"$root/exposure" || {
  cat "$root/exposure"
  echo "FAILED: systemd rates what the unit leaves open at more than 3.8"
  exit 1
}
tail -n 1 "$root/exposure"
if command -v systemd-sysusers >/dev/null; then
  cp /etc/passwd /etc/group "$root/etc/"
  systemd-sysusers --root="$root" "$source/sluice.sysusers"
  grep -q '^sluice:' "$root/etc/passwd"
  echo "user is made"
  rules=$source/sluice.tmpfiles
  if [ "$(id -u)" -ne 0 ]; then
    echo "SKIPPED: the owners of directories: only root gives them away"
    rules=$root/sluice.tmpfiles
    awk -v user="$(id -u)" -v group="$(id -g)" '/^[a-z]/ { $4 = user; $5 = group } { print }' \
      "$source/sluice.tmpfiles" >"$rules"
  fi
  systemd-tmpfiles --root="$root" --create "$rules"
  for folder in sluice sluice/clients sluice-admin sluice-tenants; do test "$(stat -c %a "$root/run/$folder")" = 755; done
  test "$(readlink "$root/run/sluice/broker.sock")" = clients/broker.sock
  grep -q '^sluice-monitor:' "$root/etc/group"
  test "$(stat -c %a "$root/var/lib/sluice")" = 700
  echo "directories are made"
else
  echo "SKIPPED: systemd-sysusers is not installed"
fi
