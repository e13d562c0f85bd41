#!/usr/bin/env bats
# The configuration file < environment < options, and what is said of a mistake in it.
load helpers

config() { unset HEADRACE_CONFIG; mkdir -p config/headrace; cat > config/headrace/config.toml; export XDG_CONFIG_HOME=$DIR/config; }

@test "the file is less than the environment, and that less than an option" {
  config <<< 'db = "file.db"'
  unset HEADRACE_DB
  "$HEADRACE" run small.toml --quiet --level 1 --duration 300ms
  [ -e file.db ]
  HEADRACE_DB=environment.db "$HEADRACE" run small.toml --quiet --level 1 --duration 300ms
  [ -e environment.db ]
  HEADRACE_DB=environment.db "$HEADRACE" run small.toml --quiet --level 1 --duration 300ms --db option.db
  [ -e option.db ]
  for db in file environment option; do [ "$("$HEADRACE" runs --db $db.db --json | jq '.runs | length')" -eq 1 ]; done
  [ ! -e headrace.db ]
}

@test "a command's own table is stronger than the top, and lists and flags work" {
  config <<'TOML'
db = "top.db"
quiet = true
[run]
db = "run.db"
level = 1
without = ["energy", "sockets"]
set = ["consumer.step=0ms"]
TOML
  unset HEADRACE_DB
  run "$HEADRACE" run small.toml --duration 300ms
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  [ -e run.db ] && [ ! -e top.db ]
  [ "$("$HEADRACE" query --db run.db 'SELECT level_asked FROM run_summary' | tail -n 1)" = 1 ]
  [ "$("$HEADRACE" query --db run.db "SELECT value FROM run_setting WHERE key = 'consumer.step'" | tail -n 1)" = 0ms ]
  COLUMNS=100 "$HEADRACE" run --help | grep -q 'default: 1\]'
}

@test "what headrace starts for a command does not read the file again" {
  config <<'TOML'
[run]
no-record = true
TOML
  # Each side of a comparison is a `headrace run` of its own, which must record.
  run "$HEADRACE" compare small.toml --a parse.parallelism=1 --b parse.parallelism=2 --pairs 2 --duration 300ms --level 1
  [[ "$status" -eq 0 || "$status" -eq 4 ]] || { echo "$output"; false; }
  [ "$("$HEADRACE" runs --json | jq '.runs | length')" -eq 4 ]
}

@test "headrace config lists file, environment, and who decides" {
  config <<'TOML'
color = "never"
[report]
no-pager = true
TOML
  run "$HEADRACE" config
  [ "$status" -eq 0 ]
  [[ "$output" == *"configuration file: $DIR/config/headrace/config.toml"* ]]
  [[ "$output" == *'color = never   ($NO_COLOR decides instead)'* ]]
  [[ "$output" == *"report.no-pager = true"* ]]
  [[ "$output" == *"HEADRACE_DB"*"now: $HEADRACE_DB"* ]]
  AWS_SECRET_ACCESS_KEY=hush "$HEADRACE" config --json > out.json
  jq -e '.schema == "headrace.config/1" and .file_exists and .options[0].decided_by == "NO_COLOR" and .options[1].line == 3' out.json
  ! grep -q hush out.json
  XDG_CONFIG_HOME=relative HOME=$DIR "$HEADRACE" config | grep -q "^configuration file: $DIR/.config/headrace/config.toml (not there"
  HEADRACE_CONFIG= "$HEADRACE" config | grep -q "^configuration file: none"
}

@test "headrace config shows no secret, and the file as the user names it" {
  printf 'color = "never"\n' > own.toml
  export HEADRACE_CONFIG=own.toml OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer s3cret"
  for json in "" --json; do
    "$HEADRACE" config $json > out
    ! grep -q s3cret out || { cat out; false; }
    grep -A3 HEADRACE_CONFIG out | tr -d '\n' | grep -q own.toml || { cat out; false; }
  done
  jq -e '.environment[] | select(.name == "OTEL_EXPORTER_OTLP_HEADERS") | .is_set and (has("value") | not)' out
}

@test "what says how to mend the file works with a fault in it" {
  config <<< $'[run]\nlevel = 99'
  "$HEADRACE" run --help | grep -q -- --level
  config <<< 'db = ['
  "$HEADRACE" run --help | grep -q -- --level
  "$HEADRACE" man run > /dev/null
  "$HEADRACE" completion bash > /dev/null
  run "$HEADRACE" runs
  one_line_error 2 "config.toml:"
}

