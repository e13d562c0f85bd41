# Shared by the CLI tests. HEADRACE is the executable; each test has its own folder and database.
setup() {
  HEADRACE=${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}
  DIR=$(mktemp -d)
  cd "$DIR"
  export HEADRACE_DB=$DIR/runs.db NO_COLOR=1
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
teardown() { rm -rf "$DIR"; }

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
