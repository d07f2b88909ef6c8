#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hashcat finds the words behind an MD5 hash (by mask) and a SHA-256 hash (by word list). It builds its
# kernels with -I and -D INCLUDE_PATH, so the driver must reach include files of the client's machine.
# Pure kernels, one vector lane and fixed tuning keep the build short on a CPU device.
CLIENT=hashcat
. "$(dirname "$0")/common.sh"
platform_under_test

log=$WORK/log
crack() { # crack MODE ATTACK HASH TARGET WORD
  echo "$3" >"$WORK/hash"
  (cd "$WORK" && "$LIMIT" 240 hashcat --force -D 1,2 --self-test-disable --potfile-disable \
    --restore-disable --logfile-disable --hwmon-disable -n 1 -u 1 -T 1 --backend-vector-width 1 \
    -m "$1" -a "$2" -o "$WORK/found" "$WORK/hash" "$4") >"$log" 2>&1 </dev/null ||
    fail "mode $1 ended with $?" "$log"
  grep -qF "[$VENDOR]" "$log" || fail "hashcat did not run on the platform of '$VENDOR'" "$log"
  [ "$(tail -n 1 "$WORK/found")" = "$3:$5" ] ||
    fail "mode $1 found '$(tail -n 1 "$WORK/found" 2>&1)' instead of '$5'" "$log"
}

VENDOR=$(clinfo --raw 2>/dev/null | sed -n 's/^ *CL_PLATFORM_VENDOR  *//p' | head -n 1)
word=tz7
crack 0 3 "$(printf %s "$word" | md5sum | cut -d' ' -f1)" '?l?l?d' "$word"
printf '%s\n' apple brook cedar sluice-gate delta ember >"$WORK/words"
crack 1400 0 "$(printf %s sluice-gate | sha256sum | cut -d' ' -f1)" "$WORK/words" sluice-gate
pass "MD5 by mask and SHA-256 by word list cracked on $PLATFORM"
