# Shared by the tests of the preprocessing service: a folder and a job for each test, processes in the background.
setup() {
  cd "$BATS_FILE_TMPDIR"
  DIR=$BATS_TEST_TMPDIR
  JOB=$DIR/job
  unset HEADRACE_TOKEN HEADRACE_TOKEN_FILE
}

teardown() {
  [ -z "$STARTED" ] || kill -9 $STARTED 2> /dev/null || true
}

# start NAME COMMAND...: in the background; its pid in $NAME, its output in NAME.out and NAME.err.
start() {
  local name=$1
  shift
  "$HEADRACE" "$@" > "$DIR/$name.out" 2> "$DIR/$name.err" < /dev/null 3>&- &
  eval "$name=$!"
  STARTED="$STARTED $!"
}

# Waits until a condition holds, half a minute at least.
until_true() {
  for _ in $(seq 600); do
    if eval "$1"; then return 0; fi
    sleep 0.05
  done
  echo "never: $1"
  return 1
}
