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

@test "cat of a folder names a file in it, never one that is none" {
  make_table
  run "$HEADRACE" cat t
  one_line_error 5 "t: is a folder; name a file in it: t/part-00000.dwrf"
  mkdir empty
  run "$HEADRACE" cat empty
  one_line_error 5 "empty: is a folder; there is no .dwrf file in it"
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

@test "inspect and cat hold metadata against the rows when asked" {
  DAMAGE=${DAMAGE:-$BATS_TEST_DIRNAME/../../build/damage}
  [ -x "$DAMAGE" ] || skip "no executable $DAMAGE: DAMAGE names it"
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.01 --seed 3 2> /dev/null
  "$HEADRACE" inspect t/part-00000.dwrf --verify 2> /dev/null | grep -q '^verified: 2048 rows'
  "$HEADRACE" inspect t/part-00000.dwrf --verify --json | jq -e '.verification | .rows_count == 2048 and (.figures | contains(["count", "maximum"])) and .not_checked == []'
  [ "$("$HEADRACE" cat t/part-00000.dwrf --verify 2> /dev/null | wc -l)" -eq 2048 ]
  "$DAMAGE" maximum t/part-00000.dwrf lies.dwrf
  "$HEADRACE" cat lies.dwrf > /dev/null  # checksums are right
  for command in inspect cat; do
    run "$HEADRACE" $command lies.dwrf --verify
    one_line_error 5 "lies.dwrf: footer, column .* the statistics say maximum [0-9-]+, the rows have [0-9-]+;"
  done
  run "$HEADRACE" cat lies.dwrf --verify --no-verify
  one_line_error 2 "verify"
}

@test "tables of other formats are refused by name" {
  mkdir t
  printf 'PAR1aaaaaaaaaaaaaaaaaaaaaaaaaaaaPAR1' > t/a.dwrf
  printf 'ARROW1\0\0aaaaaaaaaaaaaaaaaaaaaaaaaARROW1' > arrow.dwrf
  printf 'FEA1aaaaaaaaaaaaaaaaaaaaaaaaFEA1' > feather.dwrf
  printf 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xfa\xa1' > nimble.dwrf
  printf 'rows' | gzip > packed.dwrf
  for command in inspect cat layout; do
    run "$HEADRACE" $command t/a.dwrf
    one_line_error 5 "this is Parquet, not DWRF"
    run "$HEADRACE" $command arrow.dwrf
    one_line_error 5 "this is Arrow IPC"
    run "$HEADRACE" $command feather.dwrf
    one_line_error 5 "this is Feather"
    run "$HEADRACE" $command nimble.dwrf
    one_line_error 5 "this is Nimble"
    run "$HEADRACE" $command packed.dwrf
    one_line_error 5 "this is a gzip file"
  done
  run "$HEADRACE" layout t
  one_line_error 5 "this is Parquet"
  run "$HEADRACE" rewrite t -o again
  one_line_error 5 "this is Parquet"
  mv t/a.dwrf t/a.parquet
  run "$HEADRACE" layout t
  one_line_error 5 "parquet"
}
