#!/usr/bin/env bats
# What headrace shows to people runs as it is written: each `headrace` line of README.md and docs/index.md, and each example of
# every command's --help. tests/cli/examples.py has the exceptions, with reasons.
load helpers

setup_file() {
  export HEADRACE=${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}
  python3 "$BATS_TEST_DIRNAME/examples.py" prepare "$BATS_FILE_TMPDIR/prepared"
}
lines() { python3 "$BATS_TEST_DIRNAME/examples.py" "$1" "$BATS_FILE_TMPDIR/prepared" "${@:2}"; }

@test "the command lines of README.md run" { lines run README.md; }
@test "the command lines of docs/index.md run" { lines run docs/index.md; }
@test "the examples of headrace --help, and of commands from cat to generate, run" { lines run a..g; }
@test "the examples of commands from inspect to query run" { lines run h..q; }
@test "the examples of commands from report to tune run" { lines run r..z; }
@test "no exception is left over" { lines stale; }
@test "every link of the documents leads to a file, and docs/index.md lists every document" { lines links; }
