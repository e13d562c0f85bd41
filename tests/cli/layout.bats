#!/usr/bin/env bats
# headrace layout: the command around LayoutMap.
load helpers

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.01 --seed 3 2> /dev/null
}

@test "layout of a table, of a file, and what a pipeline reads" {
  make_table
  run "$HEADRACE" layout t
  [ "$status" -eq 0 ]
  [[ "$output" == *"row index"* && "$output" == *"sparse"* ]]
  "$HEADRACE" layout t/part-00000.dwrf --json | jq -e '.schema == "headrace.layout/1" and .files[0].rows_count == 2048'
  "$HEADRACE" layout t --pipeline t/pipeline.toml --json > l.json
  jq -e '.projection | .read_bytes == .wanted_bytes + .over_read_bytes and .reads_count > 0' l.json
  jq -e '[.files[] | .data_bytes + .index_bytes] | add == ($l[0].projection | .read_bytes + .skipped_bytes)' --slurpfile l l.json l.json
  jq -e '[.projection.by_gap[].reads_count] | . == (sort | reverse)' l.json
  # A projection given by names, and reads not joined at all.
  "$HEADRACE" layout t --projection 'label,dense[1],sparse' --gap 0 --json | jq -e '.projection.over_read_bytes == 0'
}

@test "layout of whole flattened maps is that of all their keys" {
  make_table
  # Freed memory is filled with other bytes: keys read after their stripe is gone are not those of the table.
  export MALLOC_PERTURB_=165
  "$HEADRACE" layout t --projection 'label,sparse,dense' --json > whole.json
  all=$("$HEADRACE" inspect t/part-00000.dwrf --json |
    jq -r '[.stripes[].flattened_maps[] | select(.column != "weighted") | .column as $c | .keys[] | "\($c)[\(.key)]"] | unique | join(",")')
  "$HEADRACE" layout t --projection "label,$all" --json > keys.json
  [ "$(jq .projection.features_count whole.json)" -gt 1 ]
  [ "$(jq .projection.absent_features_count whole.json)" -eq 0 ]
  [ "$(jq -S '.projection | del(.source)' whole.json)" = "$(jq -S '.projection | del(.source)' keys.json)" ]
  # The example of --help.
  key=$(jq '[.keys[] | select(.column == "sparse") | .key][0]' whole.json)
  run "$HEADRACE" layout t --projection "label,sparse[$key],dense"
  [ "$status" -eq 0 ]
}

@test "advice is measured on copies, and leaves none behind" {
  make_table
  mkdir tmp
  TMPDIR=$PWD/tmp "$HEADRACE" layout t --pipeline t/pipeline.toml --advise --json > advice.json
  [ -z "$(ls tmp)" ]
  jq -e '.schema == "headrace.layout_advice/1"' advice.json
  jq -e '[.layouts[].optimize] == ["as it is", "balanced", "read", "size"]' advice.json
  jq -e '.layouts | all(.cpu_ns_per_row > 0 and .rows_count == 2048 and .read_bytes_per_row < .stored_bytes_per_row)' advice.json
  jq -e '.layouts[0] | .cpu_ratio == 1 and .compression == $c' --arg c "$(jq -r .compression t/table.json)" advice.json
  jq -e '.layouts | map({(.optimize): .read_bytes_per_row}) | add | .size < .balanced and .balanced < .read' advice.json
  # What is advised is what rewriting gives.
  "$HEADRACE" rewrite t -o size --optimize size 2> /dev/null
  want=$("$HEADRACE" layout size --pipeline t/pipeline.toml --gap 0 --json | jq '.projection.wanted_bytes / 2048')
  jq -e '(.layouts[3].read_bytes_per_row - $want) | fabs < 1e-6' --argjson want "$want" advice.json
  run "$HEADRACE" layout t --pipeline t/pipeline.toml --advise --rows 500
  [[ "$output" == *"the first 2048 rows"* ]]
  run "$HEADRACE" layout t --advise
  one_line_error 2 "projection"
  run "$HEADRACE" layout t --rows 5
  one_line_error 2 "--rows"
  printf 'k1 000102030405060708090a0b0c0d0e0f\n' > keys.txt && chmod 600 keys.txt
  "$HEADRACE" rewrite t -o secret --encrypt a=sparse:k1 --keys keys.txt 2> /dev/null
  run "$HEADRACE" layout secret --pipeline secret/pipeline.toml --advise
  one_line_error 6 "encrypted"
}

@test "advice names every goal that gains, and is stopped and refused without a trace" {
  make_table
  "$HEADRACE" rewrite t -o small --stripe-rows 64 --optimize off --compression zlib 2> /dev/null
  run "$HEADRACE" layout small --pipeline small/pipeline.toml --advise --rows 100
  [ "$status" -eq 0 ]
  [[ "$output" == *"the first 128 rows"* ]]
  # Of 128 rows in two stripes zlib is the dearest to unpack.
  [[ "$output" == *"Rewriting for read gains, a byte read at 0.15 ns:"* ]]
  [[ "$output" == *"next: "*" rewrite small -o DIR --optimize "* ]]
  mkdir tmp
  TMPDIR=$PWD/tmp "$HEADRACE" layout small --pipeline small/pipeline.toml --advise > advice.txt 2> error.txt &
  pid=$!
  copies_or_end() { [ -n "$(ls tmp)" ] || ! kill -0 $pid; }
  until_true 10 copies_or_end
  kill -INT $pid || true
  status=0 && wait $pid || status=$?
  [ "$status" -eq 130 ] || [ "$status" -eq 0 ]  # it may have ended before the signal came
  [ -z "$(ls tmp)" ]
  TMPDIR=$PWD/nowhere run "$HEADRACE" layout t --pipeline t/pipeline.toml --advise
  one_line_error 2 "TMPDIR.*nowhere|nowhere.*TMPDIR"
  for option in "--gap 0" "--max 1MiB" --features; do
    run "$HEADRACE" layout t --pipeline t/pipeline.toml --advise $option
    one_line_error 2 "^.*${option%% *}.*--advise"
  done
}

@test "layout of wrong inputs" {
  make_table
  run "$HEADRACE" layout nowhere
  one_line_error 5 "nowhere"
  head -c 4096 /dev/urandom > noise.dwrf
  run "$HEADRACE" layout noise.dwrf
  one_line_error 5 "noise.dwrf"
  head -c 5000 t/part-00000.dwrf > cut.dwrf
  run "$HEADRACE" layout cut.dwrf
  one_line_error 5 "cut.dwrf"
  run "$HEADRACE" layout t --projection lable
  one_line_error 2 "no column lable"
  run "$HEADRACE" layout t --projection 'sparse[x]'
  one_line_error 2 "not an integer"
  run "$HEADRACE" layout t --gap 0
  one_line_error 2 "--gap.*--projection"
  run "$HEADRACE" layout t --projection label --gap wide
  one_line_error 2 "--gap"
  echo 'x = 1' > bad.toml
  run "$HEADRACE" layout t --pipeline bad.toml
  one_line_error 2 "bad.toml"
}
