# Copies of Debian systems that have never seen headrace, for tests that install it as its user would. HEADRACE_PACKAGES is a folder of
# packages; the systems are beside it.
ROOTS=${HEADRACE_ROOTS:-$(dirname "$HEADRACE_PACKAGES")/roots}

ROOT=
teardown() { [ -z "$ROOT" ] || rm -rf "$ROOT"; }

# system SUITE [ARCH]: a new copy, $ROOT.
system() {
  mkdir -p "$ROOTS"
  made=$ROOTS/$1${2:+-$2}
  run sh "$BATS_TEST_DIRNAME/root.sh" make "$1" "$made" ${2:+"$2"}
  [ "$status" -ne 77 ] || skip "$output"
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  ROOT=$(mktemp -d "$ROOTS/copy.XXXXXX")
  cp -a "$made/root/." "$ROOT"
}

inside() { sh "$BATS_TEST_DIRNAME/root.sh" in "$ROOT" sh -euc "cd /root; $1"; }

# Files of the system outside of what apt and dpkg keep for themselves.
files() { (cd "$ROOT" && find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/cache -o -path ./var/log \
  -o -path ./var/lib/apt -o -path ./var/lib/dpkg \) -prune -o -print | sort); }

# The demo's page names the limit that is built into it. Where other programs take the cores, it says so, and another limit may be true.
judged() { grep -q "limit .*$1" "$BATS_TEST_TMPDIR/$2" || { grep -q 'BUSY MACHINE' "$BATS_TEST_TMPDIR/$2" && grep -q 'limit  ' "$BATS_TEST_TMPDIR/$2"; } ||
  { cat "$BATS_TEST_TMPDIR/$2"; false; }; }

# demo PROGRAM: the demo there, judged by $LIMIT if that is given.
demo() {
  inside "$1 demo --duration 4s" > "$BATS_TEST_TMPDIR/demo" 2>&1 || { cat "$BATS_TEST_TMPDIR/demo"; false; }
  judged "${LIMIT:-fetch, operator storage_latency}" demo
}

# installed_and_purged DEB...: the packages install with what they need, the demo runs, and purging leaves nothing.
installed_and_purged() {
  files > "$BATS_TEST_TMPDIR/before"
  cp "$@" "$ROOT/tmp/"
  run inside 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /tmp/*.deb'
  [ "$status" -eq 0 ] || { echo "$output" | grep -q 'Could not resolve\|Failed to fetch' && skip "apt reaches no mirror from there"; echo "$output"; false; }
  demo headrace
  inside 'rm -rf headrace-demo headrace.db*; apt-get purge -y -qq headrace libheadrace-account1 && apt-get autoremove --purge -y -qq' > /dev/null
  files > "$BATS_TEST_TMPDIR/after"
  # ldconfig's cache, which any package of a library changes, is in both.
  diff "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
}
