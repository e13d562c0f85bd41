#!/usr/bin/env bats
# headrace profile: commands and process trees; what the child is and gives stays its own.
bats_require_minimum_version 1.5.0
load helpers

sql() { "$HEADRACE" query --format csv "$1" | tail -n +2; }

@test "the command's streams are its own, ours says nothing on stdout" {
  echo in > input
  "$HEADRACE" profile -- sh -c 'cat; echo err >&2' < input > out 2> err
  [ "$(cat out)" = in ]
  [ "$(head -1 err)" = err ]
  grep -q 'too short for a verdict.*Saved run 1 in' err
  "$HEADRACE" profile -q --level 1 -- sh -c 'echo err >&2' 2> err
  [ "$(cat err)" = err ]
}

@test "the exit status is the command's own" {
  # With all probes, and without those that take a second to begin.
  for code in 0 1 7 42; do
    run "$HEADRACE" profile -q $([ $code = 7 ] || echo --level 1) -- sh -c "exit $code"
    [ "$status" -eq $code ]
  done
  for signal in 9 15 2; do
    run "$HEADRACE" profile -q $([ $signal = 9 ] || echo --level 1) -- sh -c "kill -$signal \$\$"
    [ "$status" -eq $((128 + signal)) ]
  done
  [ "$(sql "SELECT exit_text FROM process_summary WHERE run_id = 3 AND role = 'root'")" = "exited 7" ]
  [ "$(sql "SELECT exit_text FROM process_summary WHERE run_id = 5 AND role = 'root'")" = "killed by signal 9" ]
}

@test "a command that cannot run: 127 and 126 as in sh, and no run is left" {
  run -127 "$HEADRACE" profile -- ./nope
  one_line_error 127 "cannot run './nope': no such file"
  run -127 "$HEADRACE" profile --level 1 -- no-such-command-anywhere
  one_line_error 127 "cannot run 'no-such-command-anywhere'"
  : > train.py
  run -127 "$HEADRACE" profile train.py
  one_line_error 127 "'train.py' is a file of this folder, not a command; name its interpreter: python train.py"
  echo 'import this' > train.py
  run "$HEADRACE" run train.py
  one_line_error 2 "a Python program is recorded by 'headrace profile -- python train.py'"
  run "$HEADRACE" compare train.py train.py
  one_line_error 2 "compare commands: --a-cmd 'python train.py' --b-cmd 'python train.py'"
  echo hi > notexec
  run "$HEADRACE" profile -- ./notexec
  one_line_error 126 "'./notexec' is not executable \(mode 0"
  run "$HEADRACE" profile --level 1 -- ./
  [ "$status" -eq 126 ]
  printf '#!/no/such/interpreter\n' > orphan
  chmod +x orphan
  run -127 "$HEADRACE" profile --level 1 -- ./orphan
  [ "$status" -eq 127 ]
  [ ! -e "$HEADRACE_DB" ] || [ "$(sql 'SELECT COUNT(*) FROM run_summary')" = 0 ]
}

@test "a headrace without its Python package says so before it records a Python program" {
  mkdir alone
  cp "$HEADRACE" alone/headrace
  run alone/headrace profile --level 1 -- python3 -c ''
  [[ "$output" == *"no instrumentation: the Python package is not where this headrace expects it"* ]]
  [[ "$output" == *"docs/install.md"* ]]
  run "$HEADRACE" profile --level 1 -- python3 -c ''
  [[ "$output" != *"no instrumentation"* ]]
  run alone/headrace profile --level 1 -- true
  [[ "$output" != *"no instrumentation"* ]]
}

@test "arguments reach the command untouched" {
  run "$HEADRACE" profile -q -- printf '%s|' -- --db x '' '{}' '%%' 'a b' "q'q"
  [ "$output" = "--|--db|x||{}|%%|a b|q'q|" ]
  printf 'echo script "$1"' > script
  chmod +x script
  run "$HEADRACE" profile -q --level 1 -- ./script one
  [ "$output" = "script one" ]
}

