#!/usr/bin/env bats
# Workers that several jobs share: service pool, lend, up --pool; and what status and end say of them.

bats_require_minimum_version 1.5.0
load service_helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$HEADRACE" generate rm3 -o t --rows 4000 --features 0.02 --stripe-rows 64 > /dev/null 2>&1
  "$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 | jq -cS '.checksum | [.rows_count, .multiset]' > want
}

pool_status() { "$HEADRACE" service status "$DIR/pool" --json 2> /dev/null; }
granted() { pool_status | jq -r --arg job "$DIR/$1" '.jobs[] | select(.place == $job) | .granted_count'; }
running() { pool_status | jq -r --arg job "$DIR/$1" '.jobs[] | select(.place == $job) | .running_count'; }
units() { "$HEADRACE" service status "$DIR/$1" --json | jq '[.workers[].sent_units_count] | add // 0'; }
pids() { "$HEADRACE" service status "$DIR/$1" --json | jq -c '[.workers[].pid] | sort'; }
consumed() { jq -cS '.checksum | [.rows_count, .multiset]' "$1"; }

# begin JOB EPOCHS OPTIONS...: a job of the pool and its rank.
begin() {
  local job=$1 epochs=$2
  shift 2
  start "up_$job" service up t/pipeline.toml --job "$DIR/$job" --pool "$DIR/pool" --no-fleet --set pipeline.batch_rows=64 \
    --set "source.epochs=$epochs" "$@"
  start "rank_$job" consume "service:$DIR/$job" --checksum --json --step-time "${STEP:-0ms}"
}

@test "two jobs share the workers of a pool by weight, and each row of both comes once" {
  start pool service pool "$DIR/pool" --workers 4
  begin a 0 --weight 3 --workers 4
  until_true '[ "$(running a)" = 4 ]'
  STEP=100ms begin b 1 --workers 4
  until_true '[ "$(granted a)" = 3 ] && [ "$(granted b)" = 1 ]'
  run "$HEADRACE" service status "$DIR/pool"
  [[ "$output" == *"pool $DIR/pool  4 workers of 1 machine, 2 jobs"*"weight 3: 3 workers, 4 wanted"* ]]
  until_true '[ "$(running b)" = 1 ]'
  run "$HEADRACE" service status "$DIR/a"
  [[ "$output" == *"lends 3 of its 4 workers"* ]]
  wait "$rank_b"
  wait "$up_b"
  [ "$(consumed "$DIR/rank_b.out")" = "$(cat want)" ]
  until_true '[ "$(granted a)" = 4 ]'  # what b had is given back
  [ "$("$HEADRACE" service status "$DIR/a" --json | jq .workers_lost_count)" = 0 ]
  "$HEADRACE" service end "$DIR/a"
  until_true '[ "$(pool_status | jq ".jobs | length")" = 0 ]'
  until_true '[ "$(pool_status | jq ".machines[0].running_count")" = 0 ]'
  run "$HEADRACE" service status "$DIR/pool"
  [[ "$output" == *"next: headrace service up PIPELINE --pool"* ]]
  run "$HEADRACE" service end "$DIR/pool"
  [[ $status -eq 0 && "$output" == *"$DIR/pool was told to end" ]]
  wait "$pool"
}

@test "a pool that is killed and started again leaves its jobs as they are" {
  start pool service pool "$DIR/pool" --workers 0
  start lend service lend "$DIR/pool" --workers 2
  begin a 0 --workers 2
  until_true '[ "$(pids a | jq length)" = 2 ]'
  workers=$(pids a)
  kill -9 "$pool"
  before=$(units a)
  until_true '[ "$(units a)" -gt "$before" ]'  # they work without it
  start pool service pool "$DIR/pool" --workers 0
  until_true '[ "$(granted a)" = 2 ] && [ "$(running a)" = 2 ]'
  sleep 0.5
  [ "$(pids a)" = "$workers" ]
  # A machine that leaves lets its workers finish.
  kill "$lend"
  code=0
  wait "$lend" || code=$?
  [ "$code" -eq 130 ]
  [ "$("$HEADRACE" service status "$DIR/a" --json | jq .workers_lost_count)" = 0 ]
  until_true '[ "$(pool_status | jq .workers_count)" = 0 ]'
  "$HEADRACE" service end "$DIR/pool"
  wait "$pool"
}

@test "whoever has the place of a pool that is gone ends neither its jobs nor its machines" {
  start pool service pool "$DIR/pool"
  start lend service lend "$DIR/pool" --workers 2
  begin a 0 --workers 2
  until_true '[ "$(pids a | jq length)" = 2 ]'
  kill -9 "$pool"
  start other service up t/pipeline.toml --job "$DIR/pool" --workers 1 --no-fleet
  until_true 'grep -q "cannot be used, and is tried again: .*is a job and no pool" "$DIR/lend.err"'
  until_true 'grep -q "cannot be used, and is tried again: .*is a job and no pool" "$DIR/up_a.err"'
  sleep 1.5  # it is tried three times more, and said once
  [ "$(grep -c "is a job and no pool" "$DIR/lend.err")" -le 2 ]
  [ "$(grep -c "is a job and no pool" "$DIR/up_a.err")" -le 2 ]
  before=$(units a)
  until_true '[ "$(units a)" -gt "$before" ]'
  "$HEADRACE" service end "$DIR/pool"
  wait "$other" || true
  start pool service pool "$DIR/pool"
  until_true '[ "$(granted a)" = 2 ]'
  [ "$("$HEADRACE" service status "$DIR/a" --json | jq .workers_lost_count)" = 0 ]
}

