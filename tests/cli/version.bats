#!/usr/bin/env bats
# headrace --version: what a bug report needs. And the commit in it: looked up at each build, written only when it changed.
load helpers

source_folder() { cd "$BATS_TEST_DIRNAME/../.." && pwd; }
field() { sed -n "s/^$1 *//p" <<< "$output"; }

@test "version, commit, build, features and formats, one a line" {
  run "$HEADRACE" --version
  [ "$status" -eq 0 ]
  version=$(sed -n 's/^project(headrace VERSION \([0-9.]*\).*/\1/p' "$(source_folder)/CMakeLists.txt")
  [ "${lines[0]}" = "headrace $version" ]
  [[ "$(field commit)" =~ ^([0-9a-f]{12}(\+changes)?|unknown)$ ]] || { echo "$output"; false; }
  [ -n "$(field build)" ]
  for feature in bpf io_uring cbc http encryption; do [[ "$(field features)" == *"$feature"* ]] || { echo "no $feature: $output"; false; }; done
  "$HEADRACE" run small.toml --quiet --epochs 1
  [ "$(field 'store schema')" = "$(python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("PRAGMA user_version").fetchone()[0])' "$HEADRACE_DB")" ]
}

@test "the same as one JSON object" {
  "$HEADRACE" --version --json | jq -e '.schema == "headrace.version/1" and (.features | length > 3) and .store_schema > 0 and (.commit | length > 0)'
  run "$HEADRACE" --version --jsn
  one_line_error 2 "--jsn"
}

look_up() { cmake -DSOURCE_DIR="$1" -DOUT="$DIR/commit.h" -P "$(source_folder)/cmake/commit.cmake"; }

@test "outside a checkout the commit is unknown, also within one of another project" {
  for where in . another; do
    mkdir -p "$where/headrace"
    [ "$where" = . ] || git init -q "$where"
    look_up "$PWD/$where/headrace"
    grep -qx '#define HEADRACE_COMMIT "unknown"' commit.h
  done
}

@test "a new commit is seen, and nothing is written where none came" {
  git init -q tree
  cd tree
  echo one > file
  git add file
  git -c user.name=t -c user.email=t@t commit -q -m one
  look_up "$PWD"
  grep -qx "#define HEADRACE_COMMIT \"$(git rev-parse --short=12 HEAD)\"" ../commit.h
  touch -d '2001-01-01' ../commit.h
  look_up "$PWD"
  [ "$(stat -c %Y ../commit.h)" -lt 1000000000 ]
  echo two > file
  look_up "$PWD"
  grep -q '+changes"' ../commit.h
}
