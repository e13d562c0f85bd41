#!/usr/bin/env bats
# The preprocessing service on one machine: service up, dispatcher, worker, status, drain, end; and consume service:JOB.

bats_require_minimum_version 1.5.0
load service_helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$HEADRACE" generate rm3 -o t --rows 2000 --features 0.02 --stripe-rows 256 > /dev/null 2>&1
  "$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 | jq -cS '.checksum | [.rows_count, .multiset]' > want
}

service_status() { "$HEADRACE" service status "$JOB" --json 2> /dev/null; }
consumed() { jq -cS '.checksum | [.rows_count, .multiset]' "$1"; }
state_is() { [ "$(service_status | jq -r .state)" = "$1" ]; }

@test "what the ranks of a job get together is what a run consumes" {
  for kind in "" --shared-memory; do
    for mode in lockstep independent; do
      rm -rf "$JOB"
      start up service up t/pipeline.toml --job "$JOB" --workers 2 --mode $mode
      start rank consume "service:$JOB" --checksum --json $kind
      wait "$rank"
      [ "$(consumed "$DIR/rank.out")" = "$(cat want)" ]
      wait "$up"
      grep -q "is complete" "$DIR/up.err"
      [ ! -e "$JOB/dispatcher" ]
    done
  done
}

@test "two ranks get as many rows, and a rank that is missing is named" {
  start up service up t/pipeline.toml --job "$JOB" --ranks 2 --set pipeline.batch_rows=50
  start zero consume "service:$JOB" --rank 0/2 --json
  until_true 'grep -q "waits for rank 1" "$DIR/zero.err"'
  run "$HEADRACE" service status "$JOB"
  [[ "$output" == *"waiting"*"rank 1    has not joined"* ]]
  start one consume "service:$JOB" --rank 1/2 --json
  wait "$zero"
  wait "$one"
  [ "$(($(jq .rows_count "$DIR/zero.out") + $(jq .rows_count "$DIR/one.out")))" -eq 2000 ]
  [ "$(jq .rows_count "$DIR/zero.out")" -ge 950 ]
  [ "$(jq .rows_count "$DIR/zero.out")" -le 1050 ]
}

@test "a worker that is killed is started again, and no row is lost" {
  start up service up t/pipeline.toml --job "$JOB" --workers 1 --set pipeline.batch_rows=20
  start rank consume "service:$JOB" --checksum --json --step-time 20ms
  until_true '[ "$(service_status | jq ".workers[0].sent_units_count")" -gt 0 ]'
  kill -9 "$(service_status | jq '.workers[0].pid')"
  wait "$rank"
  [ "$(consumed "$DIR/rank.out")" = "$(cat want)" ]
  grep -q "was killed by signal 9" "$DIR/up.err"
  wait "$up"
}

@test "a worker that is drained ends by itself and is not replaced" {
  start up service up t/pipeline.toml --job "$JOB" --workers 2 --set pipeline.batch_rows=20 --set source.epochs=1000
  start rank consume "service:$JOB" --json -q
  until_true '[ "$(service_status | jq "[.workers[] | select(.sent_units_count > 0)] | length")" = 2 ]'
  worker=$(service_status | jq '.workers[0].worker')
  "$HEADRACE" service drain "$JOB" "$worker"
  until_true '[ "$(service_status | jq ".workers | length")" = 1 ]'
  [ "$(service_status | jq ".workers[0].worker")" != "$worker" ]
  [ "$(service_status | jq .workers_lost_count)" = 0 ]
  sleep 0.5
  [ "$(service_status | jq '.workers | length')" = 1 ]
  run "$HEADRACE" service drain "$JOB" 99
  [ "$status" -eq 2 ]
  "$HEADRACE" service end "$JOB"
}

@test "a rank that was killed goes on from its checkpoint" {
  start up service up t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20
  consume="consume service:$JOB --checkpoint $DIR/c --checkpoint-every 2 --resume --row-log $DIR/rows --step-time 10ms --checksum --json"
  start rank $consume
  until_true '[ "$(service_status | jq ".ranks[0].delivered_rows_count")" -gt 200 ]'
  kill -9 "$rank"
  wait "$rank" || true
  start rank $consume
  wait "$rank"
  [ "$(consumed "$DIR/rank.out")" = "$(cat want)" ]
  [ "$(jq .rows_count "$DIR/rank.out")" -lt 2000 ]
  [ "$(cut -d' ' -f1,2 "$DIR/rows" | sort -u | wc -l)" = 2000 ]
  [ "$(wc -l < "$DIR/rows")" = 2000 ]
  wait "$up"
}

