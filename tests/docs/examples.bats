#!/usr/bin/env bats
# The command lines of the documents run as they are written, like those of README.md and --help (tests/cli/readme*.bats, whose
# examples.py this uses and which has the exceptions, with reasons).

EXAMPLES=$BATS_TEST_DIRNAME/../cli/examples.py

lines() { HEADRACE=$(realpath "$HEADRACE") python3 "$EXAMPLES" run "$BATS_TEST_TMPDIR" "$@"; }

# Of a document that begins with a letter from $1 to $2; index.md is readme.bats' affair.
between() {
  documents=
  for document in "$BATS_TEST_DIRNAME"/../../docs/*.md; do
    name=$(basename "$document")
    [[ $name = index.md || ! $name =~ ^[$1-$2] ]] || ! grep -q '^headrace ' "$document" || documents="$documents docs/$name"
  done
  lines $documents
}

@test "the command lines of documents from a to c run" { between a c; }
@test "the command lines of documents from d to r run" { between d r; }
@test "the command lines of documents from s to z run" { between s z; }
