#!/usr/bin/env bats
# headrace apply, and the first page of report, run and demo as a terminal and a pipe get them.
bats_require_minimum_version 1.5.0
load helpers

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }

setup_file() { make_recorded; }

@test "apply runs the plan, says what it gained, what limits now, and how to keep it" {
  take_recorded
  run "$HEADRACE" apply --pairs 2 --duration 1s --quiet
  # Two pairs of runs may not be enough on a busy machine: then it says so.
  case $status in 0 | 3 | 4) ;; *) echo "exit $status: $output"; false ;; esac
  [[ "$output" == *"The plan changed the rate by"*"load.parallelism 1 -> "*" before "*" after "*"predicted"* ]] || { echo "$output"; false; }
  if [ "$status" -eq 0 ]; then
    keep=$(sed -n 's/^ keep *//p' <<< "$output")
    [[ "$keep" == *"--set load.parallelism="* ]] || { echo "$output"; false; }
    run bash -c "$keep --duration 300ms --no-record"
    [ "$status" -eq 0 ] || { echo "$keep: $output"; false; }
  fi
  # The comparison is kept: no page asks for it again.
  measured=$status
  id=$("$HEADRACE" compare --list --json | jq '.comparisons[-1].comparison')
  "$HEADRACE" compare --show "$id" > shown || [ $? -eq 4 ]
  grep -q 'run 1 as recorded' shown || { cat shown; false; }
  "$HEADRACE" report 1 > again || [ $? -eq 4 ]
  tr -s ' \n' ' ' < again | grep -q "measured .* in 2 pairs of runs (comparison $id)" || { cat again; false; }
  ! grep -qi 'measure both\|predicted' again || { cat again; false; }
  case $measured in 0) grep -q -- '--set load.parallelism=' again ;; 4) grep -q -- 'apply 1 --pairs 6' again ;; *) false ;; esac
  "$HEADRACE" plan 1 > plan || [ $? -eq 4 ]
  grep -q "^measured .*(comparison $id)" plan || { cat plan; false; }
  "$HEADRACE" runs > list
  grep -q "runs of run 1 as rec.*, [+-][0-9]* %" list || { cat list; false; }
  "$HEADRACE" compare tag:apply-1-before tag:apply-1-after --json > c.json || [ $? -eq 4 ]
  jq -e '.schema == "headrace.compare/1"' c.json
}

@test "apply --json has the gain with its interval, measured and predicted" {
  take_recorded
  code=0
  "$HEADRACE" apply --pairs 2 --duration 500ms --quiet --json > a.json || code=$?
  case $code in 0 | 3 | 4) ;; *) false ;; esac
  jq -e '.schema == "headrace.apply/1" and .settings[0] and .gain_ratio >= .gain_ratio_low and .gain_ratio <= .gain_ratio_high
         and .predicted_gain_ratio and .pairs_count == 2' a.json || { cat a.json; false; }
  fits_schema apply a.json
  # A second time its runs have names of their own.
  "$HEADRACE" apply first --pairs 2 --duration 200ms --quiet > /dev/null || [ $? -le 4 ]
  "$HEADRACE" runs --json | jq -e '[.. | .name? // empty] | any(startswith("apply-1-2-before"))'
}

@test "apply says what limits where there is nothing to apply, as text, as JSON and in a file" {
  # The trainer is the limit, however loaded the machine.
  sed -i 's/sleep = "1ms"/sleep = "40ms"/' small.toml
  "$HEADRACE" run small.toml --set load.parallelism=8 --set consumer.step=60ms --name slow --duration 2500ms --quiet
  run "$HEADRACE" apply slow --json
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  echo "$output" > a.json
  fits_schema apply a.json
  jq -e '.settings == [] and .pairs_count == 0 and .verdict == "nothing to apply"' a.json
  "$HEADRACE" apply slow -o page.txt 2> said
  grep -q 'wrote page.txt' said
  grep -q 'Nothing to apply' page.txt
  grep -q '^ limit ' page.txt
}