@test "the state of a complete job is complete, and one of another table is refused" {
  start up service up t/pipeline.toml --job "$JOB"
  start rank consume "service:$JOB" --checkpoint "$DIR/c" --resume --json
  wait "$rank"
  wait "$up"
  start up service up t/pipeline.toml --job "$JOB"
  start rank consume "service:$JOB" --checkpoint "$DIR/c" --resume --json
  wait "$rank"
  [ "$(jq .rows_count "$DIR/rank.out")" = 0 ]
  wait "$up"
  [ -d other ] || "$HEADRACE" generate rm3 -o other --rows 500 --features 0.02 --seed 9 > /dev/null 2>&1
  start up service up other/pipeline.toml --job "$JOB"
  until_true state_is\ waiting
  run "$HEADRACE" consume "service:$JOB" --checkpoint "$DIR/c" --resume
  [ "$status" -eq 2 ]
  [[ "$output" == *"another table"* ]]
}

@test "a fresh process takes the place of a rank, whose process ends" {
  start up service up t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20
  start old consume "service:$JOB" --step-time 20ms -q
  until_true '[ "$(service_status | jq ".ranks[0].delivered_rows_count")" -gt 0 ]'
  start new consume "service:$JOB" --checksum --json
  code=0
  wait "$old" || code=$?
  [ "$code" -eq 1 ]
  grep -q "start all ranks again, each from its checkpoint" "$DIR/old.err"
  wait "$new"
  [ "$(consumed "$DIR/new.out")" = "$(cat want)" ]
}

@test "a job is ended on demand; a second dispatcher and what a job cannot do are refused" {
  start up service up t/pipeline.toml --job "$JOB"
  until_true state_is\ waiting
  run "$HEADRACE" service dispatcher t/pipeline.toml --job "$JOB"
  [ "$status" -eq 2 ]
  [[ "$output" == *"another dispatcher has this job"* ]]
  "$HEADRACE" service end "$JOB"
  code=0
  wait "$up" || code=$?
  [ "$code" -eq 1 ]
  run "$HEADRACE" service status "$JOB"
  [ "$status" -eq 1 ]
  run "$HEADRACE" service up t/pipeline.toml --job "$JOB" --set pipeline.order=file --mode independent
  [ "$status" -eq 2 ]
  [[ "$output" == *"pipeline.order"* ]]
  run "$HEADRACE" consume "service:$JOB" --rank 2/2
  [ "$status" -eq 2 ]
  run "$HEADRACE" consume "service:$JOB" --join-timeout 300ms -q
  [ "$status" -eq 1 ]
  [[ "$output" == *"for the dispatcher"* ]]
}

@test "Ctrl-C ends the dispatcher and its workers" {
  start up service up t/pipeline.toml --job "$JOB" --workers 2
  until_true '[ "$(service_status | jq ".workers | length")" = 2 ]'
  pids=$(service_status | jq '.workers[].pid')
  kill -INT "$up"
  code=0
  wait "$up" || code=$?
  [ "$code" -eq 130 ]
  for pid in $pids; do [ ! -d "/proc/$pid" ]; done
}

# One worker makes all 2000 rows long before the rank has stepped over them.
@test "a job is not complete while a rank that was killed has rows to deliver" {
  start up service up t/pipeline.toml --job "$JOB" --workers 1 --set pipeline.batch_rows=200
  consume="consume service:$JOB --queue 64 --checkpoint $DIR/c --checkpoint-every 1 --resume --checksum --json"
  start rank $consume --step-time 2s
  until_true '[ "$(service_status | jq .left_rows_count)" = 0 ] && [ -s "$DIR/c" ]'
  kill -9 "$rank"
  wait "$rank" || true
  until_true '[ "$(service_status | jq ".ranks[0].connected")" = false ]'
  sleep 0.5
  [ -d "/proc/$up" ]
  state_is running
  start rank $consume
  wait "$rank"
  [ "$(consumed "$DIR/rank.out")" = "$(cat want)" ]
  wait "$up"
  grep -q "is complete" "$DIR/up.err"
}

