#!/usr/bin/env bats
# Names chosen by others reach every page, line and error. None of them may make a terminal do anything: no control character
# but line ends, no mark of writing direction, nothing without width, no invalid UTF-8.
load helpers

# What every name here holds: ESC (clear screen, title), C1 CSI, DEL, tab, line end, carriage return, directions, zero width,
# a byte that is no UTF-8.
NAME=$'evil\e[2J\e]0;x\a\u009b31m\x7f\t\r\n\u202e\u2066\u200f\u061c\u200b\xff'

# obeyed FILE...: fails where a file holds what a terminal obeys. Line ends are allowed.
obeyed() {
  python3 - "$@" <<'PY'
import sys
bad = []
for path in sys.argv[1:]:
    data = open(path, "rb").read()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        bad.append(f"{path}: {error}")
        text = data.decode(errors="replace")
    for at, c in enumerate(text):
        n = ord(c)
        if (n < 0x20 and c != "\n") or 0x7f <= n <= 0x9f or n in (0x61c, 0xfeff) or 0x200b <= n <= 0x200f or \
                0x2028 <= n <= 0x202e or 0x2060 <= n <= 0x2069:
            bad.append(f"{path}: U+{n:04X} after {text[max(0, at - 40):at]!r}")
            break
print("\n".join(bad))
sys.exit(1 if bad else 0)
PY
}

# quiet EXPECTED COMMAND...: runs headrace, whatever it prints must be harmless; its exit code one of EXPECTED ("0,5").
harmless() {
  local expected=$1 code=0
  shift
  "$HEADRACE" "$@" > h.out 2> h.err || code=$?
  [[ ",$expected," == *",$code,"* ]] || { echo "exit $code: headrace $(printf '%q ' "$@")"; cat h.err; return 1; }
  obeyed h.out h.err || { echo "in: headrace $(printf '%q ' "$@")"; return 1; }
}

@test "a hostile run, tag, pipeline and database reach no terminal" {
  sed "s/name = \"small\"/name = \"evil\\\\u001B[2J\\\\u009B31m\\\\u202E\"/; s/name = \"parse\"/name = \"pa\\\\u009B\\\\u202Ese\"/" small.toml > evil.toml
  harmless 0,2 run evil.toml --name "$NAME" --duration 1s
  "$HEADRACE" run small.toml --quiet --name "$NAME" --duration 1s 2> /dev/null
  id=$("$HEADRACE" runs --json | jq .runs[-1].run_id)
  harmless 0 runs tag "$id" "$NAME"
  harmless 0 runs
  [ "$(wc -l < h.out)" -le 3 ]  # no name ends a line
  grep -qF 'evil\x1b[2J' h.out
  harmless 0 runs --json
  [ "$(jq -r .runs[-1].name h.out | head -c 8)" = $'evil\e[2J' ]  # JSON keeps the string
  for format in text md html json; do harmless 0,4 report "$id" --format $format; done
  harmless 0,4 plan "$id"
  harmless 0,4 plan "$id" --json
  harmless 0,4 report "$NAME"
  harmless 2,5 report "no $NAME"
  harmless 2,4,5 compare "no $NAME" "$NAME"
  cp runs.db "$NAME.db"
  harmless 0 runs --db "$NAME.db"
  harmless 0,4 report "$id" --db "$NAME.db"
  harmless 0 runs copy "$id" -o "copy $NAME.db"
  harmless 5 runs --db "no $NAME.db"
}

@test "query: headers and fields of a table; of CSV, in files and on terminals" {
  harmless 0 run small.toml --level 1 --quiet
  harmless 0 query --format table "SELECT 'x' AS \"$NAME\""
  harmless 0 query --format table "SELECT '$NAME' AS a, 1 AS b"
  [ "$(wc -l < h.out)" -eq 2 ]
  harmless 0 query --json "SELECT '$NAME' AS \"$NAME\""
  harmless 2 query "SELECT '$NAME' FROM \"$NAME\""
  # Fields in a file or a pipe are data and stay as they are; the header line never needs to be.
  harmless 0 query --format csv "SELECT 'x' AS \"$NAME\""
  FIELD=$'\e[2J\u009b\u202e'
  [ "$("$HEADRACE" query --format csv "SELECT '$FIELD' AS a" | tail -n +2)" = "$FIELD" ]
  # On a terminal they are names like any other.
  python3 - "$HEADRACE" "SELECT '$FIELD' AS a" > tty.out <<'PY'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "query", "--format", "csv", sys.argv[2]])
