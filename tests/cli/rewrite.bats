#!/usr/bin/env bats
# headrace rewrite: the same rows in other layouts, and the log of reads that orders them.
load helpers

make_table() {
  "$HEADRACE" generate rm1 -o t --rows 2048 --features 0.01 --seed 3 --partitions 2 2> /dev/null
}
rows_of() { for f in "$1"/part-*.dwrf; do "$HEADRACE" cat "$f" --format canonical "${@:2}"; done; }
hash_of() { rows_of "$@" | sha256sum; }
run_of() { "$HEADRACE" run "$1/pipeline.toml" --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file "${@:2}" | jq -c .checksum; }
places_of() { "$HEADRACE" layout "$1" --json | jq -c '[.keys[] | select(.column == "sparse").key]'; }

@test "every layout has the rows of the source, to a run as to cat" {
  make_table
  want=$(hash_of t) && job=$(run_of t)
  while read -r name options; do
    "$HEADRACE" rewrite t -o "$name" $options 2> /dev/null
    [ "$(hash_of "$name")" = "$want" ] || { echo "$name: other rows"; return 1; }
    [ "$(run_of "$name")" = "$job" ] || { echo "$name: another run"; return 1; }
  done <<'CASES'
same
declared --order declared
random --order random --seed 4
small --stripe-rows 100
large --stripe-rows 4096
none --compression none
lz4 --compression lz4
zlib --compression zlib --level 9
hard --level 12 --min-ratio 1
column --column sparse.value.element=raw --column dense.value=level:9,ratio:1
balanced --optimize balanced
read --optimize read
size --optimize size --compression lz4
ratio --optimize balanced --min-ratio 1.5
CASES
  # The same choices give the same bytes.
  cmp t/part-00000.dwrf same/part-00000.dwrf
  [ "$("$HEADRACE" layout small --json | jq '[.files[].stripes_count] | add')" -eq 22 ]
  [ "$(places_of random)" != "$(places_of declared)" ]
  [ "$(jq -c sort <<< "$(places_of random)")" = "$(jq -c sort <<< "$(places_of declared)")" ]
}

@test "a goal stays with the table until another is asked for" {
  make_table
  "$HEADRACE" rewrite t -o a --optimize balanced --explain 2> /dev/null > explained.txt
  grep -q "^layout: balanced" explained.txt
  "$HEADRACE" rewrite a -o b 2> /dev/null
  cmp a/part-00000.dwrf b/part-00000.dwrf
  cmp a/part-00001.dwrf b/part-00001.dwrf
  "$HEADRACE" rewrite a -o c --optimize off --compression zstd --column session_id=dictionary:auto 2> /dev/null
  [ "$("$HEADRACE" layout c --json | jq '.stream_kinds.DICTIONARY_DATA.streams_count // 0')" -le 2 ]
  [ "$(jq .optimize c/table.json)" = null ]
  # A codec that was asked for and is worth nothing to the goal.
  "$HEADRACE" rewrite t -o e --optimize read --compression zstd 2> said.txt
  grep -q "^--compression zstd: no stream is compressed, as --optimize read" said.txt
  "$HEADRACE" rewrite t -o f --optimize size --compression zstd 2> said.txt
  ! grep "no stream is compressed" said.txt || return 1
  run "$HEADRACE" rewrite t -o d --optimize quick
  one_line_error 2 "--optimize"
}

@test "maps whole and flattened again" {
  make_table
  "$HEADRACE" rewrite t -o maps --layout map 2> /dev/null
  [ "$(hash_of maps)" = "$(hash_of t)" ]
  [ "$("$HEADRACE" layout maps --json | jq '[.columns[].flattened] | any')" = false ]
  "$HEADRACE" rewrite maps -o flat --layout flat --order random --seed 2 2> /dev/null
  [ "$(hash_of flat)" = "$(hash_of t)" ]
  [ "$(run_of flat)" = "$(run_of t)" ]
}

@test "clustering keeps the rows and brings sessions together" {
  make_table
  "$HEADRACE" rewrite t -o near --cluster session_id 2> /dev/null
  [ "$(rows_of near | sort | sha256sum)" = "$(rows_of t | sort | sha256sum)" ]
  changes() { rows_of "$1" --columns session_id | uniq | wc -l; }
  sessions() { for f in "$1"/part-*.dwrf; do "$HEADRACE" cat "$f" --format canonical --columns session_id | sort -u; done | wc -l; }
  [ "$(changes near)" -eq "$(sessions t)" ]
  [ "$(changes t)" -gt "$(changes near)" ]
  jq -e .clustered near/table.json
}

