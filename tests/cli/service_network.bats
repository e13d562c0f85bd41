#!/usr/bin/env bats
# The preprocessing service over TCP and TLS, jobs that are submitted, rows in the table's order, workers that are asked to leave.

bats_require_minimum_version 1.5.0
load service_helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$HEADRACE" generate rm3 -o t --rows 2000 --features 0.02 --stripe-rows 256 > /dev/null 2>&1
  "$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file > want
}

rows() { jq -cS '.checksum | [.rows_count, .multiset]' "$1"; }

@test "a job over a network gives the rows of a run, to whoever has its token" {
  for kind in tcp tls; do
    rm -rf "$JOB"
    start up service up t/pipeline.toml --job "$JOB" --workers 2 --listen $kind:127.0.0.1:0
    until_true '[ -s "$JOB/address" ]'
    [ "$(stat -c %a "$JOB/address.token")" = 600 ]
    address=$(cat "$JOB/address")
    run "$HEADRACE" service status "$address"
    [ "$status" -eq 6 ]
    [[ "$output" == *"no token is given"* ]]
    HEADRACE_TOKEN=$(printf '%064d' 0) run "$HEADRACE" consume "service:$address" -q
    [ "$status" -eq 6 ]
    [[ "$output" == *"refuses this process's token"* ]]
    until_true 'grep -q "has another token" "$DIR/up.err"'
    "$HEADRACE" service status "$address" --token-file "$JOB/address.token" --json | jq -e '.workers | length >= 0'
    start rank consume "service:@$JOB/address" --checksum --json
    wait "$rank"
    [ "$(rows "$DIR/rank.out")" = "$(rows want)" ]
    wait "$up"
  done
}

@test "what could be read on its way, and addresses that are none, are refused" {
  run "$HEADRACE" service up t/pipeline.toml --job "$JOB" --listen tcp:0.0.0.0:0
  [ "$status" -eq 6 ]
  [[ "$output" == *"write tls:0.0.0.0:0"* ]]
  # 192.0.2.1 is nobody's: what is refused is refused before anything is sent.
  export HEADRACE_TOKEN=$(printf '%064d' 0)
  for command in "service worker" "service status" "service end"; do
    run "$HEADRACE" $command tcp:192.0.2.1:7070
    [ "$status" -eq 6 ]
    [[ "$output" == *"--insecure"* ]]
  done
  run "$HEADRACE" consume service:tcp:192.0.2.1:7070 -q
  [ "$status" -eq 6 ]
  echo tcp:192.0.2.1:7070 > "$DIR/exposed"
  run "$HEADRACE" service worker "@$DIR/exposed" -q
  [ "$status" -eq 6 ]
  run "$HEADRACE" service worker tcp:127.0.0.2:1 --insecure --wait 100ms -q
  [ "$status" -eq 1 ]
  unset HEADRACE_TOKEN
  for wrong in unix:/tmp/x tls:nohost "tls:127.0.0.1:" inline; do
    run "$HEADRACE" service up t/pipeline.toml --job "$JOB" --listen "$wrong"
    [ "$status" -eq 2 ]
  done
  run --separate-stderr "$HEADRACE" service up t/pipeline.toml --job "$JOB" --listen 7070
  [ "$status" -eq 2 ]
  [ "$stderr" = "headrace service: --listen 7070: is not an address of a network; write tls:0.0.0.0:7070" ]
  run --separate-stderr "$HEADRACE" service up t/pipeline.toml --job "$JOB" --listen head:7070
  [ "$status" -eq 2 ]
  [[ "$stderr" == *"; write tls:head:7070" ]]
  run "$HEADRACE" service up t/pipeline.toml --job "$JOB" --address-file "$DIR/a"
  [ "$status" -eq 2 ]
  run "$HEADRACE" consume "unix:$DIR/x" --token-file "$DIR/x"
  [ "$status" -eq 2 ]
  HEADRACE_TOKEN=$(printf '%064d' 0) run "$HEADRACE" consume tcp:0.0.0.0:0
  [ "$status" -eq 6 ]
}

@test "delivery between two processes goes over TLS as well" {
  export HEADRACE_TOKEN=$(printf '%064d' 1)
  port=$((20000 + RANDOM % 10000))
  start rank consume tls:127.0.0.1:$port --checksum --json
  until_true '"$HEADRACE" run t/pipeline.toml --no-record -q --set delivery.to=tls:127.0.0.1:'$port' 2> "$DIR/run.err"'
  wait "$rank"
  [ "$(rows "$DIR/rank.out")" = "$(rows want)" ]
}

@test "with order = file one rank gets the rows in the table's order, by however many workers" {
  start up service up t/pipeline.toml --job "$JOB" --workers 3 --set pipeline.order=file
  start rank consume "service:$JOB" --checksum --json
  wait "$rank"
  [ "$(jq -c .checksum "$DIR/rank.out")" = "$(jq -c .checksum want)" ]
  wait "$up"
  run "$HEADRACE" service up t/pipeline.toml --job "$JOB" --set pipeline.order=file --mode independent
  [ "$status" -eq 2 ]
}

@test "a job without end goes on until it is ended" {
  start up service up t/pipeline.toml --job "$JOB" --workers 1 --set source.epochs=0
  start rank consume "service:$JOB" --json
  until_true '[ "$("$HEADRACE" service status "$JOB" --json 2> /dev/null | jq .admitted_rows_count)" -gt 5000 ] 2> /dev/null'
  "$HEADRACE" service status "$JOB" | grep -q "rows admitted, without end"
  "$HEADRACE" service status "$JOB" --json | jq -e '.rows_count == null'
  "$HEADRACE" service end "$JOB"
  code=0
  wait "$rank" || code=$?
  [ "$code" -eq 1 ]
}

