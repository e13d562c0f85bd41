#!/usr/bin/env bats
# The file of a run store: who writes it, who may read it, what is refused, and what becomes of a recording whose file
# goes away.
load helpers

# sql FILE STATEMENTS: with another SQLite client.
sql() { python3 -c 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.close()' "$1" "$2"; }

# old_store: two runs in old.db as headrace of schema 6 would have left them: no comparisons, no decisions, no views.
old_store() {
  "$HEADRACE" run small.toml --level 1 --name first --quiet
  "$HEADRACE" run small.toml --level 1 --name second --quiet
  mv runs.db old.db
  rm -f runs.db-wal runs.db-shm
  sql old.db "$("$HEADRACE" query --db old.db --format csv "SELECT 'DROP VIEW ' || name || ';' AS s FROM sqlite_master WHERE type = 'view'" | tail -n +2)
    DROP TABLE comparison_runs; DROP TABLE comparisons; DROP TABLE decision_changes; DROP TABLE decisions;
    PRAGMA user_version = 6; PRAGMA journal_mode = DELETE;"
}

# Every command that is documented as reading. Each ends with 0, or with 4 where so short a run decides nothing.
reading_commands() {
  cat <<'COMMANDS'
runs
runs --json
runs copy second -o one.db
query "SELECT * FROM comparison_summary"
query "SELECT operator, busy_ns FROM operator_summary"
report second
report second --format json
report second --format md
report second --format html -o page.html
plan second
plan second -o plan.json
compare first second
tune --explain second
COMMANDS
}

@test "reading commands leave an older store as it is, and show it" {
  old_store
  before=$(sha256sum old.db; stat -c '%Y %Z %i %s' old.db; ls old.db*)
  while read -r line; do
    code=0
    eval "\"$HEADRACE\" $line --db old.db" > out 2> err || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 4 ] || { echo "$line: exit $code"; cat err; false; }
    after=$(sha256sum old.db; stat -c '%Y %Z %i %s' old.db; ls old.db*)
    [ "$before" = "$after" ] || { echo "$line changed the file"; diff <(echo "$before") <(echo "$after"); false; }
  done < <(reading_commands)
  "$HEADRACE" runs --json --db old.db | jq -e '.runs | length == 2 and .[0].name == "first" and .[0].steps_count == 40'
  "$HEADRACE" runs --json --db one.db | jq -e '.runs | length == 1 and .[0].name == "second" and .[0].steps_count == 40'
}

@test "reading commands open the store to read it" {
  command -v strace > /dev/null || skip "needs strace"
  strace -o /dev/null true 2> /dev/null || skip "strace may not trace here"
  "$HEADRACE" run small.toml --level 1 --name first --quiet
  "$HEADRACE" run small.toml --level 1 --name second --quiet
  while read -r line; do
    eval "strace -f -qq -e trace=open,openat -o trace \"$HEADRACE\" $line" > out 2> err || true
    grep -q 'runs\.db"' trace || { echo "$line does not open it"; cat err; false; }
    if grep 'runs\.db"' trace | grep -v O_RDONLY; then echo "$line opens it to write"; false; fi
  done < <(reading_commands)
}

@test "a store of an impossible version is refused by readers and writers, and not touched" {
  "$HEADRACE" run small.toml --level 1 --quiet
  sql runs.db "PRAGMA journal_mode = DELETE"
  for version in -1 -2147483648 0 99 2147483647; do
    sql runs.db "PRAGMA user_version = $version"
    sum=$(sha256sum < runs.db)
    for command in "runs" "report latest" "plan latest" "query 'SELECT 1'" "runs rm latest" "runs tag latest x" "run small.toml --quiet"; do
      run eval "\"$HEADRACE\" $command"
      one_line_error 5 "runs.db: (says schema $version,|made by a newer headrace \(schema $version;)"
    done
    [ "$sum" = "$(sha256sum < runs.db)" ]
  done
}

