#!/usr/bin/env bats
# headrace generate: the layouts it chooses. What the rows are is tested in tests/workloads.
load helpers

make() { "$HEADRACE" generate rm1 -o "$1" --rows 2048 --features 0.02 --seed 3 "${@:2}" 2> /dev/null; }
hash_of() { for f in "$1"/part-*.dwrf; do "$HEADRACE" cat "$f" --format canonical; done | sha256sum; }
bytes_of() { cat "$1"/part-*.dwrf | wc -c; }

@test "every goal gives the same rows, in a layout of its own" {
  make off --optimize off
  want=$(hash_of off)
  for goal in balanced read size; do
    make "$goal" --optimize "$goal"
    [ "$(hash_of "$goal")" = "$want" ]
    [ "$(jq -r .optimize "$goal/table.json")" = "$goal" ]
    "$HEADRACE" inspect "$goal/part-00000.dwrf" --verify > /dev/null
    # The same choices once more give the same bytes.
    make "$goal.again" --optimize "$goal"
    cmp "$goal/part-00000.dwrf" "$goal.again/part-00000.dwrf"
  done
  [ "$(jq .optimize off/table.json)" = null ]
  [ "$(bytes_of size)" -lt "$(bytes_of balanced)" ]
  [ "$(bytes_of size)" -lt "$(bytes_of off)" ]
  [ "$(bytes_of balanced)" -lt "$(bytes_of read)" ]
}

@test "dictionaries in flattened maps, where a goal is given" {
  dictionaries() { "$HEADRACE" layout "$1" --json | jq '.stream_kinds.DICTIONARY_DATA.stored_bytes // 0'; }
  make off --optimize off
  make balanced --optimize balanced
  [ "$(dictionaries balanced)" -gt "$(dictionaries off)" ]
}

@test "options that are given come before the goal" {
  make t --optimize balanced --compression lz4 --stripe-rows 500
  [ "$(jq -r .compression t/table.json)" = lz4 ]
  "$HEADRACE" inspect t/part-00000.dwrf --json | jq -e '.postscript.compression == "LZ4" and (.stripes | length) == 5'
}

@test "what was chosen holds for all files, and is told" {
  make t --optimize balanced --partitions 3 --explain > explained.txt
  [ "$(for f in t/part-*.dwrf; do "$HEADRACE" inspect "$f" --json | jq .postscript.compression; done | sort -u | wc -l)" -eq 1 ]
  grep -q "^layout: balanced, a stored byte priced at 5 ns" explained.txt
  grep -q "^codec $(jq -r .compression t/table.json), tried on keys of the first stripe: zstd" explained.txt
  grep -q "^sparse.value.element " explained.txt
  run make u --optimize off --explain
  [ "$output" = "layout: nothing was chosen (--optimize off)" ]
  run "$HEADRACE" generate rm1 -o v --stripe-rows 0
  one_line_error 2 "--stripe-rows"
  run "$HEADRACE" generate rm1 -o v --compression ''
  one_line_error 2 "--compression"
  run "$HEADRACE" generate rm1 -o v --optimize fast
  one_line_error 2 "--optimize"
}
