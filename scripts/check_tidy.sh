#!/bin/sh
# Runs clang-tidy (.clang-tidy) over a built tree: check_tidy.sh BUILD FOLDER... (analysis reader/dwrf ...), each with the folders
# below it. Folders are parsed together, as they are compiled. Ends with 1 where a check found something.
set -eu
build=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
root=$(pwd)
status=0
for folder in "$@"; do
  sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" | sort -u |
    grep -E "^($build/$folder/.*/Unity/.*\.cxx|$root/$folder/.*\.cc)\$" > "$build/tidy.$$" || true
  if [ ! -s "$build/tidy.$$" ]; then
    rm -f "$build/tidy.$$"
    echo "check_tidy: nothing of $folder is compiled in $build" >&2
    exit 2
  fi
  # Arguments of g++ that clang has not, and its count of warnings in system headers, say nothing.
  xargs -n 1 clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument "--header-filter=^$root/$folder/" \
    < "$build/tidy.$$" 2> "$build/tidy.$$.err" || { status=1; grep -v 'warnings\? .*generated' "$build/tidy.$$.err" >&2 || true; }
  rm -f "$build/tidy.$$" "$build/tidy.$$.err"
done
exit $status
