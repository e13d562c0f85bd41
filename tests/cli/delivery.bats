#!/usr/bin/env bats
# Pipelines whose consumer is another process: run with delivery.to, and consume.
load helpers

# A test that fails leaves nothing running.
teardown() {
  for pid in $RUN $FIRST $CONSUMER; do kill -9 $pid 2> /dev/null || true; done
  if mountpoint -q "$DIR/small"; then umount -l "$DIR/small"; fi
  rm -rf "$DIR"
}

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 4096 --features 0.01 --seed 3 2> /dev/null
}
# consume ADDRESS ARGUMENTS...: in the background, output in out and err; waits until it listens.
consume() {
  rm -f s  # of one that was killed: its file would pass for the next one's
  "$HEADRACE" consume "$@" > out 2> err < /dev/null 3>&- &
  CONSUMER=$!
  until_true 20 test -S s
  ALONE=$(threads $CONSUMER)
}
threads() { ls "/proc/$1/task" | wc -l; }
# A producer has greeted the consumer: it has a thread for it, beside those it has alone (a sanitizer's may be one).
connected() { [ "$(threads $1)" -gt "$ALONE" ]; }
send() { "$HEADRACE" run t/pipeline.toml --no-record -q --set consumer.step=0 --set delivery.to="$@"; }

@test "what a consumer in another process gets is what a run consumes" {
  make_table
  inline=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file | jq -cS .checksum)
  for kind in unix shm; do
    consume "$kind:s" --checksum --json
    send "$kind:$DIR/s" --set pipeline.order=file --set delivery.window=2
    wait $CONSUMER
    [ "$(jq -cS .checksum out)" = "$inline" ]
    [ "$(jq .received_bytes out)" -gt 100000 ]
    [ ! -e s ]
  done
}

@test "a consumer's rate does not begin before its first batch" {
  make_table
  consume unix:s --json
  sleep 1
  send "unix:$DIR/s" --set pipeline.batch_rows=64
  wait $CONSUMER
  jq -e '.batches_count > 1 and .first_batch_s >= 1 and .first_batch_s < .duration_s
    and .steady_rows_per_second > .rows_count / .duration_s' out
  "$HEADRACE" run t/pipeline.toml --no-record --json --set consumer.step=0 --set pipeline.batch_rows=64 |
    jq -e '.first_batch_s > 0 and .first_batch_s < .duration_s and .steady_rows_per_second > 0'
}

@test "two producers feed one consumer" {
  make_table
  consume unix:s --producers 2 --checksum --json
  send "unix:$DIR/s" &
  FIRST=$!
  send "unix:$DIR/s"
  wait $FIRST
  wait $CONSUMER
  [ "$(jq .rows_count out)" -eq $((2 * $("$HEADRACE" run t/pipeline.toml --no-record --json --set consumer.step=0 | jq .rows_count))) ]
}

@test "a consumer that is killed ends the run with one line and exit 1" {
  make_table
  for kind in unix shm; do
    rm -f rows
    consume "$kind:s" --step-time 1ms --row-log rows
    "$HEADRACE" run t/pipeline.toml --no-record -q --epochs 1000 --set consumer.step=0 --set delivery.to="$kind:$DIR/s" 2> run_err 3>&- &
    RUN=$!
    until_true 20 test -s rows  # a connection alone may not have said yet who is there
    kill -9 $CONSUMER
    code=0; wait $RUN || code=$?
    [ $code -eq 1 ]
    [ "$(wc -l < run_err)" -eq 1 ]
    grep -q "the consumer (process $CONSUMER) at $kind:.* is gone; [0-9]* of [0-9]* batches sent were acknowledged; start 'headrace consume'" run_err
  done
}

@test "a producer that is killed ends the consumer with one line and exit 1" {
  make_table
  for kind in unix shm; do
    rm -f rows
    consume "$kind:s" --step-time 1ms --row-log rows -q
    : > run_err
    "$HEADRACE" run t/pipeline.toml --no-record -q --epochs 1000 --set consumer.step=0 --set delivery.to="$kind:$DIR/s" 2> run_err 3>&- &
    RUN=$!
    until_true 20 test -s rows
    kill -9 $RUN
    code=0; wait $CONSUMER || code=$?
    [ $code -eq 1 ]
    [ "$(wc -l < err)" -eq 1 ]
    grep -q "the producer (process $RUN) is gone after [0-9]* batches, before its end" err
  done
}

