#!/usr/bin/env bats
# Manners of the command line: help that fits the terminal, completions, manual, lists, CSV in pipes.
load helpers

commands() { "$HEADRACE" --help | sed -n '/^commands:/,/^$/p' | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'; }

@test "help is as wide as the terminal, down to 40 columns, but for lines to paste" {
  for command in $(commands) collect; do
    for width in 40 64 80 200; do
      COLUMNS=$width "$HEADRACE" "$command" --help > help
      most=$((width < 100 ? width : 100))
      wide=$(awk -v most=$most '/^examples:/ { exit } length($0) > most' help)
      [ -z "$wide" ] || { echo "$command at $width: $wide"; false; }
    done
  done
}

@test "every option of every command says what it takes, and begins with a capital letter" {
  for command in $(commands) collect; do
    "$HEADRACE" "$command" --help | sed '/^examples:/,$d' > help
    ! grep -nw TEXT help || { echo "$command: a value without a name"; false; }
    grep -q '^Common options:$' help
    ! grep -nE '^  (-., )? *--[a-z-]+  +[a-z]' help || { echo "$command: an option's text"; false; }
  done
}

@test "options of one name are under one heading in all commands" {
  for command in $(commands); do
    "$HEADRACE" "$command" --help | sed '/^examples:/,$d' |
      awk '/^[A-Z].*:$/ { heading = $0 } match($0, /--(db|json|color|quiet|output|format) ?/) && /^  / {
        print substr($0, RSTART, RLENGTH), heading }'
  done | grep -v 'Common options:' > others || true
  [ ! -s others ] || { cat others; false; }
}

@test "the first output of a command that reads comes before anything slow" {
  # Not a speed: the overview and help open no database and no table.
  HEADRACE_DB=/nonexistent/x.db "$HEADRACE" --help > /dev/null
  for command in $(commands); do HEADRACE_DB=/nonexistent/x.db "$HEADRACE" "$command" --help > /dev/null; done
}

@test "query prints CSV where its output is no terminal" {
  take_recorded
  "$HEADRACE" query "SELECT run_id, name, NULL AS absent FROM run_summary" > rows
  [ "$(cat rows)" = $'run_id,name,absent\n1,first,' ]
  "$HEADRACE" query --format table "SELECT run_id, name FROM run_summary" | grep -q '^ *1  first$'
  python3 - "$HEADRACE" <<'PY'
import os, pty, sys
parent, child = pty.openpty()
if os.fork() == 0:
    os.dup2(child, 1)
    os.execv(sys.argv[1], [sys.argv[1], "query", "SELECT run_id, name FROM run_summary"])
os.wait()
text = os.read(parent, 4096).decode()
assert text.split() == ["run_id", "name", "1", "first"], text
PY
}

@test "runs: each with its verdict and rate, as its report says" {
  take_recorded
  run "$HEADRACE" runs
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == *run*name*waited*limit*rate* ]]
  [[ "${lines[1]}" == *first*load*rows/s* ]]
  limit=$("$HEADRACE" report first --json | jq -r .verdict.limit.name)
  [[ "${lines[1]}" == *" $limit "* ]]
  for width in 60 70 79 80; do
    COLUMNS=$width "$HEADRACE" runs > list
    ! awk -v width=$width 'length($0) > width' list | grep . || { echo "at $width columns"; false; }
    grep -q "first.*$limit.*rows/s" list
  done
  grep -q '  started ' list
  "$HEADRACE" runs --json | jq -e '.runs[0] | .rows_per_second > 0 and .wait_ratio > 0 and .comparison_id == null'
}

@test "runs: a rate of the whole run is marked, where the report has no verdict" {
  cat > short.toml <<'TOML'
pipeline = { name = "short" }
source = { synthetic = { elements = 0, rows = 8, bytes = "1KiB" } }
consumer = { step = "1ms" }
stage = [{ name = "load", operators = [{ sleep = "2ms" }] }]
TOML
  "$HEADRACE" run short.toml --duration 20ms --level 1 --quiet
  "$HEADRACE" runs > list 2> notes
  grep -q ' no verdict .* rows/s\*$' list
  grep -q '^\* of the whole run' notes
}

