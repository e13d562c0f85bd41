#!/usr/bin/env bats
# As readme.bats: the examples of some commands' --help.
load helpers

lines() { HEADRACE=$(realpath "$HEADRACE") python3 "$BATS_TEST_DIRNAME/examples.py" run "$BATS_FILE_TMPDIR" "$@"; }

@test "the examples of headrace --help, and of commands from apply to doctor, run" { lines a..d; }
