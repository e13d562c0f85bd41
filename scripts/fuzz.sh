#!/bin/sh
# Runs the fuzzers of the DWRF reader for SECONDS and, for a fifth to a twentieth of that, of checkpoints, of frames, of nodes files, of stored comparisons, of plans, of stored decisions, of a study's files and of the stack sampler's parsers under AddressSanitizer and UndefinedBehaviorSanitizer, seeded with the corpus in
# the tree and with the example files where they exist.
set -eu
seconds=${1:-600}
root=$(cd "$(dirname "$0")/.." && pwd)
cmake --preset fuzz -S "$root" > /dev/null
cmake --build "$root/build-fuzz" --target dwrf_fuzz feature_fuzz elf_symbols_fuzz checkpoint_fuzz frame_fuzz nodes_fuzz comparison_fuzz plan_fuzz decision_fuzz study_fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/seeds" "$work/corpus"
for folder in "${HEADRACE_DWRF_FILES:-$root/../shared/dwrf/files}" "$root/tests/fuzz/corpus"; do
  [ -d "$folder" ] && find "$folder" -type f ! -name '*.json' -size -64k -exec cp {} "$work/seeds/" \;
done
if [ -x "$root/build/headrace" ]; then  # a small table of our own writer
  "$root/build/headrace" generate rm3 -o "$work/table" --rows 256 --features 0.002 --seed 1 2> /dev/null && cp "$work"/table/*.dwrf "$work/seeds/"
  HEADRACE_FUZZ_KEYS="fuzz 000102030405060708090a0b0c0d0e0f" "$root/build/headrace" generate rm3 -o "$work/secret" --rows 256 --features 0.002 --seed 1 \
    --keys env:HEADRACE_FUZZ_KEYS --encrypt a=sparse,dense:fuzz:aes128-ctr --encrypt b=label:fuzz:aes128-gcm 2> /dev/null && cp "$work"/secret/part-00000.dwrf "$work/seeds/secret.dwrf"
  "$root/build/headrace" rewrite "$work/table" -o "$work/maps" --layout map 2> /dev/null && cp "$work"/maps/part-00000.dwrf "$work/seeds/maps.dwrf"
fi
ls "$work/seeds" | grep -q . || echo "fuzz: no seed files; starting from nothing" >&2
cd "$work"
# An input may take 100 s on a machine that does other things; one that takes that long on a quiet one does not end.
# Half of the time for the general reader, half for the fast path; each finds inputs for the other.
for target in dwrf_fuzz feature_fuzz; do
  echo "== $target, $((seconds / 2)) s"
  "$root/build-fuzz/$target" -max_total_time=$((seconds / 2)) -rss_limit_mb=2048 -timeout=100 -max_len=65536 \
    -print_final_stats=1 -verbosity=0 "$work/corpus" "$work/seeds"
done

# Checkpoints: seeded with those of finished runs, where there is an executable.
echo "== checkpoint_fuzz, $((seconds / 10)) s"
mkdir "$work/checkpoints"
if [ -x "$root/build/headrace" ] && [ -d "$work/table" ]; then
  for epochs in 1 3; do
    "$root/build/headrace" run "$work/table/pipeline.toml" --no-record -q --epochs $epochs --checkpoint "$work/checkpoints/$epochs" 2> /dev/null || true
  done
fi
"$root/build-fuzz/checkpoint_fuzz" -max_total_time=$((seconds / 10)) -rss_limit_mb=2048 -timeout=100 -max_len=4096 \
  -print_final_stats=1 -verbosity=0 "$work/checkpoints"

# Frames of a delivery, from nothing: the harness puts magic and checksums right.
echo "== frame_fuzz, $((seconds / 10)) s"
mkdir "$work/frames"
"$root/build-fuzz/frame_fuzz" -max_total_time=$((seconds / 10)) -rss_limit_mb=2048 -timeout=100 -max_len=16384 -len_control=0 \
  -print_final_stats=1 -verbosity=0 "$work/frames"

# Nodes files of a fleet, seeded with the example.
echo "== nodes_fuzz, $((seconds / 10)) s"
mkdir "$work/nodes"
cp "$root/docs/examples/nodes.toml" "$work/nodes/"
"$root/build-fuzz/nodes_fuzz" -max_total_time=$((seconds / 10)) -rss_limit_mb=2048 -timeout=100 -max_len=4096 \
  -print_final_stats=1 -verbosity=0 "$work/nodes"

# Stored comparisons, seeded with one.
echo "== comparison_fuzz, $((seconds / 10)) s"
mkdir "$work/comparisons"
cp "$root/tests/fuzz/comparison.json" "$work/comparisons/"
"$root/build-fuzz/comparison_fuzz" -max_total_time=$((seconds / 10)) -rss_limit_mb=2048 -timeout=100 -max_len=16384 \
  -print_final_stats=1 -verbosity=0 "$work/comparisons"

# Plans, stored decisions and a study's files, each seeded with one of its kind.
for kind in plan decision study; do
  echo "== ${kind}_fuzz, $((seconds / 20)) s"
  mkdir "$work/$kind"
  cp "$root/tests/fuzz/$kind"*.json "$work/$kind/"
  "$root/build-fuzz/${kind}_fuzz" -max_total_time=$((seconds / 20)) -rss_limit_mb=2048 -timeout=100 -max_len=16384 \
    -print_final_stats=1 -verbosity=0 "$work/$kind"
done

# The stack sampler's parsers: seeded with a small program.
echo "== elf_symbols_fuzz, $((seconds / 5)) s"
mkdir "$work/elf"
printf 'int f(int x) { return x + 1; }\nint main(int c, char** v) { (void)v; return f(c); }\n' > "$work/p.c"
cc -O1 -o "$work/elf/program" "$work/p.c" && printf '\000' >> "$work/elf/program"
"$root/build-fuzz/elf_symbols_fuzz" -max_total_time=$((seconds / 5)) -rss_limit_mb=2048 -timeout=100 -max_len=65536 \
  -print_final_stats=1 -verbosity=0 "$work/elf"