@test "an option of the line drops one of the file that it cannot stand beside" {
  take_recorded
  config <<< 'json = true'
  [ "$("$HEADRACE" query --format csv 'SELECT 1 AS one' | tail -n 1)" = 1 ]
  "$HEADRACE" query 'SELECT 1 AS one' | jq -e .
  config <<< $'json = true\n[query]\nformat = "csv"'
  [ "$("$HEADRACE" query 'SELECT 1 AS one' | tail -n 1)" = 1 ]
  HEADRACE_CONFIG= run "$HEADRACE" query --json --format csv 'SELECT 1'
  one_line_error 2 "--json"
}

@test "a program that is profiled has the user's HEADRACE_CONFIG" {
  unset HEADRACE_CONFIG
  "$HEADRACE" profile --quiet -- sh -c 'echo "${HEADRACE_CONFIG-none}"' > out
  [ "$(cat out)" = none ] || { cat out; false; }
  printf 'color = "never"\n' > own.toml
  HEADRACE_CONFIG=own.toml "$HEADRACE" profile --quiet -- sh -c 'echo "$HEADRACE_CONFIG"' > out
  [ "$(cat out)" = own.toml ] || { cat out; false; }
}

@test "~ in a value is the home folder" {
  config <<< 'db = "~/home.db"'
  unset HEADRACE_DB
  HOME=$DIR "$HEADRACE" config --json | jq -e --arg db "$DIR/home.db" '.database == $db'
}

# said EXPECTED: what every command says of the file on standard input.
said() {
  config
  run "$HEADRACE" runs
  one_line_error 2 "$1"
}

@test "a mistake in the file: where it is, and what to do" {
  said "config.toml:1: 'dbb' is not an option that means the same in all commands; did you mean 'db'" <<< 'dbb = "x"'
  said "config.toml:1: 'level' is not an .*put it below the command that has it: \[run\]" <<< 'level = 2'
  said "config.toml:2: there is no command 'rnu'; did you mean 'run'" <<< $'[rnu]\nlevel = 1'
  said "config.toml:2: there is no command 'collect'" <<< $'[collect]\nkeep = 1'
  said "config.toml:2: headrace run has no option 'levle'; did you mean 'level'" <<< $'[run]\nlevle = 1'
  said "config.toml:2: headrace run has no option 'helf'; 'headrace run --help' lists them" <<< $'[run]\nhelf = true'
  said "config.toml:2: --force is for each call to say; remove it here" <<< $'[generate]\nforce = true'
  said "config.toml:3: .*--all = x; 'headrace runs --help' says what it takes" <<< $'[runs]\nsince = "1d"\nall = "x"'
  said "config.toml:1:[0-9]+: 'db' is not a text, a number, true or false" <<< 'db = 2020-01-01'
  said "config.toml:1:[0-9]+: 'db' is empty" <<< 'db = []'
  said "config.toml:1:[0-9]+: 'x' is a table in a table" <<< $'[run.x]\na = 1'
  said "config.toml:[12]:[0-9]+: " <<< 'db'
  said "config.toml:1: more than 32 brackets within each other; close the brackets" <<< "db = $(printf '[%.0s' $(seq 200))"
}

@test "a value that the option refuses is a mistake of the file" {
  config <<< $'[run]\nlevel = 9'
  run "$HEADRACE" run small.toml
  one_line_error 2 "config.toml:2: --level: .*9.*; 'headrace run --help' says what it takes"
  "$HEADRACE" doctor --json > /dev/null  # other commands have no such option
}

@test "a file that is named and not there" {
  HEADRACE_CONFIG=none.toml run "$HEADRACE" runs
  one_line_error 2 "none.toml: cannot open: No such file or directory; correct HEADRACE_CONFIG"
}

@test "every variable that the sources read is in the list" {
  cd "$BATS_TEST_DIRNAME/../.."
  "$HEADRACE" config --json | jq -r '.environment[].name' > "$DIR/listed"
  grep -rhoE '(getenv|FromEnvironment|ReadEnvironment|environ\.get|Variable)\([^")]*"(HEADRACE|AWS|OTEL)_[A-Z_]+"' --include=*.cc --include=*.h --include=*.c \
    --include=*.py base probes reader collectors experiments analysis dashboards workloads cli |
    grep -oE '"[A-Z_]+"' | tr -d '"' | sort -u > "$DIR/read"
  [ -s "$DIR/read" ]
  while read -r name; do
    grep -qx "$name" "$DIR/listed" || { echo "$name is not in cli/environment.cc"; false; }
    grep -q "\`$name" docs/cli.md || { echo "$name is not in docs/cli.md"; false; }
  done < "$DIR/read"
}