@test "signals the command gets are those of a plain start" {
  plain=$(sh -c 'grep -E "SigIgn|SigBlk|SigCgt" /proc/self/status')
  run "$HEADRACE" profile -q -- sh -c 'grep -E "SigIgn|SigBlk|SigCgt" /proc/self/status'
  [ "$output" = "$plain" ]
  run "$HEADRACE" profile -q -- sh -c 'ls /proc/self/fd | wc -l'
  [ "$output" = "$(sh -c 'ls /proc/self/fd | wc -l')" ]
}

@test "-p and a command, neither, and mistyped options are usage errors" {
  run "$HEADRACE" profile
  one_line_error 2 "say what to record: -p PID, or -- COMMAND"
  run "$HEADRACE" profile -p 1 -- true
  one_line_error 2 "not both"
  run "$HEADRACE" profile --pdi 1
  one_line_error 2 "unknown option '--pdi'. Did you mean '--pid'"
  run "$HEADRACE" profile --level 9 -- true
  [ "$status" -eq 2 ]
}

@test "a probe left out says so; a name that no probe has is refused" {
  "$HEADRACE" profile -q --without pressure --without 'CPU stacks' -- true
  [ "$(sql "SELECT COUNT(*) FROM probe_status WHERE probe IN ('pressure', 'CPU stacks') AND state = 'unavailable' AND reason LIKE 'left out by --without%'")" = 2 ]
  [ "$(sql "SELECT COUNT(*) FROM measurement_summary WHERE metric LIKE 'pressure%'")" = 0 ]
  run "$HEADRACE" profile --without 'CPU stack' -- touch ran
  one_line_error 2 "--without: no probe is called 'CPU stack'; did you mean 'CPU stacks'\?"
  [ ! -e ran ]
}

@test "a bad trigger is refused with what there is, before anything runs" {
  run "$HEADRACE" profile --trigger 'stal > 1s' -- touch ran
  one_line_error 2 "nothing is called 'stal'; did you mean 'stall'"
  run "$HEADRACE" profile --trigger 'stall' -- touch ran
  one_line_error 2 "compares nothing"
  run "$HEADRACE" profile --trigger 'queue:ready < 200%' -- touch ran
  one_line_error 2 "more than 100%"
  run "$HEADRACE" run small.toml --ring 5h
  one_line_error 2 "between 1s and 10m"
  [ ! -e ran ]
}

@test "the whole tree is recorded, from the first fork" {
  "$HEADRACE" profile -q -- sh -c 'sleep 0.5 & sh -c "sleep 0.6; true"; wait'
  [ "$(sql "SELECT COUNT(*) FROM process_summary WHERE process = 'sleep' AND role = 'child'")" = 2 ]
  [ "$(sql "SELECT COUNT(DISTINCT parent_pid) FROM process_summary WHERE process = 'sleep'")" = 2 ]
  [ "$(sql "SELECT state FROM run_summary")" = complete ]
  [ "$(sql "SELECT COUNT(*) FROM process_summary WHERE process LIKE 'headrace%'")" = 0 ]
}

@test "a pipeline under profile: its operators, the verdict and the next command on stderr" {
  "$HEADRACE" profile --name with -- env HEADRACE_ACCOUNTS=on "$HEADRACE" run small.toml --no-record --quiet --duration 3s > out 2> err
  [ ! -s out ]
  grep -q 'saved .* as run 1 in' err
  grep -q 'input-bound' err
  grep -q '^ more .* report 1' err
  [ "$(sql "SELECT COUNT(*) FROM operator_summary JOIN run_summary USING (run_id) WHERE name = 'with'")" = 3 ]
  [ "$(sql "SELECT has_accounts FROM process_summary JOIN run_summary USING (run_id) WHERE name = 'with' AND role = 'root'")" = 1 ]
}

