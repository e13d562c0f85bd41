#!/usr/bin/env bats
# Batches decoded straight into tensors, rows filtered before decoding, and bounded memory: the same rows as without.
load helpers

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 4096 --features 0.02 --stripe-rows 1024 --seed 3 2> /dev/null
}

checksum() {
  "$HEADRACE" run "${PIPELINE:-t/pipeline.toml}" --no-record --checksum --json --set consumer.step=0 "$@" | jq -c .checksum.multiset
}

# COLUMN of operator NAME in the latest run.
figure() {
  "$HEADRACE" query --db r.db --format csv "SELECT $2 FROM operator_summary WHERE operator = '$1' AND run_id = (SELECT max(run_id) FROM run_summary)" | tail -n 1
}

@test "both layouts deliver the same rows, whatever the batches" {
  make_table
  plain=$(checksum --set pipeline.layout=flatmap)
  for rows in 100 512 1024 5000; do
    [ "$(checksum --set pipeline.batch_rows=$rows)" = "$plain" ]
  done
  [ "$(checksum --set pipeline.order=file --set decode.parallelism=2 --set pipeline.batch_rows=64)" = "$plain" ]
  [ "$(checksum --set pipeline.huge_pages=true)" = "$plain" ]
  ordered=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set pipeline.order=file --set pipeline.layout=flatmap | jq .checksum.ordered)
  for p in 1 2; do
    [ "$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set pipeline.order=file --set decode.parallelism=$p | jq .checksum.ordered)" = "$ordered" ]
  done
}

@test "without transforms nothing is copied between decoding and the tensors" {
  make_table
  sed -e '/^\[\[transform\]\]/,/^$/d' t/pipeline.toml > t/plain.toml
  "$HEADRACE" run t/plain.toml --db r.db --level 1 -q --set consumer.step=0 --set pipeline.batch_rows=512
  [ "$(figure tensorize.copy bytes_out_bytes)" -eq 0 ]
  [ "$(figure tensorize completions_count)" -eq 8 ]
  "$HEADRACE" run t/plain.toml --db r.db --level 1 -q --set consumer.step=0 --set pipeline.layout=flatmap
  [ "$(figure tensorize.copy bytes_out_bytes)" -gt 0 ]
}

@test "deduplicated: the same rows, and without transforms nothing is copied" {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.02 --stripe-rows 1024 --seed 3 --clustered --optimize off 2> /dev/null
  plain=$(checksum --set pipeline.layout=flatmap)
  for scope in neighbours batch; do
    for rows in 100 512; do
      [ "$(checksum --set dedup.mode=on --set dedup.scope=$scope --set pipeline.batch_rows=$rows)" = "$plain" ]
    done
  done
  sed -e '/^\[\[transform\]\]/,/^$/d' t/pipeline.toml > t/plain.toml
  "$HEADRACE" run t/plain.toml --db r.db --level 1 -q --set consumer.step=0 --set dedup.mode=on
  [ "$(figure tensorize completions_count)" -eq 4 ]
  [ "$(figure tensorize.copy bytes_out_bytes)" -eq 0 ]
  "$HEADRACE" run t/plain.toml --db r.db --level 1 -q --set consumer.step=0 --set dedup.mode=on --set pipeline.layout=flatmap
  [ "$(figure tensorize.copy bytes_out_bytes)" -gt 0 ]
}

@test "filters choose the same rows in both layouts, and dropped ids are not decoded" {
  make_table
  cat t/pipeline.toml - > t/some.toml <<'TOML'

[[filter]]
column = "label"
in = [1]
TOML
  PIPELINE=t/some.toml
  rows=$("$HEADRACE" run t/some.toml --no-record --json | jq .rows_count)
  [ "$rows" -gt 0 ]
  [ "$rows" -lt 4096 ]
  plain=$(checksum --set pipeline.layout=flatmap)
  [ "$plain" != "$(PIPELINE=t/pipeline.toml checksum)" ]
  [ "$(checksum)" = "$plain" ]
  [ "$(checksum --set pipeline.order=file --set pipeline.batch_rows=100)" = "$plain" ]
  "$HEADRACE" run t/pipeline.toml --db r.db --level 1 -q --set consumer.step=0
  all=$(figure decode bytes_out_bytes)
  "$HEADRACE" run t/some.toml --db r.db --level 1 -q --set consumer.step=0
  [ "$(figure decode bytes_out_bytes)" -lt "$all" ]
  sed -i 's/^column = "label"/column = "lable"/' t/some.toml
  run "$HEADRACE" run t/some.toml --no-record -q
  one_line_error 2 "no column 'lable', did you mean 'label'"
}