@test "a dispatcher without a job takes one after the other" {
  start up service dispatcher --job "$JOB"
  until_true '[ -S "$JOB/dispatcher" ]'
  run "$HEADRACE" service status "$JOB"
  [ "$status" -eq 1 ]
  [[ "$output" == *"has no job yet"* ]]
  run "$HEADRACE" service submit t/nothing.toml --job "$JOB"
  [ "$status" -ne 0 ]
  for turn in 1 2; do
    until_true '"$HEADRACE" service submit t/pipeline.toml --job "$JOB" -q 2> "$DIR/submit.err"'
    start worker service worker "$JOB"
    start rank consume "service:$JOB" --checksum --json
    until_true '"$HEADRACE" service status "$JOB" > /dev/null 2>&1 || ! kill -0 "$rank" 2> /dev/null'
    wait "$rank"
    [ "$(rows "$DIR/rank.out")" = "$(rows want)" ]
    wait "$worker"
  done
  kill -INT "$up"
  code=0
  wait "$up" || code=$?
  [ "$code" -eq 130 ]
}

@test "a worker that gets SIGTERM finishes the splits that it has begun, ends with 0, and no split is made twice" {
  start up service dispatcher t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20
  start one service worker "$JOB"
  start rank consume "service:$JOB" --checksum --json --step-time 20ms
  until_true '[ "$("$HEADRACE" service status "$JOB" --json 2> /dev/null | jq .admitted_rows_count)" -gt 100 ] 2> /dev/null'
  start two service worker "$JOB"
  kill -TERM "$one"
  wait "$one"
  "$HEADRACE" service status "$JOB" --json > "$DIR/status" || true
  [ ! -s "$DIR/status" ] || jq -e '.leased_again_count == 0' "$DIR/status"
  wait "$rank"
  [ "$(rows "$DIR/rank.out")" = "$(rows want)" ]
  wait "$up"
}

@test "a worker that drains gives back the splits that it has made no row of" {
  start up service dispatcher t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20 --set source.epochs=0
  start one service worker "$JOB"
  start rank consume "service:$JOB" --step-time 50ms
  until_true '[ "$("$HEADRACE" service status "$JOB" --json 2> /dev/null | jq ".workers[0].leases_count")" -ge 3 ] 2> /dev/null'
  start two service worker "$JOB"
  kill -TERM "$one"
  wait "$one"
  "$HEADRACE" service status "$JOB" --json > "$DIR/status"
  jq -e '.leased_again_count == 0 and .given_back_count > 0' "$DIR/status"
  "$HEADRACE" service end "$JOB"
  wait "$rank" || true
  wait "$two" || true
  wait "$up" || true
}

@test "a worker waits for a dispatcher no longer than it is told" {
  run "$HEADRACE" service worker "$JOB" --wait 200ms -q
  [ "$status" -eq 1 ]
  [[ "$output" == *"for the dispatcher"* ]]
}

# certificate NAME ALT: of the authority ca.pem, for NAME.pem and NAME.key in $DIR.
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$DIR/$1.key" -out "$DIR/$1.csr" -subj /CN=member 2> /dev/null
  echo "subjectAltName=$2" > "$DIR/$1.ext"
  openssl x509 -req -in "$DIR/$1.csr" -CA "$DIR/ca.pem" -CAkey "$DIR/ca.key" -CAcreateserial -extfile "$DIR/$1.ext" -out "$DIR/$1.pem" -days 2 2> /dev/null
}

@test "a listener whose certificate names another host ends with exit 6 and the name that it needs" {
  command -v openssl > /dev/null || skip "openssl is not here"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$DIR/ca.key" -out "$DIR/ca.pem" -subj /CN=site -days 2 2> /dev/null
  certificate right IP:127.0.0.1
  certificate wrong IP:127.0.0.9
  right="--tls-ca $DIR/ca.pem --tls-certificate $DIR/right.pem --tls-key $DIR/right.key"
  wrong="--tls-ca $DIR/ca.pem --tls-certificate $DIR/wrong.pem --tls-key $DIR/wrong.key"
  run "$HEADRACE" service up t/pipeline.toml --job "$DIR/other" --listen tls:127.0.0.1:0 $wrong
  [ "$status" -eq 6 ]
  [[ "$output" == *"subjectAltName IP:127.0.0.1"* ]]
  start up service up t/pipeline.toml --job "$JOB" --workers 1 --listen tls:127.0.0.1:0 $right
  until_true '[ -s "$JOB/address" ]'
  run timeout 60 "$HEADRACE" consume "service:@$JOB/address" $wrong
  [ "$status" -eq 6 ]
  [[ "$output" == *"subjectAltName IP:127.0.0.1"* ]]
  start rank consume "service:@$JOB/address" --checksum --json $right
  wait "$rank"
  [ "$(rows "$DIR/rank.out")" = "$(rows want)" ]
  wait "$up"
}

@test "a rank of a job in a folder listens nowhere else" {
  run "$HEADRACE" consume "service:$JOB" --listen 127.0.0.1:0 --join-timeout 1s
  [ "$status" -eq 2 ]
  [[ "$output" == *"--listen"*"does nothing for a job that is met in its folder"* ]]
}