@test "Ctrl-C on a consumer that is behind is nobody's fault" {
  make_table
  for kind in unix shm; do
    consume "$kind:s" --step-time 20ms -q
    "$HEADRACE" run t/pipeline.toml --no-record -q --epochs 1000 --set consumer.step=0 --set delivery.to="$kind:$DIR/s" 2> run_err 3>&- &
    RUN=$!
    until_true 20 connected $CONSUMER
    sleep 0.3  # most likely the queue is full by then
    kill -INT $CONSUMER
    code=0; wait $CONSUMER || code=$?
    [ $code -eq 130 ]
    [ ! -s err ]
    wait $RUN || true
  done
}

@test "a producer whose time is up has not sent everything" {
  make_table
  consume unix:s
  run send "unix:$DIR/s" --duration 500ms
  [ "$status" -eq 0 ]
  code=0; wait $CONSUMER || code=$?
  [ $code -eq 1 ]
  grep -q "was stopped after [0-9]* batches" err
}

@test "what the pipeline says of its own consumer is not used, and that is said" {
  make_table
  consume unix:s
  "$HEADRACE" run t/pipeline.toml --no-record --set consumer.step=1ms --set delivery.to="unix:$DIR/s" 2> run_err
  wait $CONSUMER
  grep -q "\[consumer\] was not used: delivery.to names another process" run_err
}

@test "nobody listens, a consumer that is there already, an address that is none" {
  make_table
  run send "unix:$DIR/s"
  one_line_error 1 "nobody listens there; start 'headrace consume unix:$DIR/s' first"
  consume unix:s
  run "$HEADRACE" consume unix:s
  one_line_error 2 "another consumer listens there"
  run send "shm:$DIR/s"
  one_line_error 1 "the consumer listens for unix, not shm"
  kill -INT $CONSUMER
  code=0; wait $CONSUMER || code=$?
  [ $code -eq 130 ]
  [ ! -e s ]
  run "$HEADRACE" consume inline
  one_line_error 2 "names no other process"
  run "$HEADRACE" consume "unix:$DIR/$(printf 'x%.0s' {1..120})"
  one_line_error 2 "at most 107 bytes"
  run send unxi:a
  one_line_error 2 "did you mean 'unix:PATH'"
  run "$HEADRACE" run t/pipeline.toml --no-record --set delivery.windw=2
  one_line_error 2 "did you mean 'window'"
  run "$HEADRACE" run t/pipeline.toml --no-record --set delivery.ring=1KiB
  one_line_error 2 "ring must be from 64KiB to 4GiB"
  run "$HEADRACE" run t/pipeline.toml --no-record --set delivery.wire=snappy
  one_line_error 2 'use "auto", "raw", "narrow", "lz4" or "zstd"'
  run "$HEADRACE" run t/pipeline.toml --no-record --checksum --set delivery.to=unix:a
  one_line_error 2 "give --checksum to 'headrace consume'"
}

@test "deduplicated batches go as they are: the same rows in fewer bytes" {
  "$HEADRACE" generate rm1 -o t --features 0.02 --rows 2000 --seed 4 --clustered > /dev/null 2>&1
  plain=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file | jq -cS .checksum)
  for kind in unix shm; do
    for mode in off on; do
      consume "$kind:s" --checksum --json
      send "$kind:$DIR/s" --set pipeline.order=file --set dedup.mode=$mode
      wait $CONSUMER
      [ "$(jq -cS .checksum out)" = "$plain" ]
      jq .received_bytes out > bytes.$mode
    done
    [ "$(cat bytes.off)" -gt $((3 * $(cat bytes.on) / 2)) ]
  done
}

@test "a checkpoint on a full disk: one line, and the run goes on later from the one before" {
  make_table
  mkdir small
  mount -t tmpfs -o size=64k none small 2> err || skip "may not mount a tmpfs here: $(cat err)"
  keep="--no-record --set consumer.step=0 --checkpoint small/at.ckpt"
  "$HEADRACE" run t/pipeline.toml --level 1 -q $keep --duration 500ms --checkpoint-every 1 || [ $? -eq 130 ]
  cp small/at.ckpt before
  dd if=/dev/zero of=small/filler bs=1k 2> /dev/null || true
  run "$HEADRACE" run t/pipeline.toml --level 1 -q $keep --resume --duration 100ms
  one_line_error 7 "small/at.ckpt.*No space left"
  cmp small/at.ckpt before
  [ "$(ls small | wc -l)" -eq 2 ]
  rm small/filler
  "$HEADRACE" run t/pipeline.toml --level 1 $keep --resume --duration 100ms --json > out.json
  [ "$(jq .resumed_rows_count out.json)" -gt 0 ]
}
