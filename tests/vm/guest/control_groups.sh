# SPDX-License-Identifier: Apache-2.0
# What the kernel holds tenants to, as the service has it: who is where, shares of the processor, limits of processes and
# memory, what is left after sessions and after a broker that was killed. alice is the tenant who takes what she can.
# shellcheck shell=bash disable=SC2154
GROUPS_OF_SERVICE=/sys/fs/cgroup/system.slice/sluiced.service

group_of() { sed -n 's/^0:://p' "/proc/$1/cgroup"; }
no_accounts() { [ -z "$(find "$GROUPS_OF_SERVICE/accounts" -mindepth 1 -type d 2>/dev/null)" ]; }
last_start() { unit_journal | grep 'control_groups=' | tail -n 1; }

# with_groups LINE...: the daemon anew, with these lines in [control_groups].
with_groups() {
  configure '[broker]' 'drain_timeout_ms = 2000' '[control_groups]' "$@"
  systemctl restart sluiced.service
  as_user "$HERE/vector_add" >/dev/null 2>&1
}

# start_hog NAME MODE...: of alice's; returns when it says READY. Its input is open until end_hog.
start_hog() {
  local name=$1
  shift
  rm -f "$STATE/$name" "$STATE/$name.line"
  mkfifo "$STATE/$name.line"
  runuser -u "$USER_NAME" -- "$HERE/hogs" "$@" <"$STATE/$name.line" >"$STATE/$name" 2>&1 &
  printf -v "hog_${name}" %s $!
  local -n writer=hog_line_$name
  exec {writer}>"$STATE/$name.line"
  wait_for "$LONG" victim_is_ready "$name"
}

end_hog() {
  local -n writer=hog_line_$1
  local -n pid=hog_$1
  echo >&"$writer" || true
  exec {writer}>&-
  [ "${2:-}" != kill ] || pkill -KILL -P "$pid"
  wait "$pid"
}

launches() { "$HERE/hogs" count 10 2>&1 | sed -n 's/^launches //p'; }

control_groups() {
  with_groups 'enabled = "auto"' 'processes_per_worker = 200' 'memory_bytes_per_worker = "512MiB"'
  places_in_groups
  a_broker_crashes_with_groups
  if [ "$namespaces" = yes ]; then
    say "SKIP limits of control groups: this machine's hierarchy of version 2 has no controllers for them"
  else
    fork_bomb
    memory_hog
    shares_of_the_processor
  fi
  with_groups 'enabled = "auto"'
}

places_in_groups() {
  local worker
  say "NOTE $(last_start | sed 's/.*control_groups=/control groups: /')"
  if [ "$namespaces" = no ]; then
    check_has "the daemon has control groups with limits" "$(last_start)" 'control_groups="cpu, memory, pids, io; in '
    check_has "doctor says so" "$(sluicectl doctor --timeout-ms 300000 2>&1)" '^ok +control groups +cpu, memory, pids'
  else
    check_has "the daemon has control groups" "$(last_start)" 'control_groups=.*; in /sys/fs/cgroup'
  fi
  check_equal "the broker is in its leaf" /system.slice/sluiced.service/broker "$(group_of "$(main_pid)")"
  check_equal "nobody is in the service's own group" "" "$(cat "$GROUPS_OF_SERVICE/cgroup.procs")"
  check "a program gets a session in a control group" start_victim placed
  worker=$(workers | head -1)
  check_has "its worker is in its account's" "$(group_of "$worker")" \
    "^/system.slice/sluiced.service/accounts/uid-$(id -u "$USER_NAME")/worker-[0-9a-f]{16}\$"
  check_has "the daemon cannot write in another's group" "$(with_its_files mkdir /sys/fs/cgroup/system.slice/sluice-check 2>&1)" \
    'Read-only file system|Permission denied'
  go_on placed
  # shellcheck disable=SC2086
  check_said placed "its session is as any" 0 $session_words
  check "its groups are gone after the session" wait_for "$LONG" no_accounts
}