@test "a machine that is lost is replaced by another one, and no row is lost" {
  start pool service pool "$DIR/pool"
  start first service lend "$DIR/pool" --workers 2
  STEP=50ms begin a 1 --workers 2
  until_true '[ "$(units a)" -gt 0 ]'
  kill -9 "$first"  # its workers end with it
  until_true '[ "$(pool_status | jq ".machines | length")" = 0 ]'
  run "$HEADRACE" service status "$DIR/pool"
  [[ "$output" == *"0 workers of 0 machines, 1 job"*"next: headrace service lend"* ]]
  start second service lend "$DIR/pool" --workers 1
  wait "$rank_a"
  [ "$(consumed "$DIR/rank_a.out")" = "$(cat want)" ]
  wait "$up_a"
}

@test "a pool over a network lends to jobs with its token" {
  start pool service pool "$DIR/pool" --workers 2 --listen tls:127.0.0.1:0 --address-file "$DIR/address"
  until_true '[ -s "$DIR/address" ]'
  start up service up t/pipeline.toml --job "$DIR/a" --pool "@$DIR/address" --no-fleet --listen tls:127.0.0.1:0 \
    --address-file "$DIR/job" --token-file "$DIR/address.token" --set pipeline.batch_rows=64
  until_true '[ -s "$DIR/job" ]'
  start rank consume "service:@$DIR/job" --token-file "$DIR/address.token" --checksum --json
  wait "$rank"
  [ "$(consumed "$DIR/rank.out")" = "$(cat want)" ]
  wait "$up"
  echo "another token of at least thirty-two characters" > "$DIR/wrong"
  chmod 600 "$DIR/wrong"
  run "$HEADRACE" service status "@$DIR/address" --token-file "$DIR/wrong"
  [ "$status" -eq 6 ]
  kill -INT "$pool"
  wait "$pool" || [ "$?" -eq 130 ]
}

@test "without a number a job wants what its ranks can use" {
  start pool service pool "$DIR/pool" --workers 2
  start up service up t/pipeline.toml --job "$DIR/a" --pool "$DIR/pool" --no-fleet --set source.epochs=0 --set pipeline.batch_rows=64
  start rank consume "service:$DIR/a" -q --step-time 50ms
  until_true '[ "$(running a)" = 1 ]'
  [ "$(pool_status | jq '.jobs[0].wanted_count')" = 1 ]
  [ "$("$HEADRACE" service status "$DIR/a" --json | jq '.autoscaler.wanted_count')" = 1 ]
  [ "$("$HEADRACE" service status "$DIR/a" --json | jq '.pool.granted_count')" = 1 ]
}

@test "what is no pool, or not there, is said" {
  begin job 0
  start up service up t/pipeline.toml --job "$DIR/plain" --workers 1 --no-fleet
  until_true '"$HEADRACE" service status "$DIR/plain" --json > /dev/null 2>&1'
  run "$HEADRACE" service lend "$DIR/plain" --workers 1
  [ "$status" -eq 2 ]
  [[ "$output" == *"is a job and no pool of workers"* ]]
  start wrong service up t/pipeline.toml --job "$DIR/b" --pool "$DIR/plain" --no-fleet --workers 2
  start rank consume "service:$DIR/b" -q
  code=0
  wait "$wrong" || code=$?
  [ "$code" -eq 2 ]
  grep -q "is a job and no pool of workers" "$DIR/wrong.err"
  until_true 'grep -q "waits for the pool" "$DIR/up_job.err"'  # of a job that was started before its pool
  start pool service pool "$DIR/pool" --workers 1
  until_true '[ "$(running job)" = 1 ]'
  run "$HEADRACE" service pool "$DIR/pool" --workers 1
  [ "$status" -eq 2 ]
  [[ "$output" == *"another process has this pool"* ]]
  run "$HEADRACE" service worker "$DIR/pool" --wait 5s
  [ "$status" -eq 2 ]
  [[ "$output" == *"is a pool of workers and no job"* ]]
  run "$HEADRACE" service drain "$DIR/pool" 1
  [ "$status" -eq 2 ]
  run "$HEADRACE" service submit t/pipeline.toml --job "$DIR/pool"
  [ "$status" -eq 2 ]
  run "$HEADRACE" service up t/pipeline.toml --job "$DIR/c" --weight 2
  [ "$status" -eq 2 ]
  [[ "$output" == *"add --pool"* ]]
  run "$HEADRACE" service lend "$DIR/none" --workers 1 --wait 0.2s
  [ "$status" -eq 1 ]
  [[ "$output" == *"waited 0 s for the pool"* ]]
}
