#!/usr/bin/env bats
# From storage to stripes: every way of reading gives the same rows, and its account every byte.
load helpers

generate_table() { "$HEADRACE" generate rm1 -o t --rows 4096 --features 0.02 --seed 3 2> /dev/null; }
setup_file() { prepare generate_table; }
make_table() { cp -r "$BATS_FILE_TMPDIR/t" .; }

checksum() {
  "$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 "$@" | jq -c .checksum.multiset
}

# COLUMN of operator NAME in the latest run.
figure() {
  "$HEADRACE" query --db r.db --format csv "SELECT $2 FROM operator_summary WHERE operator = '$1' AND run_id = (SELECT max(run_id) FROM run_summary)" | tail -n 1
}

record() {
  "$HEADRACE" run t/pipeline.toml --db r.db --level 1 -q --set consumer.step=0 "$@"
}

@test "every way of reading delivers the same rows" {
  make_table
  plain=$(checksum)
  [ "$(checksum --set source.io=uring)" = "$plain" ]
  [ "$(checksum --set source.io=uring --set source.registered=false --set source.depth=2)" = "$plain" ]
  [ "$(checksum --set source.coalesce_gap=0 --set source.io=uring --set fetch.parallelism=3)" = "$plain" ]
  [ "$(checksum --set source.coalesce_max=4KiB)" = "$plain" ]
  [ "$(checksum --set source.throttle.preset=ssd)" = "$plain" ]
  [ "$(checksum --set source.throttle.preset=disk --set source.coalesce_gap=auto)" = "$plain" ]
  if "$HEADRACE" run t/pipeline.toml --no-record -q --set source.direct=true 2> err; then
    [ "$(checksum --set source.direct=true)" = "$plain" ]
    [ "$(checksum --set source.direct=true --set source.io=uring)" = "$plain" ]
  else
    grep -q O_DIRECT err || { cat err; false; }
    skip "no O_DIRECT here: $(cat err)"
  fi
}

@test "over-read is accounted to the byte" {
  make_table
  record --set source.coalesce_gap=0
  wanted=$(figure fetch bytes_out_bytes)
  [ "$(figure fetch bytes_in_bytes)" -eq "$wanted" ]
  [ "$(figure fetch.io bytes_out_bytes)" -eq "$wanted" ]
  many=$(figure fetch.io completions_count)
  record --set source.coalesce_gap=8MiB
  [ "$(figure fetch bytes_out_bytes)" -eq "$wanted" ]
  read=$(figure fetch bytes_in_bytes)
  [ "$read" -gt "$wanted" ]
  [ "$(figure fetch.io bytes_out_bytes)" -eq "$read" ]
  [ "$(figure fetch.io completions_count)" -lt "$many" ]
}

@test "a modelled device takes its time and is a device of the run" {
  make_table
  record --set source.throttle.iops=200 --set source.coalesce_gap=8MiB
  reads=$("$HEADRACE" query --db r.db --format csv "SELECT acquisitions_count FROM resource_summary WHERE resource = 'throttle'" | tail -n 1)
  [ "$reads" -ge "$(figure fetch.io completions_count)" ]
  seconds=$("$HEADRACE" query --db r.db --format csv "SELECT duration_ns / 1e9 FROM run_summary" | tail -n 1)
  awk "BEGIN { exit !($seconds >= $reads / 200 * 0.9) }"
}

@test "an automatic gap wants a measured device" {
  make_table
  run "$HEADRACE" run t/pipeline.toml --no-record --db none.db --set source.coalesce_gap=auto
  one_line_error 2 "headrace doctor --calibrate"
  run "$HEADRACE" run t/pipeline.toml --no-record -q --set source.coalesce_gap=auto --set source.device.ns_per_request=80000 --set source.device.ns_per_byte=0.5
  [ "$status" -eq 0 ]
}