@test "by popularity: what jobs read together lies together" {
  make_table
  keys=$(places_of t)
  a=$(jq '.[-1]' <<< "$keys") && b=$(jq '.[0]' <<< "$keys") && c=$(jq '.[2]' <<< "$keys")
  for features in "$a,$c" "$a,$c" "$b"; do
    sed "s/^sparse = .*/sparse = [$features]/; /^\[\[transform\]\]/,\$d" t/pipeline.toml > job.toml
    sed -i 's|^table = .*|table = "t"|' job.toml
    "$HEADRACE" run job.toml --no-record --quiet --set consumer.step=0 --log-reads reads.jsonl
  done
  [ "$(wc -l < reads.jsonl)" -eq 3 ]
  head -n 1 reads.jsonl | jq -e '.schema == "headrace.coread/1" and .weight == 1'
  "$HEADRACE" rewrite t -o hot --order popularity --coread reads.jsonl 2> /dev/null
  [ "$(hash_of hot)" = "$(hash_of t)" ]
  # Read twice: a and c, by key; then b; the rest by key.
  [ "$(places_of hot | jq -c '.[0:3]')" = "$(jq -nc "[$a, $c | tonumber] | sort + [$b]")" ]
  reads() { "$HEADRACE" layout "$1" --projection "sparse[$a],sparse[$c]" --gap 0 --json | jq .projection.reads_count; }
  [ "$(reads hot)" -lt "$(reads t)" ]
}

@test "encrypting and decrypting a table" {
  make_table
  printf 'k1 000102030405060708090a0b0c0d0e0f\n' > keys.txt && chmod 600 keys.txt
  "$HEADRACE" rewrite t -o secret --encrypt a=sparse,label:k1:aes128-gcm --keys keys.txt 2> /dev/null
  [ "$(hash_of secret --keys keys.txt)" = "$(hash_of t)" ]
  [ "$(run_of secret)" = "$(run_of t)" ]
  run "$HEADRACE" rewrite secret -o open
  one_line_error 6 "is encrypted"
  "$HEADRACE" rewrite secret -o open --keys keys.txt 2> /dev/null
  [ "$(hash_of open)" = "$(hash_of t)" ]
}

@test "rewrite of wrong inputs" {
  make_table
  run "$HEADRACE" rewrite nowhere -o u
  one_line_error 5 "nowhere"
  run "$HEADRACE" rewrite t -o u --order popularity
  one_line_error 2 "coread"
  echo '{}' > bad.jsonl
  run "$HEADRACE" rewrite t -o u --order popularity --coread bad.jsonl
  one_line_error 5 "bad.jsonl:1"
  run "$HEADRACE" rewrite t -o u --cluster nothing
  one_line_error 2 "no column 'nothing'"
  run "$HEADRACE" rewrite t -o u --cluster label
  one_line_error 2 "has type float"
  run "$HEADRACE" rewrite t -o u --column sparse.nothing=raw
  one_line_error 2 "sparse.nothing"
  run "$HEADRACE" rewrite t -o u --column dense.value=level:99
  one_line_error 2 "level of 'dense.value'"
  run "$HEADRACE" rewrite t -o u --column dense.value=fast
  one_line_error 2 "'fast' is not a choice"
  run "$HEADRACE" rewrite t -o u --compression brotli
  one_line_error 2 "unknown compression"
  run "$HEADRACE" rewrite t -o t
  one_line_error 2 "not empty"
  printf '\xff' | dd of=t/part-00001.dwrf bs=1 seek=200 conv=notrunc 2> /dev/null
  run "$HEADRACE" rewrite t -o u
  [ "$status" -eq 5 ]
  [ ! -e u ]
}

@test "rows as maps: an ordinary map and the operator rowmap give the same batches" {
  make_table
  "$HEADRACE" rewrite t -o maps --layout map 2> /dev/null
  [ "$(run_of maps)" = "$(run_of t)" ]
  sed 's/"extract"\]/"extract", "rowmap"]/' t/pipeline.toml > t/rowmap.toml
  grep -q rowmap t/rowmap.toml
  run_rowmap() { "$HEADRACE" run t/rowmap.toml --no-record --checksum --json --set consumer.step=0 --set pipeline.order=file | jq -c .checksum; }
  [ "$(run_rowmap)" = "$(run_of t)" ]
}