@test "a memory budget changes no row; one that is too small is refused with one that works" {
  make_table
  plain=$(checksum)
  [ "$(checksum --set pipeline.memory=400MiB)" = "$plain" ]
  run "$HEADRACE" run t/pipeline.toml --no-record -q --set pipeline.memory=20MiB
  one_line_error 2 'set pipeline.memory to [0-9]+MiB or more'
  run "$HEADRACE" run t/pipeline.toml --no-record -q --set pipeline.memory=lots
  one_line_error 2 'memory'
}

@test "what layout direct cannot take goes the other way, and the run says so" {
  make_table
  run "$HEADRACE" run t/pipeline.toml --no-record --set consumer.step=0
  [ "$status" -eq 0 ]
  [[ "$output" != *"layout flatmap was taken"* ]]
  run "$HEADRACE" run t/pipeline.toml --no-record --set consumer.step=0 --set dedup.mode=on
  [ "$status" -eq 0 ]
  [[ "$output" != *"layout flatmap was taken"* ]]
  "$HEADRACE" rewrite t -o m --layout map > /dev/null
  sed "s|^table = .*|table = \"$PWD/m\"|" t/pipeline.toml > t/map.toml
  run "$HEADRACE" run t/map.toml --no-record --set consumer.step=0
  [ "$status" -eq 0 ]
  [[ "$output" == *"layout flatmap was taken for "*" stripes: their maps are not flattened"* ]]
}

@test "filters: exact ids, rows that a stripe has none of, and what was dropped is said" {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.02 --stripe-rows 128 --seed 3 2> /dev/null
  sed -i 's/^columns = .*/columns = ["session_id", "label"]/' t/pipeline.toml
  grep -q '^columns = \["session_id", "label"\]' t/pipeline.toml
  # One row's session beyond what a double tells apart from its neighbours.
  id=$("$HEADRACE" cat t/part-00000.dwrf --columns session_id --limit 1 | grep -o '[0-9]\{16,\}')
  [ -n "$id" ]
  for each in "$id" "$((id + 1))"; do
    printf '\n[[filter]]\ncolumn = "session_id"\nin = [%s]\n' "$each" | cat t/pipeline.toml - > t/one.toml
    for layout in direct flatmap; do
      "$HEADRACE" run t/one.toml --no-record --json --set consumer.step=0 --set pipeline.layout=$layout | jq .rows_count > $layout.$each
    done
    cmp direct.$each flatmap.$each
  done
  [ "$(cat direct.$id)" -gt 0 ]
  [ "$(cat direct.$((id + 1)))" -eq 0 ]
  # Slices without a row, with a checkpoint that counts every row once.
  printf '\n[[filter]]\ncolumn = "session_id"\nin = [1]\n' | cat t/pipeline.toml - > t/none.toml
  run "$HEADRACE" run t/none.toml --no-record --checkpoint ck --set pipeline.batch_rows=16 --set consumer.step=0
  [ "$status" -eq 0 ]
  [[ "$output" == *"[[filter]] dropped 2048 rows"* ]]
  for bad in 'min = nan' 'in = []' 'in = ["x"]' 'min = "x"'; do
    printf '\n[[filter]]\ncolumn = "label"\n%s\n' "$bad" | cat t/pipeline.toml - > t/bad.toml
    run "$HEADRACE" run t/bad.toml --no-record
    [ "$status" -eq 2 ]
  done
}

@test "a cache after transform gives the same rows in file order, a second time and resumed" {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.02 --stripe-rows 128 --seed 3 2> /dev/null
  plain=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file --set pipeline.batch_rows=48 | jq -c .checksum)
  printf '\n[[cache]]\nafter = "transform"\ntier = "disk"\nfolder = "kept"\nbudget = "400KiB"\n' | cat t/pipeline.toml - > t/kept.toml
  for again in 1 2 3; do
    run "$HEADRACE" run t/kept.toml --no-record --checksum --json -q --set consumer.step=0 --set pipeline.order=file --set pipeline.batch_rows=48 \
      --set decode.queue=64 --set fetch.queue=64
    [ "$status" -eq 0 ]
    [ "$(jq -c .checksum <<< "$output")" = "$plain" ]
  done
  printf '\n[[cache]]\nafter = "transform"\ntier = "memory"\nbudget = "1MiB"\n' | cat t/pipeline.toml - > t/memory.toml
  [ "$("$HEADRACE" run t/memory.toml --no-record --json -q --epochs 2 --set consumer.step=0 --set pipeline.order=file --set pipeline.batch_rows=16 | jq .rows_count)" = 4096 ]
}
