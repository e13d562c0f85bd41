#!/usr/bin/env bats
# headrace compare: two sides against one another. Sides differ threefold in what they sleep, so that no machine changes
# the verdict.
bats_require_minimum_version 1.5.0
load helpers

pipelines() {
  cat > slow.toml <<'TOML'
pipeline = { name = "slow" }
source = { synthetic = { rows = 8 }, epochs = 0 }
consumer = { step = "0ms" }
stage = [{ name = "load", operators = [{ sleep = "12ms" }] }]
TOML
  sed 's/12ms/2ms/; s/slow/fast/' slow.toml > fast.toml
}

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/compare.schema.json" "$1"; }

@test "two pipelines: which is faster, stored, shown again, gated" {
  pipelines
  # Six pairs beside other tests may decide nothing (4).
  for try in 1 2 3; do
    code=0
    "$HEADRACE" compare slow.toml fast.toml --pairs 6 --duration 500ms --level 2 --name both -q --json > page.json || code=$?
    [ "$code" -eq 4 ] || break
    rm -f "$HEADRACE_DB"*
  done
  [ "$code" -eq 0 ]
  fits_schema page.json
  [ "$(jq -r .verdict page.json)" = faster ]
  jq -e '.metrics[0].metric == "rows_per_s" and .metrics[0].change > 1 and .metrics[0].change_low > 0.5' page.json
  jq -e '(.a.samples | length) == (.b.samples | length) and (.b_first | length) == (.a.samples | length)' page.json
  jq -e '.attribution.attribution_parts | map(.name) | index("load") != null' page.json
  # Its runs are runs like all others.
  pairs=$(jq '.a.samples | length' page.json)
  [ "$("$HEADRACE" runs --json | jq '[.runs[] | select(.tags == "compare both both-A")] | length')" = "$pairs" ]
  [ "$("$HEADRACE" runs --json | jq '[.runs[] | select(.name == "both-B-1")] | length')" = 1 ]
  # Two pairs are a block: the second has the other order.
  jq -e '.b_first[0] != .b_first[1]' page.json
  # The same page again, from the database.
  "$HEADRACE" compare --show 1 --json > again.json
  cmp page.json again.json
  "$HEADRACE" compare --show 1 > page.txt
  grep -q '^VERDICT  B is faster: ' page.txt
  grep -q '^WHY ' page.txt
  grep -q '^DO       adopt B' page.txt
  "$HEADRACE" compare --show 1 --format md -o pr.md
  grep -q '^- \*\*VERDICT\*\* B is faster' pr.md
  "$HEADRACE" compare --show 1 --format html | grep -q 'B is faster'
  run "$HEADRACE" compare --show 1 -o pr.md
  [ "$status" -eq 2 ]
  [ "$("$HEADRACE" compare --list --json | jq -r '.comparisons[0] | .name + " " + .state + " " + .verdict')" = "both complete faster" ]
  # Gates: passed, failed, not known.
  "$HEADRACE" compare --show 1 --fail-on 'rows_per_s<-3%'
  run "$HEADRACE" compare --show 1 --fail-on 'rows_per_s<-3%' --fail-on 'rows_per_s>20%'
  [ "$status" -eq 3 ]
  [[ "$output" == *"fails: rows_per_s>20% holds"* ]]
  run "$HEADRACE" compare --show 1 --fail-on 'elapsed_s>5%'
  [ "$status" -eq 4 ]
  # The same runs as two sets.
  "$HEADRACE" compare tag:both-A tag:both-B --json > sets.json
  fits_schema sets.json
  [ "$(jq -r '.verdict + " " + .unit' sets.json)" = "faster run" ]
  # One run a side has too few blocks: raw values, no verdict.
  run --separate-stderr "$HEADRACE" compare both-A-1 both-B-1
  [ "$status" -eq 4 ]
  [[ "$output" == *"no verdict: "*"cannot prove a change"* ]]
  # Before and after a time of one run: of half a second, too short for an answer.
  run --separate-stderr "$HEADRACE" compare both-B-1 --split 250ms
  [ "$status" -eq 4 ]
  # On a busy machine a part of it may have no step at all.
  [[ "$output" == *"no verdict: "*"parts of one run"*"LIMIT "*"give parts of 8 s each or more"* ||
    "$output$stderr" == *"nothing was measured on both sides"* || "$output$stderr" == *"course over time"* ]]
  # Runs of another machine are refused, and marked when forced.
  python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute("UPDATE runs SET cpu_model = \"another\" WHERE name LIKE \"both-A-%\""); d.commit()' "$HEADRACE_DB"
  run "$HEADRACE" compare tag:both-A tag:both-B
  one_line_error 5 'not comparable: .*another.*--force'
  "$HEADRACE" compare tag:both-A tag:both-B --force > forced.txt
  grep -q 'NOT COMPARABLE, forced' forced.txt
  # Without its runs the stored page still answers.
  for run in $("$HEADRACE" runs --json | jq '.runs[].run_id'); do "$HEADRACE" runs rm "$run"; done
  "$HEADRACE" compare --show 1 | grep -q '^VERDICT  B is faster: '
}