@test "--level 0 sees no accounts, says so, and --level is kept" {
  "$HEADRACE" profile -q --level 0 -- env HEADRACE_ACCOUNTS=on "$HEADRACE" run small.toml --no-record --quiet
  [ "$(sql "SELECT level_asked, accounting_level FROM run_summary")" = 0,0 ]
  [ "$(sql "SELECT COUNT(*) FROM operator_summary")" = 0 ]
  [ "$(sql "SELECT state, reason FROM probe_status WHERE probe = 'operator accounts'")" = "unavailable,left out by --level 0" ]
  [ "$(sql "SELECT COUNT(*) FROM probe_status WHERE state = 'unavailable' AND reason = ''")" = 0 ]
}

@test "SIGTERM to the profiler reaches the command, whose status it returns" {
  "$HEADRACE" profile -- sh -c 'trap "echo got; exit 5" TERM; touch ready; while :; do sleep 0.05; done' > out 2> err &
  pid=$!
  until_true 10 test -e ready
  kill -TERM $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 5 ]
  [ "$(cat out)" = got ]
  grep -q 'too short' err
}

@test "Ctrl-C on -p saves, shows the verdict block, exits 130" {
  "$HEADRACE" run small.toml --no-record --quiet --duration 60s &
  target=$!
  sleep 0.3
  "$HEADRACE" profile -p $target 2> err &
  pid=$!
  until_true 10 newest_run_is recording
  sleep 2.4
  kill -INT $pid
  code=0
  wait $pid || code=$?
  kill $target
  [ "$code" -eq 130 ]
  grep -q 'saved .* as run 1' err
  grep -q '^ limit ' err
  grep -q '^ more ' err
}

@test "a database that cannot be used: the command does not run" {
  echo text > not.db
  run "$HEADRACE" profile --db not.db -- touch ran
  one_line_error 5 "not a headrace database"
  [ ! -e ran ]
}

@test "the flight recorder keeps full detail only around a stall" {
  not_slowed
  cat > stall.toml <<'TOML'
pipeline = { name = "stall" }
source = { synthetic = { elements = 4000, rows = 8 } }
consumer = { step = "1ms" }
stage = [{ name = "load", operators = [{ sleep = "1ms" }] }]
TOML
  "$HEADRACE" run stall.toml --quiet --duration 5s --ring 1s --trigger 'stall > 150ms or step > 150ms' &
  pid=$!
  until_true 10 newest_run_is recording
  sleep 2
  kill -STOP $pid
  sleep 0.3
  kill -CONT $pid
  wait $pid
  [ "$(sql "SELECT ring_ns, trigger_text FROM run_summary")" = "1000000000,stall > 150ms or step > 150ms" ]
  [ "$(sql "SELECT COUNT(*) >= 1 FROM detail_range WHERE reason LIKE 'st% > 150 ms'")" = 1 ]
  # A coarse interval before it, fine ones around it; nothing is lost of the sums.
  [ "$(sql "SELECT MAX(duration_ns) > 900000000 FROM step_interval")" = 1 ]
  # (A tick that comes late on a busy machine makes one longer interval of two.)
  [ "$(sql "SELECT COUNT(*) > 2 AND SUM(step_interval.duration_ns) > 0.6 * (SELECT SUM(end_ns - start_ns) FROM detail_range) FROM step_interval, detail_range WHERE step_interval.start_ns >= detail_range.start_ns AND step_interval.start_ns < detail_range.end_ns AND step_interval.duration_ns < 800000000")" = 1 ]
  [ "$(sql "SELECT (SELECT SUM(steps_count) FROM step_interval) = (SELECT steps_count FROM step_summary)")" = 1 ]
  [ "$(sql "SELECT (SELECT SUM(busy_ns) FROM operator_interval) = (SELECT SUM(busy_ns) FROM operator_summary)")" = 1 ]
}

@test "a file that is no segment of accounts does not prevent a recording" {
  mkdir accounts
  sleep 30 3>&- &
  pid=$!
  head -c 100000 /dev/zero | tr '\0' x > "accounts/headrace.$pid"
  HEADRACE_ACCOUNT_DIR=$PWD/accounts run timeout 900 "$HEADRACE" profile -q --level 1 -p $pid -d 300ms
  kill $pid
  [ "$status" -eq 0 ]
  [[ "$(sql "SELECT state || ': ' || reason FROM probe_status WHERE probe = 'operator accounts'")" = \
    unavailable:*"not an instrumentation segment"* ]]
}