@test "an automatic gap is found in the calibration of the table's file system" {
  make_table
  record
  sqlite() { python3 -c 'import sqlite3, sys; c = sqlite3.connect("r.db"); c.executescript(sys.argv[1]); c.commit()' "$1"; }
  sqlite "INSERT INTO calibrations (measured_realtime_ns, hostname, kernel, cpu_model, folder) VALUES (1, 'h', 'k', 'c', '$PWD')"
  for size in 4096 65536 1048576; do
    sqlite "INSERT INTO ceilings (calibration_id, ceiling_id, metric, unit, subject, size_bytes, depth_count, value, minimum_value, maximum_value, repetitions_count, note)
      VALUES (1, $size, 'storage_read_bytes_per_s', 'B/s', '', $size, 1, $size / (8e-3 + $size * 1e-8), 1, 1, 1, '')"
  done
  record --set source.coalesce_gap=auto
  automatic=$(figure fetch.io completions_count)
  record --set source.coalesce_gap=800000
  [ "$(figure fetch.io completions_count)" -eq "$automatic" ]
  record --set source.coalesce_gap=0
  [ "$(figure fetch.io completions_count)" -gt "$automatic" ]
}

@test "a tier gives the same rows and accounts its hits" {
  make_table
  plain=$(checksum --set source.epochs=3)
  for policy in lru pinned; do
    [ "$(checksum --set source.epochs=3 --set source.tier.budget=1GiB --set source.tier.policy=$policy)" = "$plain" ]
    [ "$(checksum --set source.epochs=3 --set source.tier.budget=100KiB --set source.tier.policy=$policy)" = "$plain" ]
  done
  record --set source.epochs=3 --set source.tier.budget=1GiB
  [ "$(figure tier.hit completions_count)" -eq $((2 * $(figure tier.miss completions_count))) ]
  [ "$(figure tier.hit bytes_out_bytes)" -eq $((2 * $(figure tier.miss bytes_out_bytes))) ]
  [ "$(figure fetch bytes_out_bytes)" -eq $((3 * $(figure tier.miss bytes_out_bytes))) ]
  once=$(figure fetch.io bytes_out_bytes)
  record --set source.epochs=3
  [ "$(figure fetch.io bytes_out_bytes)" -eq $((3 * once)) ]
  # A table larger than the budget, read from end to end: lru keeps what comes last and is never asked for.
  record --set source.epochs=3 --set source.tier.budget=100KiB --set source.tier.policy=pinned
  [ "$(figure tier.hit bytes_out_bytes)" -gt 150000 ]
  [ "$(figure tier.hit bytes_out_bytes)" -le 204800 ]
  # Only what the log names comes in.
  popular=$(grep -m 1 '^sparse = ' t/pipeline.toml | tr -dc '0-9,' | cut -d, -f1)
  echo "{\"features\": [\"sparse:$popular\"]}" > t/log
  record --set source.epochs=3 --set source.tier.budget=1GiB --set source.tier.popularity=log
  [ "$(figure tier.hit completions_count)" -gt 0 ]
  [ "$(figure tier.hit completions_count)" -lt "$(figure tier.miss completions_count)" ]
}

@test "a checksum is of the same read as the streams" {
  make_table
  plain=$(checksum)
  [ "$(checksum --set source.checksum=true)" = "$plain" ]
  [ "$(checksum --set source.checksum=true --set source.io=uring --set source.tier.budget=1MiB --epochs 2)" = "$(checksum --epochs 2)" ]
  record --set source.coalesce_gap=0
  wanted=$(figure fetch.io bytes_out_bytes)
  record --set source.checksum=true
  # Of every stripe each byte came once: the streams to the one account, the others to the other.
  [ "$(figure fetch.io bytes_out_bytes)" -eq "$wanted" ]
  [ "$(figure fetch bytes_in_bytes)" -eq "$wanted" ]
  all=$("$HEADRACE" inspect t/part-00000.dwrf --json | jq '[.stripes[] | .index_length_bytes + .data_length_bytes + .footer_length_bytes] | add')
  [ $((wanted + $(figure fetch.checksum bytes_out_bytes))) -eq "$all" ]
  [ "$(figure fetch.io completions_count)" -eq "$("$HEADRACE" inspect t/part-00000.dwrf --json | jq '.stripes | length')" ]
  # A changed byte that no stream of the job holds.
  printf '\xa5' | dd of=t/part-00000.dwrf bs=1 seek=100 conv=notrunc 2> /dev/null
  run "$HEADRACE" run t/pipeline.toml --no-record -q --set source.checksum=true
  one_line_error 5 "stripe 0 does not match its checksum.*on_corrupt"
}
