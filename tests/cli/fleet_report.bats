#!/usr/bin/env bats
# What the processes of a job measure, kept by its dispatcher: headrace report --fleet, and the fleet file.

load service_helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$HEADRACE" generate rm3 -o t --rows 2000 --features 0.02 --stripe-rows 256 > /dev/null 2>&1
}

of_fleet() { "$HEADRACE" query --db "$DIR/f.db" --format csv "$1" | tail -n +2; }

@test "a job is reported in every format, and its members are runs" {
  start up service up t/pipeline.toml --job "$JOB" --ranks 2 --workers 2 --set pipeline.batch_rows=50 --fleet "$DIR/f.db"
  # 20 steps each: long enough to be judged.
  start zero consume "service:$JOB" --rank 0/2 --step-time 320ms
  start one consume "service:$JOB" --rank 1/2 --step-time 320ms
  wait "$zero"
  wait "$one"
  wait "$up"
  [ "$(of_fleet "SELECT state, left_rows_count FROM job_summary")" = "complete,0" ]
  [ "$(of_fleet "SELECT COUNT(*) FROM member_summary WHERE role = 'rank' AND has_ended = 1")" = 2 ]
  # What the ranks took is all rows, once.
  [ "$(of_fleet "SELECT SUM(rows_count) FROM step_summary JOIN member_summary USING (run_id) WHERE role = 'rank'")" = 2000 ]
  run "$HEADRACE" report --fleet "$DIR/f.db"
  [ "$status" -eq 0 ]
  [[ "$output" == *" limit "* ]]
  [[ "$output" == *"report --fleet $JOB --db $DIR/f.db --full"* ]]
  "$HEADRACE" report --fleet "$JOB" --db "$DIR/f.db" --json | jq -e '.schema == "headrace.job/1" and (.ranks | length) == 2 and .verdict.decided'
  "$HEADRACE" report --fleet "$DIR/f.db" --full | grep -q "What happened"
  "$HEADRACE" report --fleet "$DIR/f.db" --format md | grep -q "Where the workers' time goes"
  "$HEADRACE" report --fleet "$DIR/f.db" --format html | grep -q "<html"
  "$HEADRACE" runs --db "$DIR/f.db" | grep -q "rank-1"
  # A plan from a worker is checked against the job, which its trainers limited here.
  printf '[[node]]\nname = "here"\nprice_per_hour = 1\ncores = 2\nspeed = 1\nhave = 1\n' > "$DIR/nodes.toml"
  "$HEADRACE" plan worker-1 --db "$DIR/f.db" --nodes "$DIR/nodes.toml" --target 100rows/s --json | jq -e '.check.job == "'"$JOB"'" and (.check.unavailable | contains("limited the job"))'
  # Without the job's own row there is a plan nevertheless.
  sqlite3 "$DIR/f.db" "DELETE FROM jobs"
  "$HEADRACE" plan worker-1 --db "$DIR/f.db" --nodes "$DIR/nodes.toml" --target 100rows/s --json | jq -e '.check.unavailable | contains("holds no job")'
}

@test "a dispatcher that is killed and started again counts nothing twice" {
  start first service dispatcher t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20 --fleet "$DIR/f.db"
  start worker service worker "$JOB"
  start rank consume "service:$JOB" --step-time 40ms
  for _ in $(seq 600); do
    [ "$(of_fleet "SELECT COUNT(*) FROM member_summary WHERE role = 'rank'" 2> /dev/null)" = 1 ] && break
    sleep 0.05
  done
  kill -9 "$first"
  start second service dispatcher t/pipeline.toml --job "$JOB" --set pipeline.batch_rows=20 --fleet "$DIR/f.db"
  wait "$rank"
  wait "$second"
  [ "$(of_fleet "SELECT COUNT(*), state FROM job_summary")" = "1,complete" ]
  [ "$(of_fleet "SELECT COUNT(*) FROM member_summary WHERE role = 'dispatcher'")" = 2 ]
  [ "$(of_fleet "SELECT SUM(rows_count) FROM step_summary JOIN member_summary USING (run_id) WHERE role = 'rank'")" = 2000 ]
}

@test "what is no job is refused in one line; --no-fleet keeps nothing" {
  "$HEADRACE" run t/pipeline.toml --db "$DIR/r.db" --quiet --set consumer.step=0 > /dev/null
  run "$HEADRACE" report --fleet "$DIR/r.db"
  [ "$status" -eq 5 ]
  [[ "$output" == *"holds no job of the preprocessing service"* ]]
  run "$HEADRACE" report --fleet nobody --db "$DIR/none.db"
  [ "$status" -eq 5 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" == *"none.db: no such fleet file"*"report --fleet FILE"* ]]
  run "$HEADRACE" report --fleet
  [ "$status" -eq 2 ]
  [[ "$output" == *"--fleet needs a value: --fleet JOB"* ]]
  run "$HEADRACE" report latest --fleet "$DIR/r.db"
  [ "$status" -eq 2 ]
  cd "$DIR"
  start up service up "$BATS_FILE_TMPDIR/t/pipeline.toml" --job "$JOB" --no-fleet
  start rank consume "service:$JOB"
  wait "$rank"
  wait "$up"
  [ ! -e headrace-fleet.db ]
}