@test "one pipeline with a setting of each side; few pairs give raw values and exit 4" {
  pipelines
  run --separate-stderr "$HEADRACE" compare slow.toml --a load.parallelism=1 --b load.parallelism=4 --set pipeline.prefetch=3 \
    --pairs 2 --duration 300ms --level 2 --name 'two words' -q
  [ "$status" -eq 4 ]
  [[ "$output" == *"no verdict: 2 pairs cannot prove a change (p would have to be below 0.05"* ]]
  [[ "$output" == *"--set pipeline.prefetch=3 --a load.parallelism=1 --b load.parallelism=4"*"--level 2"*"--pairs 6"* ]]
  "$HEADRACE" query --format json "SELECT settings_text FROM run_summary WHERE tags LIKE '% two-words-B'" | grep -q 'load.parallelism=4'
}

@test "two commands, by their time" {
  "$HEADRACE" compare --a-cmd 'sleep 0.8' --b-cmd 'sleep 0.1' --pairs 6 --level 1 --json -q > page.json
  fits_schema page.json
  jq -e '.metrics[0].metric == "elapsed_s" and .verdict == "faster" and .metrics[0].change_high < 0' page.json
}

@test "a side that fails: its own error and which side it was" {
  pipelines
  run "$HEADRACE" compare --a-cmd true --b-cmd 'echo no such thing >&2; exit 3' --pairs 2 --level 1 -q
  one_line_error 1 "side B: .*exit code 3: no such thing"
  run -127 "$HEADRACE" compare --a-cmd true --b-cmd ./missing --pairs 2 --level 1 -q
  one_line_error 127 "side B: .*missing"
  # A mistake in a pipeline shows before anything runs.
  run "$HEADRACE" compare slow.toml --a load.parallelism=1 --b load.paralelism=2
  one_line_error 2 "side B: setting 'load.paralelism'.*did you mean 'parallelism'"
  run "$HEADRACE" compare slow.toml none.toml
  one_line_error 5 'side B: none.toml'
  run "$HEADRACE" compare slow.toml fast.toml --prepare 'exit 7' -q
  one_line_error 1 "--prepare before side .: 'exit 7' ended with exit code 7"
  "$HEADRACE" compare --list --json | jq -e 'all(.comparisons[]; .state == "failed")'
}

