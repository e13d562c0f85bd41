# Shared by the CLI tests. HEADRACE is the executable; each test has its own folder and database.
setup() {
  HEADRACE=${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}
  DIR=$(mktemp -d)
  cd "$DIR"
  export HEADRACE_DB=$DIR/runs.db NO_COLOR=1 HEADRACE_CONFIG=
  small_pipeline
}
teardown() { rm -rf "$DIR"; }

# small_pipeline: small.toml in this folder.
small_pipeline() {
  cat > small.toml <<'TOML'
pipeline = { name = "small" }
source = { synthetic = { elements = 40, rows = 8 } }
consumer = { step = "1ms" }
stage = [
  { name = "load", operators = [{ sleep = "1ms" }] },
  { name = "parse", operators = [{ spin = "1ms" }] },
]
TOML
}

# What the tests of one file need alike is made once, in `setup_file`: `prepare COMMAND...` runs a function in the folder of the
# file, with small.toml and a database there; `take` gives a test a copy of that database and of what else is named.
prepare() {
  HEADRACE=${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}
  cd "$BATS_FILE_TMPDIR"
  small_pipeline
  HEADRACE_DB=$BATS_FILE_TMPDIR/runs.db NO_COLOR=1 HEADRACE_CONFIG= "$@"
}
take() {
  cp "$BATS_FILE_TMPDIR"/runs.db* .
  for name in "$@"; do cp -r "$BATS_FILE_TMPDIR/$name" .; done
}

# A run in which one stage sleeps six times as long as the others work, so that it limits on any machine, however loaded:
# recorded once for all files, by recorded.sh. Its pipeline file is $RECORDED/small.toml; `take_recorded` copies its database,
# where it is run `first`.
RECORDED=${HEADRACE_RECORDED:-$(dirname "${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}")/recorded}
make_recorded() {
  HEADRACE=${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace} sh "$BATS_TEST_DIRNAME/recorded.sh" "$RECORDED" || [ $? -eq 77 ]
}
take_recorded() {
  [ -e "$RECORDED/runs.db" ] || skip "other programs kept the cores while this was to be recorded"
  cp "$RECORDED/runs.db" "$HEADRACE_DB"
}

# one_line_error CODE PATTERN: the last `run` ended with CODE and one line on standard error that matches PATTERN.
one_line_error() {
  [ "$status" -eq "$1" ] || { echo "exit $status, expected $1: $output"; return 1; }
  [ "$(printf '%s\n' "$output" | wc -l)" -eq 1 ] || { echo "more than one line: $output"; return 1; }
  [[ "$output" =~ $2 ]] || { echo "does not match '$2': $output"; return 1; }
}

# until_true SECONDS COMMAND...: waits until the command succeeds, which takes SECONDS at most on a quiet machine; fails after ten
# times as long, which only a hang needs. How long a start takes is the machine's affair, so tests wait for what they need instead
# of sleeping.
until_true() {
  local left=$(($1 * 200))
  shift
  until "$@" > /dev/null 2>&1; do
    [ $((left -= 1)) -gt 0 ] || { echo "still not true: $*"; return 1; }
    sleep 0.05
  done
}
# The newest run is of this state: recording, complete, interrupted, ...
newest_run_is() { [ "$("$HEADRACE" runs --json | jq -r '.runs[0].state')" = "$1" ]; }
# Steps of the newest run are in the store: its recording works.
has_steps() { [ "$("$HEADRACE" query --format csv 'SELECT steps_count FROM step_summary ORDER BY run_id DESC LIMIT 1' | tail -n 1)" -gt 0 ]; }

# Tests whose outcome is a speed: a ThreadSanitizer makes code many times slower, code of one stage more than of another, and its
# own thread is seen beside the program's.
recorded_alone() {
  jq -e '.resources.cores_used_by_others < 0.3' "$RECORDED/report.json" > /dev/null || skip "recorded beside other programs: $(cat "$RECORDED/said")"
}
not_slowed() { ! "$HEADRACE" --version | grep -q 'sanitizers: .*thread' || skip "under ThreadSanitizer speeds are not the program's"; }
