#!/usr/bin/env bats
# Files that users name: where they are written, through what they are not, and with which permissions.
load helpers

recorded() { "$HEADRACE" run small.toml --level 1 --name first --quiet; }
# plant TARGET PREFIX...: links at PREFIX followed by the next processes' numbers, as temporary files were once named.
plant() {
  python3 -c 'import os, subprocess, sys
first = subprocess.Popen(["true"]).pid
for name in sys.argv[2:]:
    for pid in range(first, first + 5000):
        os.symlink(sys.argv[1], f"{name}{pid}")' "$@"
}
# report's exit code is 4 where so short a run decides nothing.
reports() { "$HEADRACE" report first "$@" || [ $? -eq 4 ]; }

@test "outputs are not written through planted links" {
  recorded
  echo precious > victim
  mkdir shared
  plant ../victim shared/page.html.tmp shared/plan.json.tmp
  ln -s ../victim shared/page.html
  reports --format html -o shared/page.html -f
  "$HEADRACE" plan first -o shared/plan.json
  [ "$(cat victim)" = precious ]
  [ ! -L shared/page.html ]
  grep -q '<html' shared/page.html
  jq -e '.schema == "headrace.plan/1"' shared/plan.json
  [ "$(find shared -type f | wc -l)" -eq 2 ]
}

@test "outputs go to standard output and through pipes as well" {
  recorded
  reports --format json -o /dev/stdout | jq -e '.schema == "headrace.report/1"'
  # Where standard output is a file, what is written comes behind what is there.
  { echo before; reports --format json -o /dev/stdout; } > both
  [ "$(head -n 1 both)" = before ]
  tail -n +2 both | jq -e '.schema == "headrace.report/1"'
  mkfifo pipe
  cat pipe > through &
  "$HEADRACE" plan first -o pipe
  wait $!
  jq -e '.schema == "headrace.plan/1"' through
  [ -p pipe ]
  "$HEADRACE" plan first -o >(cat > substituted)
  until_true 10 jq -e '.schema == "headrace.plan/1"' substituted
}

@test "a standard output that takes nothing is a failure, in the first write as in the last" {
  recorded
  for command in "report first" "report first --json" runs "plan first" "completion bash" doctor; do
    run bash -c "\"$HEADRACE\" $command 2>&1 > /dev/full | tail -n 1; exit \${PIPESTATUS[0]}"
    one_line_error 7 "standard output: cannot write: No space left"
  done
}

@test "outputs follow the umask, or the file they replace" {
  recorded
  (umask 077 && "$HEADRACE" plan first -o new.json)
  [ "$(stat -c %a new.json)" = 600 ]
  (umask 022 && "$HEADRACE" plan first -o new.json -f)
  [ "$(stat -c %a new.json)" = 600 ]
  (umask 022 && "$HEADRACE" plan first -o other.json)
  [ "$(stat -c %a other.json)" = 644 ]
}

@test "a table is not written through planted links, and comes with the usual permissions" {
  mkdir elsewhere
  plant elsewhere t.tmp-
  (umask 022 && "$HEADRACE" generate rm1 -o t --rows 64 --features 0.02 2> /dev/null)
  [ -z "$(ls elsewhere)" ]
  [ "$(stat -c '%a %F' t)" = "755 directory" ]
  [ -e t/table.json ]
  [ -z "$(find . -maxdepth 1 -type d -name 't.tmp*')" ]
}