@test "what is no file is refused at once" {
  mkfifo pipe
  mkdir folder
  python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
  for place in pipe folder socket /dev/zero; do
    for command in "runs" "report latest" "query 'SELECT 1'" "run small.toml --quiet" "profile --quiet -- true"; do
      export HEADRACE_DB=$place
      run eval "timeout -k 1 20 \"$HEADRACE\" $command"
      one_line_error 5 "$place: is a (pipe|folder|socket|device), not a database"
    done
  done
}

as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
root_only() {
  [ "$(id -u)" -eq 0 ] || skip "needs root, to become another user"
  as_nobody true 2> /dev/null || skip "setpriv may not change the user here"
  as_nobody test -x "$HEADRACE" || skip "$HEADRACE may not be read by other users"
  chmod 755 "$DIR"
}

@test "a store in a folder that may not be written is read by an ordinary user" {
  root_only
  "$HEADRACE" run small.toml --level 1 --name first --quiet
  "$HEADRACE" run small.toml --level 1 --name second --quiet
  rm -f runs.db-wal runs.db-shm # a reader of the same user may have left them, empty
  sum=$(sha256sum < runs.db)
  for command in "runs" "report first" "plan first" "compare first second" "query 'SELECT name FROM run_summary'"; do
    code=0
    eval "as_nobody \"$HEADRACE\" $command" > out 2> err || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 4 ] || { echo "$command: exit $code"; cat err; false; }
    if grep "newest records" err; then false; fi
  done
  run as_nobody "$HEADRACE" query --format csv "SELECT name FROM run_summary ORDER BY run_id"
  [ "$output" = $'name\nfirst\nsecond' ]
  [ "$sum" = "$(sha256sum < runs.db)" ]
  # Nor can he write it, and is told so.
  run as_nobody "$HEADRACE" runs rm first
  one_line_error 6 "may not write the database"
}

@test "an ordinary user reads a store while another user records into it" {
  root_only
  "$HEADRACE" run small.toml --duration 60s --quiet &
  until_true 10 newest_run_is recording
  run as_nobody "$HEADRACE" query --format csv "SELECT state FROM run_summary"
  kill -INT $!
  wait $! || true
  [ "$output" = $'state\nrecording' ]
}

@test "newest records that are out of reach are said once" {
  root_only
  "$HEADRACE" run small.toml --level 1 --name first --quiet
  python3 - <<'PY'
import os, sqlite3
store = sqlite3.connect("runs.db", isolation_level=None)
store.execute("PRAGMA journal_mode = WAL")
store.execute("UPDATE runs SET tags = 'late'")
os._exit(0)  # as a killed process leaves it
PY
  [ -s runs.db-wal ]
  rm runs.db-shm
  as_nobody "$HEADRACE" report first > out 2> err || [ $? -eq 4 ]
  [ "$(grep -c 'runs.db: read without its newest records: .*runs.db-wal ([0-9]* bytes)' err)" -eq 1 ] || { cat err; false; }
}

# The file that a run was saved in whose database was taken away.
saved_file() { ls runs.db.recovered-* | grep -E '^runs\.db\.recovered-[0-9a-f]{8}$'; }
holds_the_run() { "$HEADRACE" runs --json --db "$1" | jq -e --arg state "$2" '.runs | length == 1 and .[0].state == $state and .[0].name == "kept" and .[0].duration_ns > 1e9'; }

@test "run: a database deleted meanwhile is said, exit 7, and the run is saved beside it" {
  "$HEADRACE" run small.toml --name kept --duration 60s --quiet 2> err &
  pid=$!
  until_true 20 has_steps
  sleep 1
  rm runs.db runs.db-wal runs.db-shm
  until_true 20 saved_file
  sleep 0.5
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 7 ] || { echo "exit $code"; cat err; false; }
  file=$(saved_file)
  [ "$(wc -l < err)" -eq 1 ] || { cat err; false; }
  grep -q "^headrace run: .*runs.db: deleted or renamed while it was recorded into: run 1 is saved in .*/$file$" err || { cat err; false; }
  holds_the_run "$file" complete
  [ ! -e runs.db ]
  # It went on: what was stored there after the rescue is there as well, and nothing of a file half made.
  [ "$("$HEADRACE" query --format csv --db "$file" "SELECT steps_count = (SELECT SUM(steps_count) FROM step_interval) FROM step_summary" | tail -n 1)" = 1 ]
  run ls
  [[ "$output" != *.tmp* ]]
}