a_broker_crashes_with_groups() {
  local before worker group limits
  check "a program gets a session before the crash" start_victim grouped
  before=$(main_pid)
  worker=$(workers | head -1)
  group=/sys/fs/cgroup$(group_of "$worker")
  limits=$(cat "$group/pids.max" "$group/memory.max" "$group/memory.oom.group" 2>/dev/null)
  kill -9 "$before"
  check "systemd starts a new broker beside a worker in its group" wait_for "$LONG" has_new_main "$before"
  say "NOTE restarts after the crash: $(property sluiced.service NRestarts)"
  check "the new broker finds the worker's group" wait_for "$LONG" journal_has 'of a daemon before this one go on.*workers=1'
  check_equal "the worker is where it was" "$group" "/sys/fs/cgroup$(group_of "$worker")"
  check_equal "with its limits" "$limits" "$(cat "$group/pids.max" "$group/memory.max" "$group/memory.oom.group" 2>/dev/null)"
  check_equal "the new broker is in the leaf" /system.slice/sluiced.service/broker "$(group_of "$(main_pid)")"
  check_vector_add "it serves programs"
  check "and leaves the worker its group" test -d "$group"
  go_on grouped
  # shellcheck disable=SC2086
  check_said grouped "the old session goes on to its end" 0 $session_words
  check "its group is gone then" wait_for "$LONG" no_accounts
}

fork_bomb() {
  check "a kernel forks until it is refused" start_hog bomb forks
  check_has "by the limit of processes" "$(cat "$STATE/bomb")" '^forks 1[0-9][0-9] error -11$'
  check_has "another tenant gets a session meanwhile" "$("$HERE/vector_add" 2>&1)" 'every element right'
  end_hog bomb
  # Its worker can make no thread either, and may end of that.
  check_has "the bomb's own program has an answer" "$(cat "$STATE/bomb")" '^launch=(0|-[0-9]+)$'
  check "all of it ends with its session" wait_for "$LONG" no_accounts
  check "the journal counts what was refused" wait_for "$LONG" journal_has 'refused more processes or threads.*processes_per_worker'
}

memory_hog() {
  local kills
  check "a bystander of the same account has a session" start_victim beside
  runuser -u "$USER_NAME" -- "$HERE/hogs" memory 1500 >"$STATE/glutton" 2>&1
  check_has "a kernel that takes too much memory is told of an error" "$(cat "$STATE/glutton")" '^memory=-[0-9]+$'
  check_has "its program gets a new session" "$(cat "$STATE/glutton")" '^later=0$'
  check "the journal says that memory ended the worker, and by which limit" wait_for "$LONG" \
    journal_has 'ended for want of memory.*536870912 bytes \(memory_bytes_per_worker\)'
  # On a slow machine the broker itself kills a worker that takes too long to end (a fork bomb's).
  kills=$(unit_journal | grep -c 'ended for want of memory')
  check_equal "it was the only worker that the kernel ended" 1 "$kills"
  go_on beside
  # shellcheck disable=SC2086
  check_said beside "the bystander's session goes on to its end" 0 $session_words
}

# flooded NAME: launches of root's in 10 s beside eight sessions of alice's that want every processor.
flooded() {
  local i count
  for i in 1 2 3 4 5 6 7 8; do
    start_hog "flood$i" flood || say "NOTE $1: session $i of the flood did not begin: $(cat "$STATE/flood$i")"
  done
  count=$(launches)
  for i in 1 2 3 4 5 6 7 8; do end_hog "flood$i" kill; done
  wait_for "$LONG" sh -c "! pgrep -x sluice-worker"
  echo "${count:-0}"
}

shares_of_the_processor() {
  local alone with without
  alone=$(launches)
  with=$(flooded "with control groups")
  with_groups 'enabled = "off"'
  without=$(flooded "without control groups")
  say "NOTE launches in 10 s: alone $alone, beside 8 sessions of another tenant that flood $with, the same with enabled = \"off\" $without"
  check "a tenant keeps a quarter of its launches beside eight sessions of another's" test "$((with * 4))" -ge "${alone:-1}"
}
