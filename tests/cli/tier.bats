#!/usr/bin/env bats
# [source.tier] folder: streams kept in a folder of a fast disk, from run to run.
load helpers

# A test that fails leaves nothing running and nothing mounted.
teardown() {
  for pid in $RUN; do kill -9 $pid 2> /dev/null || true; done
  if mountpoint -q "$DIR/t/fast"; then umount -l "$DIR/t/fast"; fi
  rm -rf "$DIR"
}

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 4096 --features 0.02 --seed 3 --stripe-rows 512 2> /dev/null
}
checksum() {
  "$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 "$@" | jq -c .checksum.multiset
}
record() {
  "$HEADRACE" run t/pipeline.toml --db r.db --level 1 -q --set consumer.step=0 "$@"
}
# COLUMN of operator NAME in the latest run.
figure() {
  "$HEADRACE" query --db r.db --format csv "SELECT $2 FROM operator_summary WHERE operator = '$1' AND run_id = (SELECT max(run_id) FROM run_summary)" | tail -n 1
}
bytes_of_entries() { cat t/fast/*.streams | wc -c; }
has_entries() { ls t/fast/*.streams; }

@test "a folder serves the next run, under both policies and any budget" {
  make_table
  plain=$(checksum)
  for policy in lru pinned; do
    for budget in 1GiB 100KiB 3000 1; do
      for run in 1 2; do
        [ "$(checksum --set source.tier.folder=fast --set source.tier.budget=$budget --set source.tier.policy=$policy)" = "$plain" ]
      done
    done
    rm -r t/fast
  done
}

@test "accounts: hits are reads of the tier's device, none of the storage's" {
  make_table
  tier="--set source.tier.folder=fast --set source.tier.budget=1GiB"
  record $tier
  [ "$(figure tier.hit completions_count)" -eq 0 ]
  misses=$(figure tier.miss completions_count)
  bytes=$(figure tier.miss bytes_out_bytes)
  [ "$misses" -gt 0 ]
  [ "$(figure tier.fill completions_count)" -eq 8 ]
  [ "$(figure tier.fill bytes_out_bytes)" -eq "$(bytes_of_entries)" ]
  [ "$(figure tier.io bytes_out_bytes)" -eq 0 ]
  record $tier
  [ "$(figure tier.miss completions_count)" -eq 0 ]
  [ "$(figure tier.hit completions_count)" -eq "$misses" ]
  [ "$(figure tier.hit bytes_out_bytes)" -eq "$bytes" ]
  [ "$(figure tier.io bytes_out_bytes)" -eq "$(bytes_of_entries)" ]
  [ "$(figure tier.fill completions_count)" -eq 0 ]
  [ "$(figure fetch.io completions_count)" -eq 0 ]
  [ "$(figure fetch.io bytes_out_bytes)" -eq 0 ]
  # The budget holds to the byte.
  record $tier --set source.tier.budget=100000
  [ "$(bytes_of_entries)" -le 100000 ]
}

@test "a flipped byte is counted and read again from the table; another table is not taken for this" {
  make_table
  plain=$(checksum)
  tier="--set source.tier.folder=fast --set source.tier.budget=1GiB"
  checksum $tier
  file=$(ls t/fast/*.streams | head -n 1)
  byte=$(od -An -tu1 -j 5000 -N 1 "$file" | tr -d ' ')
  printf "\\x$(printf %02x $((byte ^ 16)))" | dd of="$file" bs=1 seek=5000 conv=notrunc 2> /dev/null
  "$HEADRACE" run t/pipeline.toml --no-record --set consumer.step=0 $tier > out 2>&1
  grep -q 'dropped 1 damaged entries of the tier' out
  [ "$(checksum $tier)" = "$plain" ]
  rm t/part-*.dwrf
  "$HEADRACE" generate rm1 -o u --rows 4096 --features 0.02 --seed 4 --stripe-rows 512 2> /dev/null
  cp u/part-* t/
  [ "$(checksum $tier)" = "$(checksum)" ]
}

@test "killed while it fills, a tier is whole" {
  make_table
  plain=$(checksum)
  tier="--set source.tier.folder=fast --set source.tier.budget=100KiB"
  for round in 1 2 3 4; do
    rm -rf t/fast  # a tier that is full from the round before would not be filling
    "$HEADRACE" run t/pipeline.toml --no-record -q $tier --set source.epochs=0 --set consumer.step=0 2> /dev/null < /dev/null 3>&- &
    RUN=$!
    until_true 20 has_entries
    sleep "0.0$((RANDOM % 10))"
    kill -9 $RUN
    wait $RUN || true
    "$HEADRACE" run t/pipeline.toml --no-record --set consumer.step=0 $tier > out 2>&1
    if grep damaged out; then false; fi
    [ "$(checksum $tier)" = "$plain" ]
    [ "$(bytes_of_entries)" -le 102400 ]
    if ls t/fast/*.tmp*; then false; fi
  done
}

@test "one process at a time has a folder; the other is told so" {
  make_table
  tier="--set source.tier.folder=fast --set source.tier.budget=1MiB"
  "$HEADRACE" run t/pipeline.toml --no-record -q $tier --set source.epochs=0 --set consumer.step=0 2> /dev/null < /dev/null 3>&- &
  RUN=$!
  until_true 20 has_entries
  run "$HEADRACE" run t/pipeline.toml --no-record $tier
  one_line_error 2 "another process has this folder as its tier.*source.tier.folder"
  kill -9 $RUN
  wait $RUN || true
  "$HEADRACE" run t/pipeline.toml --no-record -q $tier --set consumer.step=0
}

@test "a full disk under it ends the filling, is said once, and the run goes on" {
  make_table
  plain=$(checksum)
  mkdir t/fast
  mount -t tmpfs -o size=64k none t/fast 2> err || skip "may not mount a tmpfs here: $(cat err)"
  tier="--set source.tier.folder=fast --set source.tier.budget=1GiB"
  [ "$(checksum $tier --set source.epochs=1)" = "$plain" ]
  "$HEADRACE" run t/pipeline.toml --no-record --set consumer.step=0 $tier > out 2>&1
  [ "$(grep -c 'nothing more came into the tier.*No space left' out)" -eq 1 ]
  if ls t/fast/*.tmp*; then false; fi
}

@test "wrong sections and folders" {
  make_table
  run "$HEADRACE" run t/pipeline.toml --no-record --set source.tier.folder=fast
  one_line_error 2 "a tier in a folder needs budget"
  run "$HEADRACE" run t/pipeline.toml --no-record --set source.tier.budget=1MiB --set source.tier.foldr=fast
  one_line_error 2 "did you mean 'folder'"
  run "$HEADRACE" run t/pipeline.toml --no-record --set source.tier.budget=lots --set source.tier.folder=fast
  one_line_error 2 "budget"
  touch t/taken
  run "$HEADRACE" run t/pipeline.toml --no-record --set source.tier.budget=1MiB --set source.tier.folder=taken
  [ "$status" -ne 0 ]
  [ "$(printf '%s\n' "$output" | wc -l)" -eq 1 ]
  [[ "$output" =~ taken ]]
  # Without a budget in force there is no tier.
  "$HEADRACE" run t/pipeline.toml --no-record -q --set source.tier.budget=0 --set source.tier.folder=fast
  [ ! -e t/fast ]
}
