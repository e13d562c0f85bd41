#!/usr/bin/env bats
# What headrace shows to people runs as it is written: each `headrace` line of README.md and docs/index.md, and each example of
# every command's --help (readme_*.bats). tests/cli/examples.py has the exceptions, with reasons.
load helpers

lines() { HEADRACE=$(realpath "$HEADRACE") python3 "$BATS_TEST_DIRNAME/examples.py" run "$BATS_FILE_TMPDIR" "$@"; }

@test "the command lines of README.md run" { lines README.md; }
@test "the command lines of docs/index.md run" { lines docs/index.md; }
@test "no exception is left over" { python3 "$BATS_TEST_DIRNAME/examples.py" stale; }
@test "every link of the documents leads to a file, and docs/index.md lists every document" {
  python3 "$BATS_TEST_DIRNAME/examples.py" links
}
