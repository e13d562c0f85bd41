#!/bin/sh
# Runs fuzzers under AddressSanitizer and UndefinedBehaviorSanitizer, built with clang in build-fuzz.
#
#   fuzz.sh [SECONDS]      builds and runs all, one after the other, in SECONDS (600): each as its shares are to those of all
#   fuzz.sh build          builds them
#   fuzz.sh each NAME...   runs each of these, which are built, for as many seconds as it has shares: `fuzz.sh each dwrf_fuzz`;
#                          HEADRACE_FUZZ_EACH=N for N seconds
#
# A fuzzer is a file tests/fuzz/NAME.cc, which says how it is run: `// fuzz run: share=N length=BYTES [corpus=NAME] [options=OPTION]`.
# It begins with tests/fuzz/seeds/CORPUS (files) and what tests/fuzz/seeds/CORPUS.sh makes, and with what earlier runs found worth
# keeping (build-fuzz/corpus, the newest 2000 inputs of each), so that short runs go on where the last one ended. CORPUS is NAME
# without _fuzz unless said. An input that something is wrong with is kept in build-fuzz/found, and tried first until somebody
# removes it.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-fuzz headrace=$root/build/headrace
all=$(cd "$root/tests/fuzz" && ls ./*_fuzz.cc | sed 's|^\./||; s|\.cc$||')
seconds=
case ${1:-} in
  each) shift; fuzzers=${*:?fuzz: each of which? one of $all} ;;
  build) fuzzers= ;;
  *) seconds=${1:-600} fuzzers=$all ;;
esac
for name in $fuzzers; do
  [ -f "$root/tests/fuzz/$name.cc" ] || { echo "fuzz: there is no fuzzer '$name'; there are" $all >&2; exit 2; }
done
shares=$(sed -n 's|^// fuzz run: share=\([0-9]*\).*|\1|p' "$root"/tests/fuzz/*_fuzz.cc | awk '{ sum += $1 } END { print sum }')
if [ "${1:-}" = build ] || [ -n "$seconds" ]; then
  cmake --preset fuzz -S "$root" > /dev/null
  cmake --build "$build" -j "$(nproc)" --target fuzzers
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$build/found"

table() {  # for scripts of seeds: $work/table, a small table of our own writer, where there is an executable
  [ -x "$headrace" ] || return 0
  [ -d "$work/table" ] || "$headrace" generate rm3 -o "$work/table" --rows 256 --features 0.002 --seed 1 2> /dev/null || true
}

seeds() {  # seeds CORPUS: fills $work/seeds/CORPUS, once
  [ ! -d "$work/seeds/$1" ] || return 0
  mkdir -p "$work/seeds/$1"
  cd "$work/seeds/$1"
  [ ! -d "$root/tests/fuzz/seeds/$1" ] || cp "$root/tests/fuzz/seeds/$1"/* .
  # shellcheck disable=SC1090
  [ ! -f "$root/tests/fuzz/seeds/$1.sh" ] || . "$root/tests/fuzz/seeds/$1.sh"
  ls | grep -q . || echo "fuzz: $1 has no seeds; starting from nothing" >&2
  cd "$work"
}

for name in $fuzzers; do
  share=1 length=4096 corpus=${name%_fuzz} options=
  for pair in $(sed -n 's|^// fuzz run: ||p' "$root/tests/fuzz/$name.cc"); do
    case $pair in
      share=*) share=${pair#*=} ;;
      length=*) length=${pair#*=} ;;
      corpus=*) corpus=${pair#*=} ;;
      options=*) options=${pair#*=} ;;
      *) echo "fuzz: $name.cc: '$pair' is no share, length, corpus or options" >&2; exit 2 ;;
    esac
  done
  if [ -n "$seconds" ]; then time=$(((seconds * share + shares - 1) / shares)); else time=${HEADRACE_FUZZ_EACH:-$share}; fi
  seeds "$corpus"
  cd "$work"
  mkdir -p "$build/corpus/$corpus"
  for found in "$build/found/$name"-*; do  # what was wrong once, until it is mended and removed
    [ ! -e "$found" ] || "$build/$name" -timeout=100 -rss_limit_mb=2048 "$found"
  done
  echo "== $name, $time s"
  # An input may take 100 s on a machine that does other things; one that takes that long on a quiet one does not end.
  # shellcheck disable=SC2086
  "$build/$name" -max_total_time="$time" -rss_limit_mb=2048 -timeout=100 -max_len="$length" -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$build/found/$name-" $options "$build/corpus/$corpus" "$work/seeds/$corpus"
  (cd "$build/corpus/$corpus" && ls -t | tail -n +2001 | xargs -r rm -f)
done
