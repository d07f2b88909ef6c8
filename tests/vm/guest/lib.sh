# SPDX-License-Identifier: Apache-2.0
# What the checks in the virtual machine are written with. Verdicts go to the second serial port, which run.py reads.
# shellcheck shell=bash
RESULTS=/dev/ttyS1
DETAILS=/dev/ttyS2
HERE=/opt/sluice-checks
STATE=/var/lib/sluice-checks
USER_NAME=alice
# An emulated processor is some thirty times slower than a real one, and shares it with others.
LONG=600

say() { printf '%s\n' "$*" >>"$RESULTS"; }

pass() {
  say "PASS $1"
  echo $(($(cat "$STATE/verdicts") + 1)) >"$STATE/verdicts"
}

# fail NAME WHY: the reason on one line.
fail() {
  say "FAIL $1: $(tr -s '\n\r\t ' ' ' <<<"${2:-}" | cut -c 1-1200)"
  echo $(($(cat "$STATE/verdicts") + 1)) >"$STATE/verdicts"
}

# check NAME COMMAND...: the command's exit code is the verdict, what it says the reason. No subshell: what it opens stays.
check() {
  local name=$1 code
  shift
  "$@" >"$STATE/said" 2>&1
  code=$?
  if [ $code = 0 ]; then pass "$name"; else fail "$name" "\`$*\` ends with $code: $(tail -n 20 "$STATE/said")"; fi
}

# check_equal NAME EXPECTED GOT
check_equal() {
  if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected '$2', got '$3'"; fi
}

# check_has NAME TEXT PATTERN: the text has a line that the extended regular expression matches.
check_has() {
  if grep -qE -- "$3" <<<"$2"; then pass "$1"; else fail "$1" "no line like '$3' in: $2"; fi
}

check_has_not() {
  if grep -qE -- "$3" <<<"$2"; then fail "$1" "$(grep -E -- "$3" <<<"$2" | head -5)"; else pass "$1"; fi
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.2
  done
}

# Programs of which Sluice is the only driver: PoCL's own start takes seconds here.
export OCL_ICD_VENDORS=/etc/OpenCL/vendors/sluice.icd SLUICE_TEST_KIND=ring
# A daemon that is started by its socket looks for devices first, which here may take longer than a program waits.
export SLUICE_CONNECT_TIMEOUT_MS=570000

as_user() { timeout --foreground "$LONG" runuser -u "$USER_NAME" -- "$@"; }

property() { systemctl show --value -p "$2" "$1"; }
main_pid() { property sluiced.service MainPID; }
is_active() { systemctl is-active --quiet "$1"; }
status_of() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; }

# The processes named `sluice-worker` of the unit's control group, one a line.
workers() {
  local pid
  while read -r pid; do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != sluice-worker ] || echo "$pid"
  done < <(find "/sys/fs/cgroup$(property sluiced.service ControlGroup)" -name cgroup.procs -exec cat {} +)
}

# --- a program with a session, which waits until it is told to go on -----------------------------------------

# start_victim NAME [WRAPPER...]: returns when it has its session. Its output is in $STATE/NAME.
start_victim() {
  local name=$1
  shift
  rm -f "$STATE/$name" "$STATE/$name.line"
  mkfifo "$STATE/$name.line"
  "$@" runuser -u "$USER_NAME" -- "$HERE/victim" idle <"$STATE/$name.line" >"$STATE/$name" 2>&1 &
  printf -v "victim_${name}" %s $!
  local -n writer=line_of_$name
  exec {writer}>"$STATE/$name.line"
  wait_for "$LONG" victim_is_ready "$name"
}

victim_is_ready() { grep -q '^READY' "$STATE/$1"; }
victim_has_ended() {
  local -n pid=victim_$1
  ! kill -0 "$pid" 2>/dev/null
}

# The worker of its session, as operators see it.
worker_of() {
  local -n wrapper=victim_$1
  local client
  client=$(tr -d ' ' <"/proc/$wrapper/task/$wrapper/children")
  sluicectl sessions | awk -v client="$client" '$5 == client { print $6 }'
}

# go_on NAME: it goes on, and is waited for.
go_on() {
  local -n writer=line_of_$1
  local -n pid=victim_$1
  echo >&"$writer" || true
  exec {writer}>&-
  wait_for "$LONG" victim_has_ended "$1" || kill -9 "$pid"
  wait "$pid"
}

# What it said behind a word; empty if it did not come so far.
said() { sed -n "s/^$2 //p" "$STATE/$1"; }

# check_said NAME VERDICT CODE WORD...: behind each of these words stands this code.
check_said() {
  local name=$1 verdict=$2 code=$3 word
  shift 3
  for word in "$@"; do
    [ "$(said "$name" "$word")" = "$code" ] || {
      fail "$verdict" "$word is '$(said "$name" "$word")', expected $code: $(cat "$STATE/$name")"
      return
    }
  done
  pass "$verdict"
}

# Its session was its own to the end, in which it also built a program that no cache has.
session_words="ended_with later_launch later_read later_create later_build later_finish release"