@test "no room for a run: the command is not run, and that is said" {
  [ "$(id -u)" -eq 0 ] || skip "mounting a small file system needs root"
  mkdir small
  unshare -m true 2> /dev/null || skip "unshare -m is not allowed here"
  run timeout 900 unshare -m sh -c 'mount -t tmpfs -o size=400k tmpfs small || exit 99
    exec "$0" profile --level 1 --db small/x.db -- touch ran' "$HEADRACE"
  [ "$status" -ne 99 ] || skip "mounting is not allowed here"
  [ "$status" -eq 7 ]
  [[ "$output" = *"disk full; the command was not run"* ]]
  [ ! -e ran ]
}

@test "accounts that another user wrote for a process are not its own" {
  [ "$(id -u)" -eq 0 ] || skip "giving files away needs root"
  mkdir accounts
  sleep 30 3>&- &
  pid=$!
  HEADRACE_ACCOUNT_DIR=$PWD/accounts HEADRACE_ACCOUNTS=on "$HEADRACE" run small.toml --no-record --quiet --duration 20s 3>&- &
  other=$!
  until_true 10 test -e "accounts/headrace.$other"
  sleep 0.5  # until it is whole
  cp "accounts/headrace.$other" "accounts/headrace.$pid"
  printf "$(printf '\\x%02x\\x%02x\\x%02x' $((pid & 255)) $((pid >> 8 & 255)) $((pid >> 16)))" |
    dd of="accounts/headrace.$pid" bs=1 seek=24 conv=notrunc status=none  # whose it says it is
  chown 65534 "accounts/headrace.$pid"
  HEADRACE_ACCOUNT_DIR=$PWD/accounts run timeout 900 "$HEADRACE" profile -q --level 1 -p $pid -d 300ms
  kill $pid $other
  [ "$status" -eq 0 ]
  [[ "$(sql "SELECT state || ': ' || reason FROM probe_status WHERE probe = 'operator accounts'")" = \
    *unavailable:*"written by user 65534"* ]]
  [ "$(sql "SELECT COUNT(*) FROM operator_summary")" = 0 ]
}

@test "a command's figures begin when it is released, not while it was held back" {
  not_slowed
  "$HEADRACE" profile -q -- sleep 1
  [ "$(sql "SELECT COUNT(*) FROM measurement_summary WHERE metric LIKE '%off_cpu_ns' AND cause = 'pipe'")" = 0 ]
  [ "$(sql "SELECT COUNT(*) FROM measurement_summary WHERE thread LIKE 'headrace%'")" = 0 ]
  [ "$(sql "SELECT COUNT(*) FROM measurement_summary WHERE metric LIKE '%off_cpu_ns' AND thread = 'sleep (main)'
            AND cause = 'sleep'")" = 1 ]
}

# Reads a figure of the newest run.
latest() { sql "SELECT $1 FROM $2 WHERE run_id = (SELECT MAX(run_id) FROM run_summary)${3:+ AND $3}"; }
# The pid, as this shell numbers it, of the only child of a process.
child_of() { tr -d ' ' < "/proc/$1/task/$1/children"; }

