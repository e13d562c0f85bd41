#!/bin/sh
# Runs fuzzers under AddressSanitizer and UndefinedBehaviorSanitizer, built with clang in build-fuzz.
#
#   fuzz.sh [SECONDS]            builds and runs all: half of SECONDS (600) each of the two fuzzers of the DWRF reader, a fifth the
#                                stack sampler's parsers, a tenth checkpoints, frames, the service's messages, nodes files
#                                and stored comparisons each, a
#                                twentieth plans, stored decisions, a study's files and the server's addresses each
#   fuzz.sh build                builds them
#   fuzz.sh each SECONDS NAME... runs each of these, which are built, so long: `fuzz.sh each 60 dwrf_fuzz`; HEADRACE_FUZZ_EACH=N
#                                overrides SECONDS
#
# They begin with small files of our own writer, the example files where they are, and what earlier runs found worth keeping
# (build-fuzz/corpus, the newest 2000 inputs of each kind), so that short runs go on where the last one ended. An input that something
# is wrong with is kept in build-fuzz/found, and tried first until somebody removes it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-fuzz
all="dwrf_fuzz feature_fuzz elf_symbols_fuzz checkpoint_fuzz frame_fuzz nodes_fuzz comparison_fuzz plan_fuzz decision_fuzz study_fuzz serve_fuzz service_fuzz handshake_fuzz configuration_fuzz shipment_fuzz"
each=
case ${1:-} in
  each) seconds=${HEADRACE_FUZZ_EACH:-$2} each=1; shift 2; fuzzers=$* ;;
  build) seconds=0 fuzzers= ;;
  *) seconds=${1:-600} fuzzers=$all ;;
esac
if [ "${1:-}" = build ] || [ "$fuzzers" = "$all" ]; then
  cmake --preset fuzz -S "$root" > /dev/null
  # shellcheck disable=SC2086
  cmake --build "$build" -j "$(nproc)" --target $all
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$build/found"
cd "$work"

# fuzz NAME PART KIND LENGTH [OPTION...]: runs NAME for a PART-th of the time (with `each` for all of it), with inputs of up to LENGTH bytes; $work/KIND has the
# seeds. An input may take 100 s on a machine that does other things; one that takes that long on a quiet one does not end.
fuzz() {
  name=$1 time=$(((seconds + $2 - 1) / $2)) kind=$3 length=$4
  [ -z "$each" ] || time=$seconds
  shift 4
  corpus=$build/corpus/$kind
  mkdir -p "$corpus" "$work/$kind"
  for found in "$build/found/$name"-*; do  # what was wrong once, until it is mended and removed
    [ ! -e "$found" ] || "$build/$name" -timeout=100 -rss_limit_mb=2048 "$found"
  done
  echo "== $name, $time s"
  "$build/$name" -max_total_time=$time -rss_limit_mb=2048 -timeout=100 -max_len="$length" -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$build/found/$name-" "$@" "$corpus" "$work/$kind"
  (cd "$corpus" && ls -t | tail -n +2001 | xargs -r rm -f)
}

table() {  # a small table of our own writer
  [ -x "$root/build/headrace" ] || return 0
  [ -d "$work/table" ] || "$root/build/headrace" generate rm3 -o "$work/table" --rows 256 --features 0.002 --seed 1 2> /dev/null || true
}

