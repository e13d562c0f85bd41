#!/usr/bin/env bats
# headrace top: one screen as text and as JSON, and the live view on a pseudo terminal.
load helpers

setup_file() { prepare make_run; }
make_run() {
  "$HEADRACE" run small.toml --name done --set source.synthetic.elements=0 --duration 2500ms --quiet
}
setup() {
  HEADRACE=${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}
  DIR=$(mktemp -d)
  cd "$DIR"
  export HEADRACE_DB=$DIR/runs.db TMPDIR=$DIR
  small_pipeline
  take
}
terminal() { env -u NO_COLOR python3 "$BATS_TEST_DIRNAME/top_pty.py" "$@"; }

last_run_is() { [ "$("$HEADRACE" runs --json | jq -r '.runs[-1].state')" = "$1" ]; }

# record_meanwhile COMMAND...: runs it while small.toml is being recorded.
record_meanwhile() {
  "$HEADRACE" run small.toml --name live --set source.synthetic.elements=0 --duration 10m --quiet 2> err &
  local pid=$! code=0
  until_true 10 last_run_is recording
  until_true 10 has_steps
  "$@" || code=$?
  kill -INT $pid
  wait $pid || true
  return $code
}

@test "--once prints one screen without a terminal, and says which run" {
  "$HEADRACE" top --once --width 80 --height 24 --ascii > out
  grep -q "No run is being recorded: this is the latest." out
  grep -q "^ done " out
  grep -Eq "^ STAGE +THR +BUSY +OUTPUT QUEUE +ALLOWS/S +WHY IDLE" out
  grep -Eq "^.(load|parse) " out
  grep -Eq "^.trainer " out
  grep -q "steady part" out
  [ "$(wc -l < out)" -le 24 ]
  [ "$(awk 'length($0) > 80 && !/headrace/' out | wc -l)" -eq 0 ]
  ! grep -q $'\e' out
  "$HEADRACE" top done --once > named
  ! grep -q "No run is being recorded" named
}

@test "the sentences are those of the report" {
  "$HEADRACE" report done --json > report.json || [ $? -eq 4 ]
  "$HEADRACE" top done --json > top.json
  [ "$(jq -c '[.page.badge, .page.verdict, .page.conditions]' report.json)" = "$(jq -c '[.verdict.badge, .verdict.verdict, .verdict.conditions]' top.json)" ]
  [ "$(jq -c '[.page.lines[] | .text]' report.json)" = "$(jq -c '[.verdict.lines[] | .text]' top.json)" ]
}

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/top.schema.json" "$1"; }

@test "--json is one object" {
  "$HEADRACE" top --json > done.json
  fits_schema done.json
  "$HEADRACE" top --json | jq -e '.schema == "headrace.top/1" and .run.name == "done" and .run.state == "complete"
    and (.stages | map(.stage)) == ["load", "parse"] and .window.steady and .step_seconds > 0
    and .stall_ratio >= 0 and .stall_ratio <= 1 and .rows_per_second > 0
    and ([.stages[] | .busy_ratio | . >= 0 and . <= 1] | all)'
}

@test "the first figures of a recording are there at once" {
  record_meanwhile eval '"$HEADRACE" top --json > live.json; "$HEADRACE" top --once > live.txt'
  fits_schema live.json
  jq -e '.run.name == "live" and .run.state == "recording" and (.window.steady | not)' live.json
  grep -q "last " live.txt
}

@test "without a terminal: one line, and what to do" {
  run bash -c '"$0" top < /dev/null | cat' "$HEADRACE"
  [[ "$output" == *"needs a terminal"*"--once"* ]]
  run "$HEADRACE" top
  one_line_error 2 "needs a terminal.*--once"
}

@test "mistakes are one line" {
  run "$HEADRACE" top --once nosuch
  one_line_error 5 "nosuch"
  run "$HEADRACE" top --once --db nowhere.db
  one_line_error 5 "nowhere.db"
  run "$HEADRACE" top --once --interval 0
  one_line_error 2 "--interval.*250ms"
  run "$HEADRACE" top --once one two
  one_line_error 2 "takes one RUN"
  run "$HEADRACE" top --once -p 1
  one_line_error 2 "headrace profile"
  run "$HEADRACE" top -p 1 -- true
  one_line_error 2 "not both"
  run "$HEADRACE" top --once --width 3
  one_line_error 2 "--width"
}

@test "a damaged database is one line" {
  for at in 1000 5000 20000; do
    cp runs.db broken.db
    rm -f broken.db-*
    dd if=/dev/urandom of=broken.db bs=1 seek=$at count=3000 conv=notrunc 2> /dev/null
    run "$HEADRACE" top --once --db broken.db
    [[ "$status" -eq 0 || "$status" -eq 5 || "$status" -eq 1 ]] || { echo "exit $status: $output"; false; }
  done
}

@test "a hostile name reaches no terminal" {
  name=$'evil\e[2J\a\u009b31m\u202e\xff'
  "$HEADRACE" run small.toml --quiet --name "$name" --duration 300ms 2> /dev/null
  id=$("$HEADRACE" runs --json | jq .runs[-1].run_id)
  for options in --once "--once --color always" --json; do
    "$HEADRACE" top "$id" $options > out
    python3 - out <<'PY'
import re, sys
text = re.sub("\x1b\\[[0-9;]*m", "", open(sys.argv[1], "rb").read().decode())
bad = [c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or c == "\u202e"]
sys.exit(f"{bad}" if bad else 0)
PY
  done
  grep -qF 'evil\\x1b' out
}

@test "keys" { terminal keys "$HEADRACE" done; }
@test "the size of the terminal" { terminal resize "$HEADRACE" done; }
@test "signals leave the terminal as it was" { terminal signals "$HEADRACE" done; }
@test "no colours where none are wanted" { terminal no_colour "$HEADRACE" done; }
@test "ASCII only" { terminal ascii "$HEADRACE" done; }
@test "a run that grows, and a view that is frozen" { record_meanwhile terminal live "$HEADRACE"; }

@test "a recorder that is killed is noticed" {
  "$HEADRACE" run small.toml --name killed --set source.synthetic.elements=0 --duration 10m --quiet 2> err &
  pid=$!
  until_true 10 last_run_is recording
  until_true 10 has_steps
  code=0
  terminal killed "$HEADRACE" "$(pgrep -P $pid)" killed || code=$?
  kill -INT $pid 2> /dev/null || true
  wait $pid || true
  [ "$code" -eq 0 ]
}

@test "a process is recorded and watched" {
  "$HEADRACE" run small.toml --no-record --set source.synthetic.elements=0 --duration 10m > /dev/null 2>&1 &
  pid=$!
  code=0
  terminal attached "$HEADRACE" -p $pid --level 1 --name attached || code=$?
  kill -INT $pid
  wait $pid || true
  [ "$code" -eq 0 ]
  "$HEADRACE" runs --json | jq -e '.runs[-1].name == "attached" and .runs[-1].state == "complete"'
}

@test "a command is recorded and watched, ended or left" {
  terminal command "$HEADRACE" --level 1 -- "$HEADRACE" run small.toml --no-record --set source.synthetic.elements=0 --duration 10m
  until_true 10 eval '! last_run_is recording'
}

@test "a command that cannot run" {
  run terminal refusal "$HEADRACE" --level 1 -- ./nope 127
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *"cannot run './nope'"* ]]
  run terminal refusal "$HEADRACE" -p 4194000 5
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" == *"no process 4194000"* ]]
}
