# SPDX-License-Identifier: Apache-2.0
# What systemctl does to the daemon, and what a crash does, while programs have sessions.
# shellcheck shell=bash
CONFIG=/etc/sluice/sluiced.toml
UNAVAILABLE=-2 # CL_DEVICE_NOT_AVAILABLE

configure() {
  mkdir -p /etc/sluice
  printf '%s\n' "$@" >"$CONFIG"
}

unit_journal() { journalctl -b -u sluiced.service --no-pager -o cat; }
journal_has() { unit_journal | grep -qE -- "$1"; }
has_new_main() { [ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ] && is_active sluiced.service; }
vector_add() { as_user "$@" "$HERE/vector_add" 2>&1; }
check_vector_add() {
  local name=$1
  shift
  check_has "$name" "$(vector_add "$@")" 'every element right'
}

identities() {
  local worker sessions
  check_vector_add "an ordinary user's vector_add is right"
  check "a program gets a session" start_victim first
  worker=$(workers | head -1)
  check "the worker has a user of its own" test "$(status_of "$worker" Uid | cut -f1)" -gt 1879048192
  check_equal "the worker has no capability" 0000000000000000 "$(status_of "$worker" CapEff)"
  check_equal "the worker cannot gain any" 1 "$(status_of "$worker" NoNewPrivs)"
  sessions=$(sluicectl sessions 2>&1)
  check_has "root sees the session of the user" "$sessions" "$(id -u "$USER_NAME")|$USER_NAME"
  if as_user sluicectl sessions >/dev/null 2>&1; then
    fail "an ordinary user does not administer the daemon" "sluicectl sessions works"
  else
    pass "an ordinary user does not administer the daemon"
  fi
  check "an ordinary user's doctor finds nothing wrong" as_user sluicectl doctor --timeout-ms 300000
}

reload() {
  local before
  before=$(main_pid)
  configure '[broker]' 'drain_timeout_ms = 600000'
  check "systemctl reload works" systemctl reload sluiced.service
  check "the journal says that the configuration is read again" wait_for "$LONG" journal_has 'reloading the configuration'
  configure '[broker]' 'no_such_key = 1'
  check "systemctl reload of a wrong configuration is heard" systemctl reload sluiced.service
  check "the journal names what is wrong, and that nothing changed" \
    wait_for "$LONG" journal_has 'configuration kept as it was.*no_such_key'
  configure '[broker]' 'drain_timeout_ms = 600000'
  systemctl reload sluiced.service
  check_equal "reload leaves the process as it is" "$before" "$(main_pid)"
  go_on first
  # shellcheck disable=SC2086
  check_said first "a session goes on over reloads" 0 $session_words new_context
}

broker_crashes() {
  local before worker
  check "a program gets a session before the broker is killed" start_victim crash
  before=$(main_pid)
  worker=$(workers | head -1)
  kill -9 "$before"
  check "systemd starts a new broker after a crash" wait_for "$LONG" has_new_main "$before"
  # The second one is systemd's before 254, beside a worker in a control group with limits (sluiced.service).
  check_has "it was one restart, or one more for the worker's control group" "$(property sluiced.service NRestarts)" '^[12]$'
  check_equal "the worker of the old one lives" sluice-worker "$(cat "/proc/$worker/comm" 2>&1)"
  check_vector_add "another program is served by the new broker"
  go_on crash
  # shellcheck disable=SC2086
  check_said crash "a session goes on over a broker's crash, and builds programs" 0 $session_words
  check_said crash "its program gets a session of the new broker's" 0 new_context
  check "the old worker ends with its program" wait_for "$LONG" test ! -e "/proc/$worker"
  check_has "the journal says how the broker ended" "$(unit_journal)" 'Main process exited, code=killed, status=9/KILL'
}

# A container has the folder, not the socket, mounted: what it sees must be the daemon's after any restart.
mounted_folder() {
  local folder=/run/sluice/clients holder
  [ -d "$folder" ] || folder=/run/sluice
  unshare --mount --propagation private sh -c \
    'mkdir -p /mnt/clients && mount --bind "$1" /mnt/clients && echo mounted && exec sleep infinity' - "$folder" >"$STATE/holder" &
  holder=$!
  check "$folder is mounted elsewhere" wait_for "$LONG" grep -q mounted "$STATE/holder"
  local inside=(nsenter --mount --target "$holder" timeout "$LONG" runuser -u "$USER_NAME" --
    env SLUICE_ENDPOINT=unix:/mnt/clients/broker.sock "$HERE/vector_add")
  check_has "the mounted folder leads to the daemon" "$("${inside[@]}" 2>&1)" 'every element right'
  check "systemctl restart of the idle daemon" systemctl restart sluiced.service
  check_has "so it does after systemctl restart of the service" "$("${inside[@]}" 2>&1)" 'every element right'
  check "systemctl restart of the socket and the daemon" systemctl restart sluiced.socket sluiced.service
  check_has "so it does after systemctl restart of the socket" "$("${inside[@]}" 2>&1)" 'every element right'
  systemctl stop sluiced.socket sluiced.service
  check "systemctl start of the socket" systemctl start sluiced.socket
  check_has "so it does after a stop and a start" "$("${inside[@]}" 2>&1)" 'every element right'
  kill "$holder"
}

restart() {
  local before job
  check "a program gets a session before systemctl restart" start_victim again
  before=$(main_pid)
  systemctl restart sluiced.service &
  job=$!
  check "the old daemon waits for the session" wait_for "$LONG" journal_has 'draining: no new sessions.*sessions=1'
  check_equal "it is the old one still" "$before" "$(main_pid)"
  go_on again
  # shellcheck disable=SC2086
  check_said again "a session goes on to its end over systemctl restart" 0 $session_words
  check "systemctl restart ends when the session has ended" wait "$job"
  check "the daemon is a new one" has_new_main "$before"
  check_vector_add "the new daemon serves programs"
}