data = b""
try:
    while part := os.read(terminal, 4096):
        data += part
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(data.replace(b"\r\n", b"\n"))
PY
  obeyed tty.out
  grep -qF '\u009b' tty.out
}

@test "columns, keys, metadata and file names of a table" {
  [ -x "${DAMAGE:-$BATS_TEST_DIRNAME/../../build/damage}" ] || skip "no executable damage: DAMAGE names it"
  "$HEADRACE" generate rm1 -o t --rows 512 --features 0.004 --seed 3 2> /dev/null
  mkdir "$NAME"
  "${DAMAGE:-$BATS_TEST_DIRNAME/../../build/damage}" rename t/part-00000.dwrf "$NAME/part-00000.dwrf" "$NAME"
  f="$NAME/part-00000.dwrf"
  for more in "" --json --streams --verify; do harmless 0,5 inspect "$f" $more; done
  for more in "" --json --features; do harmless 0 layout "$NAME" $more; done
  harmless 0 cat "$f" --limit 3
  [ "$(head -1 h.out | jq -r 'keys_unsorted[0]' | head -c 4)" = hex: ]  # no UTF-8, no JSON string
  "${DAMAGE:-$BATS_TEST_DIRNAME/../../build/damage}" rename t/part-00000.dwrf utf8.dwrf "${NAME%?}"
  harmless 0 cat utf8.dwrf --limit 3
  [ "$(head -1 h.out | jq -r 'keys_unsorted[0]')" = "${NAME%?}0" ]  # JSON keeps the string
  harmless 0 cat "$f" --limit 3 --format canonical
  harmless 2 cat "$f" --columns "$NAME"
  harmless 2 layout "$NAME" --projection "$NAME[1]"
  harmless 0 rewrite "$NAME" -o "again $NAME"
  harmless 0,2 generate rm1 -o "made $NAME" --rows 512 --features 0.004
  printf 'x = "%s"\n' bad > "$NAME.toml"
  harmless 2 run "$NAME.toml"
  harmless 2,5 run "none $NAME.toml"
  truncate -s 100 "$f"
  for command in inspect cat layout; do harmless 5 $command "$f"; done
}

@test "commands and options" {
  harmless 2 "$NAME"
  harmless 2 runs "--$NAME"
  harmless 2 runs --db
  harmless 2 report --format "$NAME"
  harmless 2 run small.toml --set "$NAME=1"
  harmless 2 run small.toml --duration "$NAME"
}

@test "processes and operators of other programs" {
  cp "$(command -v sleep)" "./evil"$'\e'"[2J"$'\u009b'
  harmless 0,1 profile --name "$NAME" -- "./evil"$'\e'"[2J"$'\u009b' 2
  id=$("$HEADRACE" runs --json | jq .runs[-1].run_id)
  harmless 0,4 report "$id" --format text
  harmless 0,4 report "$id" --format md
  harmless 0 runs
  command -v cc > /dev/null || skip "no C compiler for a program with accounts"
  sed -E "s/\"(read|decode)\"/\"\\1\\\\033[2J\\\\xc2\\\\x9b\\\\n\\\\xe2\\\\x80\\\\xae\\\\xff\"/g" "$BATS_TEST_DIRNAME/../../docs/examples/reader.c" > reader.c
  grep -qF '\033[2J' reader.c
  mkdir include && ln -s "$(realpath "$BATS_TEST_DIRNAME/../../probes/account")" include/headrace
  cc -std=c11 -O1 -Iinclude reader.c -o reader -lpthread
  harmless 0,1 profile --name operators -- ./reader 3
  for format in text md html json; do harmless 0,4 report latest --format $format; done
  harmless 0,4,5 plan latest
  harmless 0 query "SELECT operator FROM operator_summary"
}