@test "apply refuses what it cannot run" {
  run "$HEADRACE" apply nosuch
  one_line_error 5 "nosuch|no such|cannot open|not exist"
  "$HEADRACE" profile -q -- sleep 0.1
  run "$HEADRACE" apply
  one_line_error 2 "settings are in its own code"
  [[ "$output" == *"report "*"compare --a-cmd"* && "$output" != *" plan "* ]] || { echo "$output"; false; }
  "$HEADRACE" report > page || [ $? -eq 4 ]
  "$HEADRACE" run small.toml --set source.synthetic.elements=3 --quiet
  run "$HEADRACE" apply
  one_line_error 4 "has no plan"
  sed -i 's/sleep = "1ms"/sleep = "6ms"/' small.toml
  "$HEADRACE" run small.toml --name moved --duration 1500ms --quiet
  mv small.toml elsewhere.toml
  run "$HEADRACE" apply moved
  [ "$status" -ne 0 ] && [[ "$output" == *small.toml* ]] || { echo "$output"; false; }
}

@test "report: the first page fits 24 lines of 80 columns; evidence by name; --full has all" {
  take_recorded
  COLUMNS=80 "$HEADRACE" report > page || [ $? -eq 4 ]
  [ "$(wc -l < page)" -le 24 ] || { cat page; false; }
  [ "$(grep -v headrace page | awk '{ if (length($0) > m) m = length($0) } END { print m }')" -le 80 ] || { cat page; false; }
  grep -q '^ limit ' page
  grep -q '^ why ' page
  "$HEADRACE" report latest operators queues > parts || [ $? -eq 4 ]
  grep -q '^Operators' parts
  ! grep -q '^ limit ' parts
  run "$HEADRACE" report latest operatorz
  one_line_error 2 "Did you mean 'operators'"
  "$HEADRACE" report --full > full || [ $? -eq 4 ]
  [ "$(wc -l < full)" -gt 40 ]
  [ "$(head -1 full)" = "$(head -1 page)" ]
}

@test "runs has the wait and the rate of the report" {
  take_recorded
  "$HEADRACE" report 1 --json > report.json || [ $? -eq 4 ]
  "$HEADRACE" runs --json > runs.json
  python3 - report.json "$("$HEADRACE" runs | tail -1)" <<'EOF'
import json, re, sys
verdict = json.load(open(sys.argv[1]))["verdict"]
waited, rate, unit = re.search(r"([0-9.]+) %.*?([0-9.]+) ([kMG]? ?rows/s)", sys.argv[2]).groups()
said = float(rate) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(unit[0], 1)
rows = verdict["observed"]["rows_per_second"]
assert abs(said - rows) <= 0.006 * rows, (sys.argv[2], rows)
assert abs(float(waited) / 100 - verdict["stall_ratio"]) <= 0.006, (sys.argv[2], verdict["stall_ratio"])
EOF
  # The two differ, so that this can fail: the whole run has its start and its end.
  jq -e -n --slurpfile r report.json --slurpfile a runs.json '$r[0].verdict.observed.rows_per_second != $a[0].runs[0].rows_per_second'
}

@test "run ends with the first page; --quiet and --json do not" {
  sed -i 's/sleep = "1ms"/sleep = "6ms"/' small.toml
  "$HEADRACE" run small.toml --duration 1500ms > out
  grep -q '^ limit ' out
  [ "$("$HEADRACE" run small.toml --quiet)" = "" ]
  "$HEADRACE" run small.toml --level 1 --json | jq -e .run_id
}

@test "colours: --color, NO_COLOR, pipes" {
  take_recorded
  "$HEADRACE" report --color always > colored || [ $? -eq 4 ]
  grep -q $'\x1b\\[' colored
  for options in "" "--color never" "--color auto"; do
    "$HEADRACE" report $options > plain || [ $? -eq 4 ]
    ! grep -q $'\x1b' plain
  done
  run "$HEADRACE" report --color sometimes
  one_line_error 2 "color"
}

@test "report --open writes a page that only its owner may read" {
  take_recorded
  TMPDIR=$DIR run --separate-stderr "$HEADRACE" report --open
  [ -s "$output" ]
  [ "$(stat -c %a "$(dirname "$output")")" = 700 ]
  grep -q '<html' "$output"
}
