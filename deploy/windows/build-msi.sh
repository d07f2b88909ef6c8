#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the installer of a folder that build.sh has packed; build.sh calls it where wixl is installed.
#
#   deploy/windows/build-msi.sh FOLDER VERSION MSI
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 3 ] && [ -d "$1" ] || { sed -n '3,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
{ command -v wixl && command -v msibuild; } >/dev/null || { echo "build-msi.sh: apt-get install wixl msitools" >&2; exit 1; }
folder=$(cd "$1" && pwd)
version=$2
msi=$(realpath "$3")
files=$(mktemp --suffix=.wxs)
trap 'rm -f "$files"' EXIT
cd "$folder"  # wixl takes relative names alone.
find "$folder" -type f | LC_ALL=C sort |
  wixl-heat --prefix "$folder/" --component-group Files --directory-ref INSTALLDIR --var var.Source --win64 >"$files"
tool=$(sed -n 's#.*Id="\(fil[^"]*\)".*Source="[^"]*/bin/sluicectl.exe".*#\1#p' "$files")
[ -n "$tool" ] || { echo "build-msi.sh: $folder has no bin/sluicectl.exe" >&2; exit 1; }
wixl --arch x64 -D Win64=yes -D Version="$version" -D Source=. -D Sluicectl="$tool" --output "$msi" \
  "$here/installer/sluice.wxs" "$files"
# What wixl has no words for: an action that takes back is one of rollback (18 + 64 + 256 + 1024 + 2048), the version that is
# there may be this one (256 + 512), and what an administrator gives reaches the part that runs as the system.
upgrade=$(sed -n 's#.* UpgradeCode="\([^"]*\)".*#{\1}#p' "$here/installer/sluice.wxs" | tr a-z A-Z)
msibuild "$msi" -q "UPDATE CustomAction SET Type = 3410 WHERE Action = 'TakeBack'" \
  -q "DELETE FROM Upgrade WHERE ActionProperty = 'EARLIER'" \
  -q "INSERT INTO Upgrade (UpgradeCode, VersionMin, VersionMax, Attributes, ActionProperty) \
      VALUES ('$upgrade', '0.0.0', '$version', 768, 'EARLIER')" \
  -q "UPDATE Property SET Value = 'EARLIER;LATER;INSTALLFLAGS' WHERE Property = 'SecureCustomProperties'"
echo "packed $msi"
