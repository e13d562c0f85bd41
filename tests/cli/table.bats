#!/usr/bin/env bats
# Tables: generate, inspect, cat, run; and what happens to damaged files.
load helpers

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.01 --seed 3 2> /dev/null
}

@test "generate is byte-identical for one seed" {
  make_table
  "$HEADRACE" generate rm1 -o u --rows 2048 --features 0.01 --seed 3 2> /dev/null
  cmp t/part-00000.dwrf u/part-00000.dwrf
  "$HEADRACE" generate rm1 -o v --rows 2048 --features 0.01 --seed 4 2> /dev/null
  ! cmp -s t/part-00000.dwrf v/part-00000.dwrf
}

@test "generate refuses an unknown model and a folder that is in use" {
  run "$HEADRACE" generate rm9 -o t
  [ "$status" -eq 2 ]
  mkdir t && touch t/mine
  run "$HEADRACE" generate rm1 -o t --rows 512 --features 0.01
  [ "$status" -eq 2 ]
  [ -e t/mine ]
}

@test "inspect and cat show what was written" {
  make_table
  "$HEADRACE" inspect t/part-00000.dwrf --json | jq -e '.schema == "headrace.inspect/1"'
  run "$HEADRACE" inspect t/part-00000.dwrf
  [ "$status" -eq 0 ]
  [[ "$output" == *label* ]]
  [ "$("$HEADRACE" cat t/part-00000.dwrf --columns label,session_id --limit 5 | wc -l)" -eq 5 ]
  "$HEADRACE" cat t/part-00000.dwrf --columns label --limit 1 | jq -e 'has("label")'
}

@test "cat into a closed pipe ends quietly" {
  make_table
  "$HEADRACE" cat t/part-00000.dwrf 2> err | head -n 1 > /dev/null
  [ ! -s err ]
}

@test "the generated pipeline delivers every row once, at any parallelism and in file order" {
  make_table
  one=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 | jq -c .checksum)
  four=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 --set decode.parallelism=4 --set transform.parallelism=3 | jq -c .checksum)
  [ "$(jq .rows_count <<< "$one")" -gt 0 ]
  [ "$(jq -c '[.rows_count,.multiset]' <<< "$one")" = "$(jq -c '[.rows_count,.multiset]' <<< "$four")" ]
  ordered_one=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file | jq -c .checksum)
  ordered_four=$("$HEADRACE" run t/pipeline.toml --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file --set decode.parallelism=4 --set fetch.parallelism=3 | jq -c .checksum)
  [ "$ordered_one" = "$ordered_four" ]
}

@test "an empty file" {
  : > empty.dwrf
  run "$HEADRACE" cat empty.dwrf
  one_line_error 5 "empty.dwrf: 0 bytes"
}

@test "a truncated file" {
  make_table
  head -c 5000 t/part-00000.dwrf > cut.dwrf
  run "$HEADRACE" cat cut.dwrf
  one_line_error 5 "cut.dwrf.*byte"
}

@test "a file that is not DWRF" {
  head -c 4096 /dev/urandom > noise.dwrf
  run "$HEADRACE" inspect noise.dwrf
  one_line_error 5 "noise.dwrf"
}

@test "an absent file and a folder" {
  run "$HEADRACE" cat nowhere.dwrf
  one_line_error 5 "nowhere.dwrf"
  run "$HEADRACE" cat .
  [ "$status" -eq 5 ]
}

@test "an unknown column suggests the nearest" {
  make_table
  run "$HEADRACE" cat t/part-00000.dwrf --columns lable
  [ "$status" -eq 2 ]
  [[ "$output" == *"label"* ]]
}

@test "a table that loses a byte is refused while running" {
  make_table
  printf '\xff' | dd of=t/part-00000.dwrf bs=1 seek=200 conv=notrunc 2> /dev/null
  run "$HEADRACE" cat t/part-00000.dwrf
  one_line_error 5 "checksum"
}