@test "workers of an earlier job leave the next one alone" {
  start first service dispatcher t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=50 --set source.epochs=1000
  for worker in one two three; do start $worker service worker "$JOB"; done
  start rank consume "service:$JOB" -q
  until_true '[ "$(service_status | jq "[.workers[] | select(.sent_units_count > 0)] | length")" = 3 ]'
  kill -9 "$rank" "$first"
  wait "$rank" "$first" || true
  touch "$JOB/rank-0-$rank.kept"
  [ -S "$JOB/rank-0-$rank" ]
  start up service up t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20
  until_true state_is\ waiting
  [ ! -e "$JOB/rank-0-$rank" ] # the dispatcher removed what a dead rank left
  [ -e "$JOB/rank-0-$rank.kept" ]
  start rank consume "service:$JOB" --checksum --json
  for worker in "$one" "$two" "$three"; do
    code=0
    wait "$worker" || code=$?
    [ "$code" -eq 1 ]
  done
  grep -q "the job has another pipeline now" "$DIR/one.err"
  wait "$rank"
  [ "$(consumed "$DIR/rank.out")" = "$(cat want)" ]
  wait "$up"
}

@test "ranks are told that their job was ended, on demand and by Ctrl-C" {
  for way in end interrupt; do
    start up service up t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20
    start rank consume "service:$JOB" --step-time 50ms -q
    until_true '[ "$(service_status | jq ".ranks[0].delivered_rows_count")" -gt 0 ]'
    if [ $way = end ]; then "$HEADRACE" service end "$JOB"; else kill -INT "$up"; fi
    code=0
    wait "$rank" || code=$?
    [ "$code" -eq 1 ]
    grep -q "the job was ended" "$DIR/rank.err"
    wait "$up" || true
  done
}

@test "a rank that is interrupted saves what it delivered" {
  start up service up t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20
  consume="consume service:$JOB --checkpoint $DIR/c --checkpoint-every 100000 --resume --checksum --json"
  start rank $consume --step-time 20ms
  until_true '[ "$(service_status | jq ".ranks[0].delivered_rows_count")" -gt 200 ]'
  [ ! -e "$DIR/c" ]
  kill -INT "$rank"
  code=0
  wait "$rank" || code=$?
  [ "$code" -eq 130 ]
  delivered=$(jq .rows_count "$DIR/rank.out")
  start rank $consume
  wait "$rank"
  [ "$(consumed "$DIR/rank.out")" = "$(cat want)" ]
  [ "$(($(jq .rows_count "$DIR/rank.out") + delivered))" -eq 2000 ]
  wait "$up"
}