@test "mistakes are one line that says what to do" {
  pipelines
  run "$HEADRACE" compare
  one_line_error 2 'does not say what to compare'
  run "$HEADRACE" compare slow.toml
  one_line_error 2 'does not say what differs'
  run "$HEADRACE" compare slow.toml fast.toml --fail-on 'rows_per_sec<-3%'
  one_line_error 2 "Did you mean 'rows_per_s'"
  run "$HEADRACE" compare slow.toml fast.toml --margin 0
  one_line_error 2 '--margin: .0. is not a share'
  run "$HEADRACE" compare slow.toml fast.toml --duration -1
  one_line_error 2 '--duration'
  run "$HEADRACE" compare slow.toml fast.toml --cold
  one_line_error 2 'side A: --cold: the elements are synthetic'
  run "$HEADRACE" compare --a-cmd true
  one_line_error 2 'give --b-cmd'
  run "$HEADRACE" compare --a-cmd true --b-cmd true --duration 3s
  one_line_error 2 'a command ends by itself'
  "$HEADRACE" run small.toml --level 1 --name one -q
  run "$HEADRACE" compare one one
  one_line_error 2 'run 1 is on both sides.*1@0s-10s 1@10s-20s'
  run "$HEADRACE" compare one@0s-2s one@1s-3s
  one_line_error 2 'run 1: these parts of it overlap'
  run "$HEADRACE" compare one@2s-1s one@3s-
  one_line_error 2 'one@2s-1s: is empty, or ends before it begins'
  run "$HEADRACE" compare one --split 1h
  one_line_error 4 'run 1: nothing was recorded between these times; it lasted'
  run "$HEADRACE" compare one --split 0
  one_line_error 2 '--split: must be longer than 0'
  run "$HEADRACE" compare slow.toml --split 1s
  one_line_error 2 '--split: takes one recorded run'
  run "$HEADRACE" compare one two
  one_line_error 5 "has no run 'two'"
  run "$HEADRACE" compare one
  one_line_error 2 'is compared with nothing'
  run "$HEADRACE" compare one slow.toml
  one_line_error 2 'a pipeline file and a recorded run'
  run "$HEADRACE" compare tag:none one
  one_line_error 5 "no run has the tag 'none'"
  run "$HEADRACE" compare one latest --pairs 3
  one_line_error 2 '--pairs: recorded runs are not run again'
  run "$HEADRACE" compare one two three
  one_line_error 2 'three: 3 sides'
  run "$HEADRACE" compare --list --pairs 3
  one_line_error 2 '--pairs: a comparison of the database is shown as it was made'
  touch taken
  run "$HEADRACE" compare slow.toml fast.toml -o taken
  one_line_error 2 'taken'
  [ "$("$HEADRACE" compare --list --json | jq '.comparisons | length')" = 0 ]  # before anything ran
  "$HEADRACE" compare --help | grep -qF '[SIDES...]'
  run "$HEADRACE" compare --show 7
  one_line_error 5 'has no comparison 7'
  run "$HEADRACE" compare --db none.db 1 2
  one_line_error 5 'none.db'
  [ ! -e none.db ]
}

@test "an interrupt ends all that a side or --prepare started" {
  pipelines
  for what in prepare command; do
    case $what in
      prepare) set -- slow.toml fast.toml --prepare "(trap '' INT TERM; sleep 61.$$) & sleep 62.$$; true" ;;
      command) set -- --a-cmd "sleep 61.$$ & sleep 62.$$; true" --b-cmd true ;;
    esac
    "$HEADRACE" compare "$@" --level 1 -q 2> said &
    pid=$!
    until_true 60 pgrep -xf "sleep 62[.]$$"
    kill -TERM "$pid"
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 130 ] || { cat said; false; }
    run pgrep -xf "sleep 6[12][.]$$"
    [ "$status" -eq 1 ] || { echo "$what left $output"; false; }
  done
}

two_runs_compared() { [ "$("$HEADRACE" runs --json | jq '[.runs[] | select(.tags != "")] | length')" -ge 2 ]; }

@test "Ctrl-C keeps what there is, and says how to go on" {
  pipelines
  "$HEADRACE" compare slow.toml fast.toml --duration 300ms --level 2 --pairs 200 --no-early-stop --name cut > page 2> said &
  pid=$!
  until_true 60 two_runs_compared
  kill -INT "$pid"
  code=0
  wait "$pid" || code=$?
  [ "$code" -eq 130 ]
  grep -q 'stopped after [0-9]* of 200 pairs' said
  [ "$("$HEADRACE" compare --list --json | jq -r '.comparisons[0].state')" = interrupted ]
  "$HEADRACE" query "SELECT COUNT(*) FROM run_summary WHERE state = 'recording'" --format csv | tail -1 | grep -qx 0
  run "$HEADRACE" compare --show 1
  one_line_error 4 'has no result: it is interrupted'
}

@test "a comparison that was killed outright is interrupted, and its runs end" {
  pipelines
  "$HEADRACE" compare slow.toml fast.toml --duration 300ms --level 2 --pairs 200 --no-early-stop -q > page 2>&1 &
  pid=$!
  until_true 60 two_runs_compared
  [ "$("$HEADRACE" compare --list --json | jq -r '.comparisons[0].state')" = running ]
  kill -KILL "$pid"
  wait "$pid" || true
  [ "$("$HEADRACE" compare --list --json | jq -r '.comparisons[0].state')" = interrupted ]
  run "$HEADRACE" compare --show 1
  one_line_error 4 'has no result: it is interrupted'
  none_records() { [ "$("$HEADRACE" runs --json | jq '[.runs[] | select(.state == "recording")] | length')" -eq 0 ]; }
  until_true 30 none_records
}
