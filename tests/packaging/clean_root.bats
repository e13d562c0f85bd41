#!/usr/bin/env bats
# The packages, the archive and the wheel in a system that has never seen headrace, as its user would install them: it runs the demo,
# records a Python program, and goes without a trace. HEADRACE_PACKAGES has the packages, HEADRACE_WHEELS the wheel.
#
# Every test has a copy of the system. Made once: Debian 12, for which the packages are, Debian 11, whose C library is older, and Debian
# 14 (forky), which has CPython 3.14.

load system.bash

program() {
  cat > "$ROOT/root/train.py" <<'PYTHON'
import multiprocessing
import time


def load(index):
    time.sleep(0.02)
    return [index] * 8


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        for batch in pool.imap(load, range(200)):
            time.sleep(0.001)
PYTHON
}

@test "the Debian packages install in Debian 12 with what they need, work, and leave nothing when purged" {
  [ -n "$(ls "$HEADRACE_PACKAGES"/headrace_*.deb 2> /dev/null)" ] || skip "no packages: dpkg-deb or dpkg-shlibdeps is missing here"
  system bookworm
  installed_and_purged "$HEADRACE_PACKAGES"/headrace_*.deb "$HEADRACE_PACKAGES"/libheadrace-account1_*.deb
}

@test "the archive runs in Debian 11 without any package, as nobody in particular" {
  ls "$HEADRACE_PACKAGES"/headrace-*.tar.gz > /dev/null 2>&1 || skip "no archive here: make package"
  older_libc_or_skip
  system bullseye
  tar -xzf "$HEADRACE_PACKAGES"/headrace-*.tar.gz -C "$ROOT/opt" --no-same-owner
  inside 'useradd -m someone'
  inside 'cd /home/someone && setpriv --reuid someone --regid someone --clear-groups /opt/headrace-*/bin/headrace demo --duration 4s' \
    > "$BATS_TEST_TMPDIR/demo" 2>&1 || { cat "$BATS_TEST_TMPDIR/demo"; false; }
  judged fetch demo
}

# Where the mirror had no older C library, program and wheel are linked with this machine's, as the wheel's tag says.
older_libc_or_skip() { ! ls "$HEADRACE_WHEELS" | grep -qE 'manylinux_2_3[2-9]' || skip "linked with this machine's C library"; }

wheel_works_in() {
  [ -n "$(ls "$HEADRACE_WHEELS"/headrace-*.whl 2> /dev/null)" ] || skip "no wheel here: make wheel"
  [ "$1" != bullseye ] || older_libc_or_skip
  system "$1"
  cp "$HEADRACE_WHEELS"/headrace-*.whl "$ROOT/tmp/"
  inside 'python3 -m venv new && new/bin/pip install -q --no-index /tmp/headrace-*.whl'
  demo new/bin/headrace
  inside 'new/bin/python -m headrace --version' | grep -q '^headrace '
  program
  # Without a change to the program, and without activating the environment: the hook is found by where the executable lies.
  inside 'new/bin/headrace profile -q --db run.db -- new/bin/python train.py; new/bin/headrace report --db run.db latest' \
    > "$BATS_TEST_TMPDIR/page" 2>&1 || { cat "$BATS_TEST_TMPDIR/page"; false; }
  grep -q 'Pool ×2' "$BATS_TEST_TMPDIR/page" || { cat "$BATS_TEST_TMPDIR/page"; false; }  # by its name: the hook has seen it
  judged 'Pool, operator load' page
  inside 'cd new && bin/python -c "import headrace, sys; sys.exit(0 if \"Pool\" in headrace.report(db=\"/root/run.db\").text else 1)"'
  inside 'rm -rf run.db*; new/bin/pip uninstall -q -y headrace; ! find new -name "*headrace*" | grep .'
}

@test "the wheel works in an empty environment of Debian 12" { wheel_works_in bookworm; }
@test "the wheel works in an empty environment of Debian 11, whose C library is older" { wheel_works_in bullseye; }
@test "the wheel works in an empty environment of Debian 14, whose CPython is 3.14 or later" {
  wheel_works_in forky
  inside 'python3 -c "import sys; sys.exit(sys.version_info < (3, 14))"'
}