@test "two containers' first processes share a folder: both keep their accounts, and both are found" {
  unshare -p -f --mount-proc true 2> /dev/null || skip "unshare -p is not allowed here"
  export HEADRACE_ACCOUNT_DIR=$DIR/accounts HEADRACE_ACCOUNTS=on
  mkdir accounts
  sed 's/"small"/"one"/; s/"load"/"load1"/' small.toml > one.toml
  sed 's/"small"/"two"/; s/"load"/"load2"/' small.toml > two.toml
  unshare -p -f --mount-proc "$HEADRACE" run one.toml --no-record --quiet --duration 60s 3>&- &
  first=$!
  until_true 20 test -e accounts/headrace.1
  inode=$(stat -c %i accounts/headrace.1)
  unshare -p -f --mount-proc "$HEADRACE" run two.toml --no-record --quiet --duration 60s 3>&- &
  second=$!
  until_true 20 sh -c 'ls accounts/headrace.1.*'
  sleep 0.5  # until it is whole
  [ "$(stat -c %i accounts/headrace.1)" = "$inode" ]
  one=$(child_of $first) two=$(child_of $second)
  "$HEADRACE" profile -q --level 1 -p "$one" -d 500ms
  [ "$(latest program run_summary)" = one ]
  "$HEADRACE" profile -q --level 1 -p "$two" -d 500ms
  [ "$(latest program run_summary)" = two ]
  [ "$(latest 'COUNT(*)' operator_summary "stage = 'load2'")" = 1 ]
  kill -INT "$two"
  wait $second || true
  [ -e accounts/headrace.1 ]
  [ "$(ls accounts)" = headrace.1 ]
  kill -INT "$one"
  wait $first || true
}

@test "a container with a /dev/shm of its own: its accounts are found, by profile and by discovery" {
  unshare -m -p -f --mount-proc mount -t tmpfs tmpfs /dev/shm 2> /dev/null || skip "unshare -m is not allowed here"
  unset HEADRACE_ACCOUNT_DIR
  HEADRACE_ACCOUNTS=on unshare -m -p -f --mount-proc sh -c 'mount -t tmpfs tmpfs /dev/shm
    exec "$0" run small.toml --no-record --quiet --duration 60s' "$HEADRACE" 3>&- &
  outer=$!
  inner() { [ "$(cat "/proc/$(child_of $outer)/comm")" = headrace ]; }
  until_true 20 inner
  pid=$(child_of $outer)
  until_true 20 test -s "/proc/$pid/root/dev/shm/headrace.1"
  sleep 0.5
  "$HEADRACE" profile -q --level 1 -p "$pid" -d 500ms
  [ "$(latest program run_summary)" = small ]
  [ "$(latest 'COUNT(*) > 2' operator_summary)" = 1 ]
  "$HEADRACE" collect --discover --level 1 --db found.db 2> log 3>&- &
  daemon=$!
  until_true 30 grep -q "recording process $pid as run" log
  kill -TERM $daemon
  wait $daemon || true
  kill -INT "$pid"
  wait $outer || true
}

@test "why a process has no accounts is said: read-only, full, switched off" {
  unshare -m mount -t tmpfs tmpfs /dev/shm 2> /dev/null || skip "unshare -m is not allowed here"
  unset HEADRACE_ACCOUNT_DIR
  reason() {  # OPTIONS COMMAND...: what the run says of a process whose /dev/shm is so mounted
    unshare -m sh -c 'mount -t tmpfs -o "$0" tmpfs /dev/shm; exec "$@"' "$@" 3>&- &
    target=$!
    until_true 10 grep -qx sleep /proc/$target/comm
    "$HEADRACE" profile --level 1 -p $target -d 300ms 2> err
    kill $target
    latest "reason || ' | ' || fix" probe_status "probe = 'operator accounts'"
  }
  [[ "$(reason ro sleep 60)" = *"the process keeps none: its /dev/shm is read-only | mount a tmpfs"* ]]
  grep -q '^no instrumentation: its /dev/shm is read-only' err
  [[ "$(reason size=64k sleep 60)" = *"the process keeps none: its /dev/shm is full: 64.0 KiB free, the instrumentation needs "* ]]
  [[ "$(reason size=64m env HEADRACE_ACCOUNTS=off sleep 60)" = *"the process keeps none: HEADRACE_ACCOUNTS=off"* ]]
  [[ "$(reason size=64m sleep 60)" = *"the process keeps none | write them"* ]]
}

@test "a signal to a profiler or a demo in the background, where shells ignore SIGINT, ends them" {
  "$HEADRACE" profile -- sleep 60 2> err 3>&- &
  pid=$!
  until_true 20 newest_run_is recording
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 143 ]
  grep -q 'ignores SIGINT: sent SIGTERM' err
  "$HEADRACE" demo --folder d --db d.db -d 60s > out 2> err 3>&- &
  pid=$!
  until_true 60 sh -c '[ "$("$0" runs --db d.db --json | jq -r ".runs[0].state")" = recording ]' "$HEADRACE"
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 130 ]
  [ "$("$HEADRACE" runs --db d.db --json | jq -r '.runs[0].state')" = complete ]
}