@test "run: a database replaced meanwhile is left alone, and the run is saved beside it" {
  "$HEADRACE" run small.toml --level 1 --name other --quiet --db other.db
  sql other.db "PRAGMA journal_mode = DELETE"
  sum=$(sha256sum < other.db)
  "$HEADRACE" run small.toml --name kept --duration 60s --quiet 2> err &
  pid=$!
  until_true 20 has_steps
  sleep 1
  mv other.db runs.db
  until_true 20 saved_file
  kill -INT $pid
  code=0
  wait $pid || code=$?
  [ "$code" -eq 7 ] || { echo "exit $code"; cat err; false; }
  grep -q "runs.db: replaced while it was recorded into: run 1 is saved in .*/$(saved_file)$" err || { cat err; false; }
  [ "$sum" = "$(sha256sum < runs.db)" ]
  [ ! -e runs.db-wal ] # it is the log of the file that went: SQLite would replay it into this one
  "$HEADRACE" runs --json | jq -e '.runs | length == 1 and .[0].name == "other"'
  holds_the_run "$(saved_file)" complete
}

@test "profile: a database deleted meanwhile is said, and the run is saved beside it" {
  sleep 60 &
  target=$!
  "$HEADRACE" profile -p $target --name kept --quiet 2> err &
  pid=$!
  until_true 20 newest_run_is recording
  sleep 1
  rm runs.db runs.db-wal runs.db-shm
  until_true 20 saved_file
  kill -INT $pid
  code=0
  wait $pid || code=$?
  kill $target
  [ "$code" -eq 7 ] || { echo "exit $code"; cat err; false; }
  grep -q "^headrace profile: .*deleted or renamed while it was recorded into: run 1 is saved in .*/$(saved_file)$" err || { cat err; false; }
  holds_the_run "$(saved_file)" complete
  rm runs.db.recovered-*
  # A command's status stays its own.
  "$HEADRACE" profile --name kept --quiet -- sh -c 'while [ ! -e go ]; do sleep 0.05; done; exit 9' 2> err &
  pid=$!
  until_true 20 newest_run_is recording
  sleep 1
  rm runs.db runs.db-wal runs.db-shm
  until_true 20 saved_file
  touch go
  code=0
  wait $pid || code=$?
  [ "$code" -eq 9 ] || { echo "exit $code"; cat err; false; }
  grep -q "run 1 is saved in .*/$(saved_file)$" err || { cat err; false; }
  holds_the_run "$(saved_file)" complete
}

@test "collect: a database deleted meanwhile is said, exit 7, and the run is saved beside it" {
  sleep 60 &
  target=$!
  "$HEADRACE" collect --pid $target --name kept 2> err &
  pid=$!
  until_true 20 newest_run_is recording
  sleep 1
  rm runs.db runs.db-wal runs.db-shm
  until_true 20 saved_file
  kill -INT $pid
  code=0
  wait $pid || code=$?
  kill $target
  [ "$code" -eq 7 ] || { echo "exit $code"; cat err; false; }
  grep -q "^headrace collect: .*run 1 is saved in .*/$(saved_file)$" err || { cat err; false; }
  holds_the_run "$(saved_file)" complete
}

@test "a recording that can be saved nowhere is said to be lost, exit 7" {
  mkdir gone
  HEADRACE_DB=$DIR/gone/runs.db "$HEADRACE" run small.toml --duration 60s --quiet 2> err &
  pid=$!
  HEADRACE_DB=$DIR/gone/runs.db until_true 20 has_steps
  rm -r gone
  sleep 0.5
  kill -INT $pid || true # it ends by itself where the loss is found at once
  code=0
  wait $pid || code=$?
  [ "$code" -eq 7 ] || { echo "exit $code"; cat err; false; }
  grep -q "gone/runs.db: deleted or renamed while it was recorded into: run 1 is lost, as it could not be saved beside it (cannot create: No such file or directory)" err || { cat err; false; }
}