@test "options that would do nothing, bad worker numbers and bad folders are refused" {
  run "$HEADRACE" consume "unix:$DIR/socket" --rank 0/1
  [ "$status" -eq 2 ]
  [[ "$output" == *"--rank"*"is for a rank of a job"* ]]
  run "$HEADRACE" consume "service:$JOB" --producers 2
  [ "$status" -eq 2 ]
  [[ "$output" == *"--producers"* ]]
  refused() { # WHAT WORDS...: in one line, with exit 2
    local what=$1
    shift
    run "$HEADRACE" service "$@"
    [ "$status" -eq 2 ]
    [[ "$output" == *"$what"* && "$output" != *$'\n'* ]]
  }
  mkdir -m 700 "$JOB"
  for option in "--token-file t/x" "--tls-ca t/x" "--tls-certificate t/x" "--tls-key t/x" --insecure; do
    refused "met in its folder" up t/pipeline.toml --job "$JOB" $option
    refused "met in its folder" worker "$JOB" $option
    refused "met in its folder" status "$JOB" $option
    refused "met in its folder" submit t/pipeline.toml --job "$JOB" $option
  done
  for setting in consumer.step=5ms delivery.ring=1MiB pipeline.reorder_window=2; do
    refused "does nothing in a job" up t/pipeline.toml --job "$JOB" --set $setting
    case "$setting" in
      consumer.*) [[ "$output" == *"'headrace consume' has options for"* ]] ;;
      *) [[ "$output" == *"leave it out" ]] ;;
    esac
  done
  refused "does one of up" status "$JOB" end "$JOB"
  refused "is not more than --workers" up t/pipeline.toml --job "$JOB" --workers 3 --most 3
  for option in "--ranks 2" "--mode independent" "--set decode.parallelism=2"; do
    refused "whoever submits" dispatcher --job "$JOB" $option
  done
  refused "--fleet" up t/pipeline.toml --job "$JOB" --no-fleet --fleet "$DIR/f.db"
  export HEADRACE_TOKEN=$(printf '%064d' 0)
  refused "does nothing without TLS" status tcp:127.0.0.1:1 --tls-ca t/x
  refused "does nothing with TLS" status tls:127.0.0.1:1 --insecure
  refused "does nothing with TLS" up t/pipeline.toml --job "$JOB" --listen tls:127.0.0.1:0 --insecure
  unset HEADRACE_TOKEN
  run "$HEADRACE" service drain "$JOB" 1x
  [ "$status" -eq 2 ]
  [[ "$output" == *"WORKER"*"1x"*"is not a whole number"* && "$output" != *$'\n'* ]]
  mkdir "$DIR/open"
  chmod 777 "$DIR/open"
  for command in "service worker $DIR/open" "service status $DIR/open" "service drain $DIR/open 1" "service end $DIR/open" \
    "service up t/pipeline.toml --job $DIR/open" "consume service:$DIR/open"; do
    run "$HEADRACE" $command
    [ "$status" -eq 6 ]
    [[ "$output" == *"only this user can write"* ]]
  done
  long=/tmp/$(printf '%090d' 0)
  for command in "service worker $long" "service status $long" "service up t/pipeline.toml --job $long" "consume service:$long"; do
    run "$HEADRACE" $command
    [ "$status" -eq 2 ]
    [[ "$output" == *"at most 88 bytes"* ]]
    [ ! -e "$long" ]
  done
}

@test "a rank that is started again is nothing to tell" {
  start up service up t/pipeline.toml --job "$JOB" --workers 2 --set source.epochs=0
  start rank consume "service:$JOB" -q
  until_true '[ "$(service_status | jq .admitted_rows_count)" -gt 500 ] 2> /dev/null'
  kill -9 "$rank"
  wait "$rank" || true
  sleep 0.5
  start rank consume "service:$JOB" -q
  until_true '[ "$(service_status | jq .generation)" = 2 ] && [ "$(service_status | jq .admitted_rows_count)" -gt 500 ] 2> /dev/null'
  "$HEADRACE" service end "$JOB"
  wait "$up" || true
  ! grep -q "reach" "$DIR/up.err"
}

@test "a worker more than a rank takes ends, and no row is lost" {
  start up service dispatcher t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20 --set source.epochs=10
  start one service worker "$JOB"
  start two service worker "$JOB"
  until_true '[ "$(service_status | jq ".workers | length")" = 2 ]'
  start rank consume "service:$JOB" --most-workers 1 --step-time 12ms --json
  wait "$rank"
  [ "$(jq .rows_count "$DIR/rank.out")" = 20000 ]
  codes=""
  for worker in "$one" "$two"; do
    code=0
    wait "$worker" || code=$?
    codes="$codes $code"
  done
  [ "$codes" = " 0 7" ] || [ "$codes" = " 7 0" ] || { echo "codes$codes"; cat "$DIR/one.err" "$DIR/two.err"; false; }
  cat "$DIR/one.err" "$DIR/two.err" | grep -q "as many producers as it takes.*--most-workers"
  grep -q "1 are connected, as many as it takes" "$DIR/rank.err"
  wait "$up"
}

# Its thread there waits for room while the next one comes.
@test "a worker that replaces one that was killed finds its place at a rank that takes no more" {
  start up service dispatcher t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=250
  start one service worker "$JOB"
  until_true '[ "$(service_status | jq ".workers | length")" = 1 ]'
  start rank consume "service:$JOB" --most-workers 1 --step-time 600ms --json
  until_true '[ "$(service_status | jq .admitted_rows_count)" -gt 0 ] 2> /dev/null'
  kill -9 "$one"
  start two service worker "$JOB"
  wait "$rank"
  [ "$(jq .rows_count "$DIR/rank.out")" = 2000 ]
  wait "$two"
  wait "$up"
}

