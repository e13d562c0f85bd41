#!/usr/bin/env bats
# headrace serve: the pages of a database, from the command line to the socket.

# One run for all of them; each has a copy of its database.
setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$HEADRACE" generate rm1 -o t --rows 4000 --features 0.02 > /dev/null 2>&1
  "$HEADRACE" run t/pipeline.toml --db runs.db --name one --duration 3s --set consumer.step=4ms > /dev/null 2>&1
}

setup() {
  cd "$BATS_TEST_TMPDIR"
  cp "$BATS_FILE_TMPDIR"/runs.db* .
}

teardown() {
  [ -z "${server:-}" ] || { kill "$server" 2> /dev/null || true; wait "$server" 2> /dev/null || true; }
}

# Starts the server and waits for its address.
begin() {
  "$HEADRACE" serve --db runs.db --port 0 "$@" > address 2> talk &
  server=$!
  for _ in $(seq 300); do
    [ ! -s address ] || break
    sleep 0.1
  done
  address=$(head -n 1 address)
  root=$(echo "$address" | sed 's|\(http://[^/]*\).*|\1|')
}

ask() { curl -sS --max-time 60 "$@"; }

@test "the address is printed and its pages are there" {
  command -v curl > /dev/null || skip "needs curl"
  begin one
  [[ "$address" == http://127.0.0.1:*/run/1 ]]
  ask "$address" | grep -q '<main'
  ask "$root/app.js" | grep -q .
  [ "$(ask "$root/api/runs" | jq -r '.runs[0].name')" = one ]
  [ "$(ask "$root/api/runs/1/report" | jq -r .schema)" = headrace.report/1 ]
  ask "$root/api/runs/1/course" | jq -e '.t | length > 5' > /dev/null
}

@test "the page says what the report says, byte for byte" {
  command -v curl > /dev/null || skip "needs curl"
  begin
  PATH="$(dirname "$HEADRACE"):$PATH" headrace report 1 --db runs.db --json | jq .page > command.json
  ask "$root/api/runs/1/report" | jq .page > page.json
  diff command.json page.json
}

@test "a what-if answers as plan does" {
  command -v curl > /dev/null || skip "needs curl"
  begin
  ask "$root/api/runs/1/settings" | jq -e '.settings | length > 0' > /dev/null
  key=$(ask "$root/api/runs/1/settings" | jq -r '.settings[0].key')
  "$HEADRACE" plan 1 --db runs.db --what-if "$key=2" --json | jq -c '[.predicted, .limited_by, .limits]' > command.json
  ask -H 'Content-Type: application/json' -d "{\"set\":{\"$key\":2}}" "$root/api/runs/1/whatif" | jq -c '[.predicted, .limited_by, .limits]' > page.json
  diff command.json page.json
}

@test "another name, another origin and a form are refused" {
  command -v curl > /dev/null || skip "needs curl"
  begin
  [ "$(ask -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "$root/")" = 403 ]
  [ "$(ask -o /dev/null -w '%{http_code}' -H 'Origin: http://evil.example' "$root/api/runs")" = 403 ]
  [ "$(ask -o /dev/null -w '%{http_code}' -d 'sql=SELECT 1' "$root/api/sql")" = 415 ]
}

@test "other addresses than this machine's own need the token" {
  command -v curl > /dev/null || skip "needs curl"
  begin --host 0.0.0.0
  token=${address##*#token=}
  [ "${#token}" = 64 ]
  port=$(echo "$root" | sed 's/.*://')
  [ "$(ask -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/api/runs")" = 401 ]
  [ "$(ask -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "http://127.0.0.1:$port/api/runs")" = 200 ]
  [ "$(ask -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/")" = 200 ]
}

@test "a signal ends it with 0" {
  begin
  kill -INT "$server"
  wait "$server"
  server=
}

@test "wrong inputs are one line and their exit code" {
  run "$HEADRACE" serve --db none.db
  [ "$status" = 5 ]
  [ "${#lines[@]}" = 1 ]
  run "$HEADRACE" serve --db runs.db nothing
  [ "$status" = 5 ]
  run "$HEADRACE" serve --db runs.db --port 99999
  [ "$status" = 2 ]
  run "$HEADRACE" serve --db runs.db --host nowhere
  [ "$status" = 2 ]
  [[ "$output" == *"is not an address"* ]]
}

@test "the report in one file holds its data and asks nobody" {
  "$HEADRACE" report 1 --db runs.db --format html -o page.html
  [ "$(wc -c < page.html)" -lt 307200 ]
  grep -q 'id="data"' page.html
  ! grep -q 'unsafe-inline' page.html
  ! grep -Eq '(src|href)="https?:' page.html
  run "$HEADRACE" report 1 --db runs.db --format html -o page.html
  [ "$status" != 0 ]
}
