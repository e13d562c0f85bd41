#!/usr/bin/env bats
# headrace tune --feed, and tuning a process of somebody else's by a command: docs/examples/tunable.c, whose one decoding
# thread takes 8 ms for a batch that its consumer uses for 2 ms.

load helpers

setup_file() {
  local here="$BATS_TEST_DIRNAME/../.."
  mkdir "$BATS_FILE_TMPDIR/include"
  ln -s "$(realpath "$here/probes/account")" "$BATS_FILE_TMPDIR/include/headrace"
  cc -std=c11 -Wall -Wextra -Werror -O2 -I "$BATS_FILE_TMPDIR/include" "$here/docs/examples/tunable.c" -o "$BATS_FILE_TMPDIR/tunable" -lpthread
}

setup() {
  cd "$BATS_TEST_TMPDIR"
  cat > set.sh <<'END'
#!/bin/sh
cat > told.json
env | grep ^HEADRACE_ | sort > told.env
echo "$HEADRACE_KNOB_DECODE_PARALLELISM $HEADRACE_KNOB_DECODE_QUEUE" > settings.new && mv settings.new settings.txt
END
  chmod +x set.sh
  "$BATS_FILE_TMPDIR/tunable" 120 settings.txt 3>&- &
  pipeline=$!
}

teardown() { kill "$pipeline" 2> /dev/null || true; }

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }

@test "a process of somebody else's is tuned by a command, and each decision is a line" {
  timeout 900 "$HEADRACE" tune -p "$pipeline" --apply-cmd ./set.sh --knob decode.parallelism --feed - 3>&- > feed.ndjson
  # Four threads make what the consumer takes; more are of no use.
  read -r threads queue < settings.txt
  [ "$threads" -ge 4 ]
  [ "$threads" -le 7 ]
  jq -es 'all(.schema == "headrace.decision/1") and any(.action == "apply" and .verdict == "kept" and .effect_ratio > 1)' feed.ndjson
  while read -r line; do
    echo "$line" > one.json
    fits_schema decision one.json
  done < feed.ndjson
  # What the command was told.
  fits_schema decision told.json
  grep "^HEADRACE_PID=$pipeline\$" told.env
  grep '^HEADRACE_CHANGED=decode.parallelism$' told.env
  grep -E '^HEADRACE_KNOB_DECODE_PARALLELISM=[0-9]+$' told.env
  grep '^HEADRACE_KNOB_DECODE_QUEUE=2$' told.env
  # Stored as told.
  "$HEADRACE" tune --explain latest --json | jq -e '.decisions | length > 0'
  kill -0 "$pipeline"
}

@test "a command that fails is tried again, then the decision has failed and the process is left as it was" {
  cat > fails.sh <<'END'
#!/bin/sh
echo once >> tries
exit 3
END
  chmod +x fails.sh
  run timeout 900 "$HEADRACE" tune -p "$pipeline" --apply-cmd ./fails.sh --json 3>&-
  [ "$(wc -l < tries)" -eq 3 ]
  [ ! -e settings.txt ]
  "$HEADRACE" tune --explain latest --json | jq -e '.decisions | any(.verdict == "failed")'
  kill -0 "$pipeline"
}

@test "a command that does not end is ended" {
  run timeout 900 "$HEADRACE" tune -p "$pipeline" --apply-cmd 'sleep 1000' --apply-timeout 200ms 3>&-
  [[ "$output" == *"did not end within 200 ms"* ]]
}

@test "readers of a socket get the last decision first, and the socket is gone at the end" {
  cat > read.py <<'END'
import socket, sys, time
for _ in range(600):
    try:
        s = socket.socket(socket.AF_UNIX)
        s.connect("feed.sock")
        break
    except OSError:
        time.sleep(0.05)
with open(sys.argv[1], "wb") as out:
    while data := s.recv(65536):
        out.write(data)
END
  python3 read.py first.ndjson 3>&- &
  first=$!
  timeout 900 "$HEADRACE" tune -p "$pipeline" --apply-cmd ./set.sh --feed unix:feed.sock -q 3>&- &
  tuner=$!
  for _ in $(seq 600); do if [ -s first.ndjson ] || [ -s settings.txt ]; then break; fi; sleep 0.1; done
  python3 read.py second.ndjson 3>&- &
  second=$!
  wait "$tuner" "$first" "$second"
  [ ! -e feed.sock ]
  # The second came after the first decision, and ends like the first.
  [ "$(tail -n 1 first.ndjson)" = "$(tail -n 1 second.ndjson)" ]
  jq -es 'all(.schema == "headrace.decision/1")' second.ndjson
  [ "$(tail -n 1 second.ndjson | jq -r .action)" = stop ]
}

refused() {  # CODE WORDS ARGUMENTS...
  local code=$1 words=$2
  shift 2
  run timeout 900 "$HEADRACE" tune "$@" 3>&-
  [ "$status" -eq "$code" ]
  [[ "$output" == *"$words"* ]]
}

@test "what cannot be is refused before anything is recorded" {
  refused 2 "say what sets the knobs" -p 1
  refused 2 "not a place to write to" -p "$pipeline" --apply-cmd ./set.sh --feed nowhere
  refused 2 "names no socket" -p "$pipeline" --apply-cmd ./set.sh --feed unix:
  refused 2 "both want standard output" -p "$pipeline" --apply-cmd ./set.sh --feed - --json
  refused 2 "not both" -p "$pipeline" --apply-cmd ./set.sh some.toml
  refused 2 "--pid" --apply-cmd ./set.sh some.toml
  refused 5 "no such process" -p 2147483646 --apply-cmd ./set.sh
  [ ! -e headrace.db ]
  refused 2 "decode.parallelism, decode.queue" -p "$pipeline" --apply-cmd ./set.sh --knob nothing.parallelism
}

@test "ended while it compares, the process is left at what was kept" {
  # Ended right behind the first change, which nobody has verified yet.
  cat > ends.sh <<'END'
#!/bin/sh
echo "$HEADRACE_KNOB_DECODE_PARALLELISM" >> turned
./set.sh
[ "$(wc -l < turned)" -gt 1 ] || kill -INT "$TUNER"
END
  chmod +x ends.sh
  run timeout 900 "$HEADRACE" tune -p "$pipeline" --apply-cmd "TUNER=\$PPID ./ends.sh" --knob decode.parallelism --json 3>&-
  [ "$status" -eq 130 ]
  [ "$(wc -l < turned)" -eq 2 ]
  [ "$(sed -n 1p turned)" -gt 1 ]
  [ "$(sed -n 2p turned)" -eq 1 ]
  read -r threads queue < settings.txt
  [ "$threads" -eq 1 ]
  "$HEADRACE" tune --explain latest --json | jq -e '.decisions | any(.verdict == "superseded") and any(.action == "revert" and .applied_ns != null)'
  kill -0 "$pipeline"
}