@test "service up starts no worker again that is one too many, and says so once" {
  start up service up t/pipeline.toml --job "$JOB" --workers 3 --set pipeline.batch_rows=20 --set source.epochs=10
  until_true '[ "$(service_status | jq ".workers | length")" = 3 ]'
  start rank consume "service:$JOB" --most-workers 1 --step-time 12ms --json
  wait "$rank"
  wait "$up"
  [ "$(grep -c "ended with exit code 7" "$DIR/up.err")" -le 2 ]
  grep -q "runs 1 worker from now on" "$DIR/up.err"
  [ "$(grep -c "as many producers as it takes" "$DIR/up.err")" = 2 ]
}

# One message of version 3, which says Bye, by hand: magic, version, kind, bytes, zero, checksum.
@test "a process of another version is named with both versions and what to do, by either side" {
  start dispatcher service dispatcher t/pipeline.toml --job "$JOB"
  until_true '[ -S "$JOB/dispatcher" ]'
  cat > "$DIR/older.py" << 'END'
import socket, struct, sys
older = struct.pack("<4sHHIIQ", b"HRSV", 3, 17, 0, 0, 0)
s = socket.socket(socket.AF_UNIX)
if sys.argv[1] == "call":
    s.connect(sys.argv[2])
    s.sendall(older)
    s.recv(65536)
else:
    s.bind(sys.argv[2])
    s.listen()
    while True:
        one = s.accept()[0]
        one.recv(65536)
        one.sendall(older)
END
  python3 "$DIR/older.py" call "$JOB/dispatcher"
  local both="has version 3 of the service, this headrace knows [0-9]*; use the same headrace on both sides"
  until_true 'grep -q "disconnected a process: the message $both" "$DIR/dispatcher.err"'
  "$HEADRACE" service end "$JOB"
  mkdir -m 700 "$DIR/older"
  python3 "$DIR/older.py" listen "$DIR/older/dispatcher" 3>&- &
  STARTED="$STARTED $!"
  until_true '[ -S "$DIR/older/dispatcher" ]'
  for words in "service worker $DIR/older" "service status $DIR/older" "consume service:$DIR/older --rank 0/1"; do
    run --separate-stderr "$HEADRACE" $words
    [ "$status" -eq 5 ]
    [ "$(grep -c "the message $both" <<< "$stderr")" = 1 ]
  done
}

@test "words that are none are named in one line" {
  one_line() { # WHAT WORDS...
    local what=$1
    shift
    run "$HEADRACE" "$@"
    [ "$status" -eq 2 ]
    [[ "$output" == *"$what"* && "$output" != *$'\n'* ]]
  }
  one_line "unknown subcommand 'foo', it has up, dispatcher, submit, worker, pool, lend, status, drain, end; try 'headrace service --help'" service foo
  one_line "unknown subcommand 'statsu', it has up, dispatcher, submit, worker, pool, lend, status, drain, end. Did you mean 'status'?" service statsu train --json
  one_line "unknown option '--jbo'. Did you mean '--job'?" service --jbo x y
  one_line "unknown option '--jsno'. Did you mean '--json'?" service status train --jsno
  local whose="option of up, dispatcher, submit; here it is a word: 'status JOB'"
  one_line "unknown option '--jbo'. Did you mean '--job'? It is an $whose" service --jbo x status
  one_line "'--job' is an $whose" service status --job x
  one_line "'--job' is an $whose" service --job x status
  one_line "'--ranks' is an option of up, dispatcher, submit" service status train --ranks 2
  one_line "say which: up, dispatcher, submit, worker, pool, lend, status, drain, end" service --json
  one_line "'extra' is one word too many" service status train extra
  one_line "foo: is not an address for taking batches; write service:JOB for a rank of a job, or unix:PATH, shm:PATH or tls:HOST:PORT to listen there" consume foo
  one_line "Did you mean 'service:train'?" consume servce:train
  one_line "Did you mean 'unix:/tmp/x'?" consume unx:/tmp/x
  one_line "Did you mean 'service:@/shared/address'?" consume @/shared/address
  start up service up t/pipeline.toml --job "$JOB"
  until_true state_is\ waiting
  one_line "Did you mean 'service:$JOB'?" consume "$JOB"
  "$HEADRACE" service end "$JOB"
}