@test "a signal that comes while the collector starts is not lost" {
  for delay in 0.1 0.3 0.6; do
    "$HEADRACE" run small.toml --duration 60s > out 2>&1 3>&- &
    pid=$!
    until_true 20 sh -c "[ -n \"\$(cat /proc/$pid/task/$pid/children)\" ]"  # the collector
    sleep $delay
    kill -INT $pid
    code=0
    SECONDS=0
    wait $pid || code=$?
    [ "$code" -eq 130 ] || { echo "$delay: $code"; cat out; false; }
    [ "$SECONDS" -lt 30 ]
  done
}

@test "the cost of a run too short to divide by is said as CPU time, and is never more than the machine" {
  "$HEADRACE" profile -q -- true
  run "$HEADRACE" report latest --format json
  [ "$(jq -r .cost.machine_ratio <<< "$output")" = null ] || { jq .cost <<< "$output"; false; }
  "$HEADRACE" report latest --full > page || true
  grep -Eq 'COST +recording used [0-9.]+ m?s of CPU time' page || { grep COST page; false; }
  ! grep COST page | grep -q 'of the machine'
}

@test "CPU time and faults of a tree of short-lived processes agree with what the kernel counted for it" {
  command -v python3 > /dev/null || skip "no python3"
  cat > tree.py <<'PY'
import os, resource, sys
def spin(seconds):
    end = sum(os.times()[:2]) + seconds
    while sum(os.times()[:2]) < end:
        pass
for _ in range(40):
    if os.fork() == 0:
        bytearray(4 << 20)
        spin(0.04)
        os._exit(0)
    os.wait()
own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(sum((u.ru_utime + u.ru_stime) for u in (own, children)), own.ru_minflt + children.ru_minflt)
PY
  read -r cpu faults <<< "$("$HEADRACE" profile -q -- python3 tree.py)"
  whole=$(latest "last_value" host_summary "metric = 'process_cpu_ns'")
  awk -v seen="$whole" -v truth="$cpu" 'BEGIN { exit !(seen > 0.93e9 * truth && seen < 1.07e9 * truth) }' ||
    { echo "the tree by /proc: $whole ns of $cpu s"; false; }
  [ "$(latest 'COUNT(*)' process_summary 'ended_ns < started_ns')" = 0 ]
  "$HEADRACE" profile -q --level 1 -- python3 tree.py > out
  [ "$(latest 'COUNT(*)' process_summary 'cpu_ns = 0')" = 0 ]  # unknown is not 0
  [ "$(latest 'COUNT(*)' process_summary 'cpu_ns IS NOT NULL AND ended_ns IS NOT NULL AND NOT cpu_is_least')" = 0 ]
  "$HEADRACE" profile -q -- python3 tree.py > out
  read -r cpu faults < out
  if [ "$(latest state probe_status "probe = 'off-CPU time'")" = unavailable ]; then
    skip "no eBPF here: by process there is only a lower bound"
  fi
  [ "$(latest 'COUNT(*)' process_summary 'cpu_ns IS NULL')" = 0 ]
  [ "$(latest 'SUM(cpu_is_least)' process_summary)" = 0 ]
  sum=$(latest 'SUM(cpu_ns)' process_summary)
  awk -v seen="$sum" -v truth="$cpu" 'BEGIN { exit !(seen > 0.93e9 * truth && seen < 1.15e9 * truth) }' ||
    { echo "the processes by eBPF: $sum ns of $cpu s"; false; }
  minor=$(latest 'SUM(minor_faults_count)' process_summary)
  awk -v seen="$minor" -v truth="$faults" 'BEGIN { exit !(seen > 0.9 * truth && seen < 1.1 * truth) }' ||
    { echo "minor faults: $minor of $faults"; false; }
}