@test "runs: found by word and by time" {
  take_recorded
  "$HEADRACE" runs tag first nightly
  [ "$("$HEADRACE" runs --find NIGHT --json | jq '.runs | length')" -eq 1 ]
  [ "$("$HEADRACE" runs --find nosuch --json | jq '.runs | length')" -eq 0 ]
  "$HEADRACE" runs --find nosuch 2>&1 | grep -q "no such runs"
  [ "$("$HEADRACE" runs --since 3650d --until '2200-01-01 10:00' --json | jq '.runs | length')" -eq 1 ]
  [ "$("$HEADRACE" runs --since 2200-01-01 --json | jq '.runs | length')" -eq 0 ]
  [ "$("$HEADRACE" runs --until 3650d --json | jq '.runs | length')" -eq 0 ]
  for bad in soon -5d 2026-13-40 ''; do
    run "$HEADRACE" runs --since "$bad x"
    one_line_error 2 "neither a time ago nor a date"
  done
  run "$HEADRACE" runs --since 2026-02-31
  one_line_error 2 "'2026-02-31' is a day that its month lacks"
  "$HEADRACE" runs --until '2024-02-29 10:00' 2> /dev/null
  run "$HEADRACE" runs --since ''
  one_line_error 2 "--since: it is empty"
  # One quantity in both forms.
  rate=$("$HEADRACE" runs --json | jq '.runs[0].rows_per_second')
  shown=$("$HEADRACE" runs | grep -oE '[0-9.]+ rows/s' | cut -d ' ' -f 1)
  awk -v a="$rate" -v b="$shown" 'BEGIN { exit !(b > 0 && a / b < 1.01 && b / a < 1.01) }'
}

@test "runs: those of a comparison are one line, with its verdict" {
  take_recorded
  python3 - "$HEADRACE_DB" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
# Two more runs, and a comparison of them.
columns = [row[1] for row in db.execute("PRAGMA table_info(runs)") if row[1] not in ("run_id", "name")]
for name in ("c-A-1", "c-B-1"):
    db.execute(f"INSERT INTO runs (name, {', '.join(columns)}) SELECT ?, {', '.join(columns)} FROM runs WHERE name = 'first'", (name,))
known = {row[1]: row for row in db.execute("PRAGMA table_info(comparisons)")}
values = {"name": "c", "started_realtime_ns": 1, "state": "complete", "a_label": "old", "b_label": "new", "seed": 1,
          "verdict": "faster", "result_json": "{}", "duration_ns": 1}
for name, row in known.items():
    if row[3] and row[4] is None and not row[5] and name not in values:
        values[name] = 0 if row[2] == "INTEGER" else ""
names = [name for name in values if name in known]
db.execute(f"INSERT INTO comparisons ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", [values[n] for n in names])
for order, side in enumerate("ab"):
    db.execute("INSERT INTO comparison_runs (comparison_id, order_index, pair_index, side, run_id, left_out) VALUES (1, ?, 0, ?, ?, '')",
               (order, side, order + 2))
db.commit()
PY
  run "$HEADRACE" runs
  [ "${#lines[@]}" -eq 3 ] || { echo "$output"; false; }
  [[ "${lines[2]}" == *"[1]"*"2 runs of old and new: faster"* ]]
  run "$HEADRACE" runs --all
  [ "${#lines[@]}" -eq 4 ] || { echo "$output"; false; }
  [ "$("$HEADRACE" runs --json | jq -c '[.runs[].comparison_id]')" = "[null,1,1]" ]
}

@test "inspect of a folder: each file, sums, and what is wrong" {
  "$HEADRACE" generate rm1 -o table --rows 600 --features 0.01 --partitions 3 --seed 1 2> /dev/null
  run "$HEADRACE" inspect table
  [ "$status" -eq 0 ]
  [[ "${lines[0]}" == "table: 3 files, 600 rows, "* ]]
  [[ "$output" == *"part-00002.dwrf"*200* ]]
  "$HEADRACE" inspect table --json | jq -e '.schema == "headrace.inspect_table/1" and .rows_count == 600 and
    (.files | length) == 3 and ([.files[].size_bytes] | add) == .size_bytes and .damaged_files_count == 0'
  head -c 100 table/part-00001.dwrf > cut && mv cut table/part-00001.dwrf
  run "$HEADRACE" inspect table
  [ "$status" -eq 5 ]
  [[ "$output" == *"part-00001.dwrf"*damaged* ]]
  [[ "${lines[0]}" == "table: 3 files, 400 rows, "* ]]
  # One name in the schema of one file is another.
  "$HEADRACE" generate rm1 -o other --rows 100 --features 0.01 --seed 1 --compression none 2> /dev/null
  LC_ALL=C sed 's/timestamp/timestomp/' other/part-00000.dwrf > table/part-00001.dwrf
  run "$HEADRACE" inspect table
  echo "$output"
  [ "$status" -eq 5 ]
  [[ "$output" == *"part-00001.dwrf"*"OTHER COLUMNS than the first file"* ]]
  run "$HEADRACE" inspect table
  ! grep -q "next:" <<< "$output" || false
  run "$HEADRACE" inspect other --verify
  one_line_error 2 "other: is a table; --verify looks at one file: other/part-00000.dwrf"
  run "$HEADRACE" inspect table --verify
  one_line_error 2 "table: is a table of several files; --verify looks at one file: table/part-00000.dwrf"
  mkdir none
  run "$HEADRACE" inspect none
  one_line_error 5 "none"
}