reader_seeds() {
  [ ! -d "$work/reader" ] || return 0
  mkdir "$work/reader"
  for folder in "${HEADRACE_DWRF_FILES:-$root/../shared/dwrf/files}" "$root/tests/fuzz/corpus"; do
    [ -d "$folder" ] && find "$folder" -type f ! -name '*.json' -size -64k -exec cp {} "$work/reader/" \;
  done
  table
  if [ -d "$work/table" ]; then
    cp "$work"/table/*.dwrf "$work/reader/"
    HEADRACE_FUZZ_KEYS="fuzz 000102030405060708090a0b0c0d0e0f" "$root/build/headrace" generate rm3 -o "$work/secret" --rows 256 \
      --features 0.002 --seed 1 --keys env:HEADRACE_FUZZ_KEYS --encrypt a=sparse,dense:fuzz:aes128-ctr \
      --encrypt b=label:fuzz:aes128-gcm 2> /dev/null && cp "$work"/secret/part-00000.dwrf "$work/reader/secret.dwrf"
    "$root/build/headrace" rewrite "$work/table" -o "$work/maps" --layout map 2> /dev/null &&
      cp "$work"/maps/part-00000.dwrf "$work/reader/maps.dwrf"
  fi
  ls "$work/reader" | grep -q . || echo "fuzz: no seed files; starting from nothing" >&2
}

for fuzzer in $fuzzers; do
  case $fuzzer in
    # Half of the time for the general reader, half for the fast path; each finds inputs for the other.
    dwrf_fuzz | feature_fuzz)
      reader_seeds
      fuzz "$fuzzer" 2 reader 65536
      ;;
    checkpoint_fuzz)  # seeded with those of finished runs, where there is an executable
      table
      mkdir "$work/checkpoints"
      if [ -d "$work/table" ]; then
        for epochs in 1 3; do
          "$root/build/headrace" run "$work/table/pipeline.toml" --no-record -q --epochs $epochs \
            --checkpoint "$work/checkpoints/$epochs" 2> /dev/null || true
        done
      fi
      fuzz "$fuzzer" 10 checkpoints 4096
      ;;
    frame_fuzz)  # of a delivery, from nothing: the harness puts magic and checksums right
      fuzz "$fuzzer" 10 frames 16384 -len_control=0
      ;;
    service_fuzz)  # from nothing: the harness puts header and checksum right
      fuzz "$fuzzer" 10 service 4096
      ;;
    handshake_fuzz)
      mkdir "$work/handshake"
      printf 'hrhello1\001\000\000\000\001\000\000\000%0112d' 0 > "$work/handshake/greeting"
      printf 'hrhello1\001\000\000\000\001\000\000\000%048d\000\000\000\000\000\000\000\000%056d' 0 0 > "$work/handshake/proof"
      fuzz "$fuzzer" 20 handshake 1024
      ;;
    shipment_fuzz)  # from nothing
      fuzz "$fuzzer" 20 shipment 4096
      ;;
    nodes_fuzz)
      mkdir "$work/nodes"
      cp "$root/docs/examples/nodes.toml" "$work/nodes/"
      fuzz "$fuzzer" 10 nodes 4096
      ;;
    serve_fuzz)
      mkdir "$work/serve"
      printf '/api/runs/1/course?from=1&to=2\n127.0.0.1:7070\n\nheadrace_session_7070=a secret of some length\n\n{}' > "$work/serve/get"
      printf '/api/session\nlocalhost:7070\nhttp://localhost:7070\n\napplication/json\n\n{"token":"a secret of some length"}' > "$work/serve/post"
      fuzz "$fuzzer" 20 serve 4096
      ;;
    comparison_fuzz)
      mkdir "$work/comparisons"
      cp "$root/tests/fuzz/comparison.json" "$work/comparisons/"
      fuzz "$fuzzer" 10 comparisons 16384
      ;;
    plan_fuzz | decision_fuzz | study_fuzz)
      kind=${fuzzer%_fuzz}
      mkdir "$work/$kind"
      cp "$root/tests/fuzz/$kind"*.json "$work/$kind/"
      fuzz "$fuzzer" 20 "$kind" 16384
      ;;
    configuration_fuzz)
      mkdir "$work/configuration"
      printf 'db = "a.db"\n[run]\nlevel = 1\nset = ["a=1"]\n' > "$work/configuration/config.toml"
      fuzz "$fuzzer" 20 configuration 4096
      ;;
    elf_symbols_fuzz)  # seeded with a small program
      mkdir "$work/elf"
      printf 'int f(int x) { return x + 1; }\nint main(int c, char** v) { (void)v; return f(c); }\n' > "$work/p.c"
      cc -O1 -o "$work/elf/program" "$work/p.c" && printf '\000' >> "$work/elf/program"
      printf 'process 7:"python t.py";process 9:"python t.py";thread (9): Main;main (t.py:4) 12\n\006' > "$work/elf/py_spy"
      fuzz "$fuzzer" 5 elf 65536
      ;;
    *)
      echo "fuzz: there is no fuzzer '$fuzzer'; there are $all" >&2
      exit 2
      ;;
  esac
done
