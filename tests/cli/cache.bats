#!/usr/bin/env bats
# [[cache]]: what splits became, kept in memory or on disk.
load helpers

# A test that fails leaves nothing running.
teardown() {
  for pid in $RUN $FIRST $CONSUMER; do kill -9 $pid 2> /dev/null || true; done
  rm -rf "$DIR"
}

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 4096 --features 0.01 --seed 3 --stripe-rows 512 2> /dev/null
  # Nothing random before the cache.
  sed -i '/^op = "sampling"/d' t/pipeline.toml
}
checksum() { "$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 "$@" | jq -cS '.checksum | [.rows_count, .multiset]'; }
has_entries() { ls t/kept/*.batches; }
# Figures of an operator of the newest run.
figure() { "$HEADRACE" query "SELECT sum($2) AS n FROM operator_summary WHERE operator = '$1' AND run_id = (SELECT max(run_id) FROM operator_summary)" --json | jq '.rows[0].n'; }

@test "the second epoch comes from the cache, with the same rows" {
  make_table
  once=$(checksum)
  [ "$once" != null ]
  for tier in '--set cache.tier=memory' '--set cache.tier=disk --set cache.folder=kept'; do
    two=$(checksum --epochs 2)
    [ "$(checksum --epochs 2 --set cache.after=transform $tier)" = "$two" ]
  done
  # What is on disk serves the next run, at any parallelism and in order.
  ls t/kept/*.batches
  [ "$(checksum --set cache.after=transform --set cache.tier=disk --set cache.folder=kept --set pipeline.order=file --set fetch.parallelism=2)" = "$once" ]
}

@test "accounts: a run on a filled cache fetches nothing" {
  make_table
  cached="--set cache.after=transform --set cache.tier=disk --set cache.folder=kept --set consumer.step=0"
  "$HEADRACE" run t/pipeline.toml --level 1 -q $cached
  [ "$(figure cache.hit completions_count)" -eq 0 ]
  misses=$(figure cache.miss completions_count)
  [ "$misses" -gt 1 ]
  [ "$(figure fetch bytes_in_bytes)" -gt 0 ]
  "$HEADRACE" run t/pipeline.toml --level 1 -q $cached
  [ "$(figure cache.hit completions_count)" -eq "$misses" ]
  [ "$(figure cache.hit bytes_out_bytes)" -gt 0 ]
  [ "$(figure fetch bytes_in_bytes)" -eq 0 ]
}

@test "a flipped byte is computed again; another table is another cache" {
  make_table
  once=$(checksum)
  cached="--set cache.after=transform --set cache.tier=disk --set cache.folder=kept"
  checksum $cached
  file=$(ls t/kept/*.batches | head -n 1)
  printf '\xa5' | dd of="$file" bs=1 seek=300 conv=notrunc 2> /dev/null
  [ "$(checksum $cached)" = "$once" ]
  rm t/part-*.dwrf
  "$HEADRACE" generate rm1 -o u --rows 4096 --features 0.01 --seed 4 --stripe-rows 512 2> /dev/null
  cp u/part-* t/
  [ "$(checksum $cached)" = "$(checksum)" ]
}

@test "killed while it fills, a cache is whole or empty" {
  make_table
  once=$(checksum)
  cached="--set cache.after=transform --set cache.tier=disk --set cache.folder=kept"
  for round in 1 2 3; do
    "$HEADRACE" run t/pipeline.toml --no-record -q $cached --duration 60s 2> /dev/null < /dev/null 3>&- &
    RUN=$!
    until_true 20 has_entries
    kill -9 $RUN
    wait $RUN || true
    [ "$(checksum $cached)" = "$once" ]
    rm -r t/kept
  done
}

@test "a cache behind a random transform, and wrong sections" {
  make_table
  printf '\n[[transform]]\nop = "sampling"\nrate = 0.5\n' >> t/pipeline.toml
  run "$HEADRACE" run t/pipeline.toml --no-record --set cache.after=transform
  one_line_error 2 "the transform 'sampling' before the cache is random.*allow_random"
  [ "$(checksum --epochs 2 --set cache.after=transform --set cache.allow_random=true)" = "$(checksum --epochs 2)" ]
  [ "$(checksum --epochs 2 --set cache.after=extract)" = "$(checksum --epochs 2)" ]
  run "$HEADRACE" run t/pipeline.toml --no-record --set cache.after=transfrm
  one_line_error 2 "did you mean 'transform'"
  run "$HEADRACE" run t/pipeline.toml --no-record --set cache.after=batch
  one_line_error 2 "a cache comes after extract, rowmap or transform"
  run "$HEADRACE" run t/pipeline.toml --no-record --set cache.after=extract --set cache.teir=disk
  one_line_error 2 "did you mean 'tier'"
  run "$HEADRACE" run t/pipeline.toml --no-record --set cache.after=extract --set cache.tier=disk
  one_line_error 2 "go together"
  run "$HEADRACE" run t/pipeline.toml --no-record --set cache.after=extract --set cache.budget=lots
  one_line_error 2 "budget"
}

@test "deduplicated batches are kept as they are, and only one cache" {
  make_table
  "$HEADRACE" rewrite t -o c --cluster session_id 2> /dev/null
  rm -r t && mv c t
  sed -i '/^op = "sampling"/d' t/pipeline.toml
  cached="--set cache.after=transform --set cache.tier=disk --set cache.folder=kept"
  once=$(checksum)
  checksum $cached > /dev/null
  expanded=$(du -b t/kept | cut -f1)
  rm -r t/kept
  for round in 1 2; do [ "$(checksum $cached --set dedup.mode=on)" = "$once" ]; done
  [ "$(du -b t/kept | cut -f1)" -lt "$expanded" ]
  "$HEADRACE" run t/pipeline.toml --level 1 -q $cached --set dedup.mode=on --set consumer.step=0
  [ "$(figure fetch bytes_in_bytes)" -eq 0 ]
  printf '\n[[cache]]\nafter = "extract"\n\n[[cache]]\nafter = "transform"\n' >> t/pipeline.toml
  run "$HEADRACE" run t/pipeline.toml --no-record
  one_line_error 2 "a pipeline has one \[\[cache\]\]: splits that the later one holds"
}