@test "the manual has a page for each command, with all of its options" {
  "$HEADRACE" man -o man1
  for command in $(commands); do
    [ -s "man1/headrace-$command.1" ] || { echo "no page for $command"; false; }
    grep -qF "headrace\\-$command (1)" man1/headrace.1
    for option in $("$HEADRACE" "$command" --help | sed '/^examples:/,$d' | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
      grep -qF -- "${option//-/\\-}" "man1/headrace-$command.1" || { echo "$command: no $option"; false; }
    done
  done
  run "$HEADRACE" man nosuch
  one_line_error 2 "no such command"
  command -v man > /dev/null || skip "no man here"
  for page in man1/*; do
    LC_ALL=C.UTF-8 MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2> said > /dev/null
    [ ! -s said ] || { cat said; false; }
  done
}

@test "bash completes commands, options, words, and runs of the database" {
  take_recorded
  mkdir bin
  ln -s "$(realpath "$HEADRACE")" bin/headrace
  export DIR
  cat > try.sh <<'SH'
PATH=$DIR/bin:$PATH
source <(headrace completion bash)
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _headrace; echo "${COMPREPLY[*]}"; }
try headrace rep
try headrace run --lev
try headrace report --format ''
try headrace report f
try headrace runs t
try headrace plan --emit d
try headrace generate r
try headrace man repo
try headrace profile -- pyth
SH
  run bash try.sh
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = report ]
  [ "${lines[1]}" = --level ]
  [ "${lines[2]}" = "text md html json" ]
  [ "${lines[3]}" = first ]
  [[ "${lines[4]}" == *tag* ]]
  [ "${lines[5]}" = dataloader ]
  [ "${lines[6]}" = "rm1 rm2 rm3" ]
  [ "${lines[7]}" = report ]
}

@test "fish and zsh take their scripts" {
  "$HEADRACE" completion fish > headrace.fish
  "$HEADRACE" completion zsh > _headrace
  grep -q "__fish_seen_subcommand_from run' -s d -l duration -x" headrace.fish
  grep -q "'(-d --duration)'{-d,--duration}'\[Run this long[^]]*\]:DURATION: '" _headrace
  run "$HEADRACE" completion tcsh
  [ "$status" -eq 2 ]
  run "$HEADRACE" completion
  one_line_error 2 "SHELL: no shell is named; say one of bash, fish, zsh"
  for two in "--into all bash" "--runs bash" "--into all --runs"; do
    run "$HEADRACE" completion $two
    one_line_error 2 "excludes"
  done
  run "$HEADRACE" man -o all run
  one_line_error 2 "excludes"
  [ ! -e all ]
  command -v fish > /dev/null || skip "no fish here"
  export HOME=$DIR
  [ "$(fish -c 'source headrace.fish; complete -C "headrace run --lev"' | cut -f 1)" = --level ]
  [ "$(fish -c 'source headrace.fish; complete -C "headrace rep"' | cut -f 1)" = report ]
  command -v zsh > /dev/null || skip "no zsh here"
  zsh -n _headrace
}

@test "report of a part of a run: its windows alone, and it says so" {
  take_recorded
  "$HEADRACE" report first --until 1500ms > page || [ $? -eq 4 ]
  grep -qE "about a part of the run: from 0 .* to [0-9.]+ m?s" page
  for form in text md; do
    "$HEADRACE" report first --until 1500ms operators --format $form > page || [ $? -eq 4 ]
    head -n 3 page | tr '\n' ' ' | grep -qE "a part of it: from .* to [0-9.]+ m?s" || { cat page; false; }
  done
  "$HEADRACE" report first --until 1500ms operators --json > page || [ $? -eq 4 ]
  jq -e '.part | .start_seconds >= 0 and .end_seconds > .start_seconds and .end_seconds <= 1.5' page
  run "$HEADRACE" report first --until 1500ms bytes
  one_line_error 2 "bytes is of whole runs; leave out --since and --until"
  run "$HEADRACE" report first --since 1000ms --until 1001ms
  one_line_error 4 "no interval .* lies wholly between these times; those that do in part are from [0-9]+ms to [0-9]+ms"
  "$HEADRACE" report first $(sed -E 's/.* are from (.*) to (.*)/--since \1 --until \2/' <<< "$output") > page || [ $? -eq 4 ]
  grep -q "a part of it" page
  "$HEADRACE" report first --since 500ms --json > part.json || [ $? -eq 4 ]
  "$HEADRACE" report first --json > whole.json || [ $? -eq 4 ]
  [ "$(jq -s '.[0].run.duration_seconds < .[1].run.duration_seconds' part.json whole.json)" = true ]
  jq -e '.operators | length >= 2' part.json
  jq -e 'has("probes") | not' part.json
  run "$HEADRACE" report first --since 100s
  one_line_error 4 "nothing was recorded between these times; it lasted .* s; give times within it"
  run "$HEADRACE" report first --since 2s --until 1s
  one_line_error 2 "--until: is not after --since"
  run "$HEADRACE" report first --since 1s --format html
  one_line_error 2 "pages are of whole runs"
  run "$HEADRACE" report first --since soon
  one_line_error 2 "not a duration"
}