drain() {
  configure '[broker]' 'drain_timeout_ms = 2000'
  systemctl reload sluiced.service
  check "a program gets a session before systemctl stop" start_victim stopped
  check "systemctl stop works" systemctl stop sluiced.service
  check "the journal says that the drain was over" journal_has 'drain timeout.*sessions=1'
  check_equal "the service ended well" success "$(property sluiced.service Result)"
  check_has "the socket alone is left" "$(ls -A /run/sluice/clients)" '^broker.sock$'
  check_equal "nothing of the service is left" "" "$(workers)$(cat /sys/fs/cgroup/system.slice/sluiced.service/cgroup.procs 2>&1 |
    grep -v 'No such file')"
  go_on stopped
  check_said stopped "what did not end in time is told that its device is gone" "$UNAVAILABLE" later_read later_create
  check_said stopped "its program is told, can release all, and gets a new session" 0 release new_context
  check "that started the daemon anew" is_active sluiced.service
  systemctl stop sluiced.socket sluiced.service
  check_has "with the socket stopped there is no platform" "$(vector_add)" 'none of the 0 platforms|clGetPlatformIDs failed'
  systemctl start sluiced.socket
  check_vector_add "with the socket there is one again"
}

# A person empties the daemon, without a limit of time; the next program has a new one.
drained_by_a_person() {
  local before job
  check "a program gets a session before sluicectl drain" start_victim drained
  before=$(main_pid)
  sluicectl drain >"$STATE/drain" 2>&1 &
  job=$!
  check "sluicectl drain waits for the session" wait_for "$LONG" sh -c \
    'systemctl show --value -p StatusText sluiced.service | grep -q "^Draining: 1 "'
  go_on drained
  # shellcheck disable=SC2086
  check_said drained "a session goes on to its end while the daemon drains" 0 $session_words
  wait "$job"
  check "the drained daemon ends" wait_for "$LONG" test ! -e "/proc/$before"
  check "its socket stays" is_active sluiced.socket
  check_vector_add "a program that comes after the drain starts the daemon anew"
}

# Nothing is served, and everybody who looks is told why.
wrong_config() {
  local shown
  configure '[broker]' 'no_such_key = 1' 'nor_this = 2'
  if systemctl restart sluiced.service >"$STATE/said" 2>&1; then
    fail "systemctl restart with a wrong configuration says so" "it ends with 0"
  else
    pass "systemctl restart with a wrong configuration says so"
  fi
  check_equal "the service has failed" failed "$(systemctl is-failed sluiced.service)"
  check_equal "it is not tried again and again" 0 "$(property sluiced.service NRestarts)"
  shown=$(systemctl status --no-pager -l sluiced.service 2>&1)
  check_has "systemctl status says why" "$shown" 'Status: "Cannot start: .*no_such_key.*nor_this'
  check_has "the journal's errors name each wrong key" "$(journalctl -b -u sluiced.service --no-pager -o cat -p 3 _COMM=sluiced)" \
    '^[^<].*nor_this'
  configure '[broker]' 'drain_timeout_ms = 2000'
  check "systemctl restart works with the configuration mended" systemctl restart sluiced.service
  check_vector_add "and programs are served"
}

# A worker that was killed, as when memory ends: an operator reads it. Not by SIGSEGV, which compilers catch at times.
worker_crashes() {
  local worker
  check "a program gets a session before its worker is killed" start_victim hit
  worker=$(worker_of hit)
  check "operators are told its worker" kill -KILL "$worker"
  check "the journal names the signal, in a warning" wait_for "$LONG" sh -c \
    'journalctl -b -u sluiced.service --no-pager -o cat -p warning | grep -qE "session ended.*killed by signal 9"'
  go_on hit
  check_said hit "its program is told, can release all, and gets a new session" 0 release new_context
}

# What the daemon writes there (systemd writes lines of its own about the unit).
its_lines() { journalctl -b _SYSTEMD_UNIT=sluiced.service _COMM=sluiced --no-pager "$@"; }

priorities() {
  local level word
  check_equal "each line has the daemon's name" SYSLOG_IDENTIFIER=sluiced \
    "$(its_lines -o export | grep -a '^SYSLOG_IDENTIFIER=' | sort -u)"
  check_equal "no line is of several, or binary" 0 "$(its_lines -o export | grep -ac '^MESSAGE$')"
  check_has_not "no line has a second time, or a priority that is left over" "$(its_lines -o cat)" '^(<[0-7]>|[0-9]{4}-)'
  for level in 6:info 4:warning 3:error; do
    word=${level#*:}
    level=${level%:*}
    check_has "the journal has lines of priority $word" "$(its_lines -o cat -p "$level..$level")" "^($word|sluiced:|/etc/sluice/)"
    check_equal "and no others among them" "" "$(its_lines -o cat -p "$level..$level" | grep -vE "^($word|sluiced:|/etc/sluice/)" | head -3)"
  done
}

journal() {
  local lines
  priorities
  lines=$(journalctl -b -u sluiced.service --no-pager -o cat)
  check_has "the journal has sessions with their users" "$lines" 'session opened.*identity=uid:'
  check_has "the journal has the daemon's stop" "$lines" 'stopped'
  check_has_not "the journal tells of nothing that the unit forbids" "$lines" \
    'cannot start a worker|cannot be confined|no landlock|Read-only file system|Operation not permitted|Permission denied'
  check_has_not "no process of the service was killed by a filter of system calls" "$(journalctl -b -k --no-pager)" \
    'audit.*type=1326'
}
