#!/bin/sh
# Runs the tests of a build: run_tests.sh BUILD JOBS [CTEST ARGUMENT...]. All of them once, JOBS at a time; those that must be
# alone are (RUN_SERIAL). Left out are those with the label `pmu`, which need machines of their own, those with the label
# `release` in the build of a sanitizer, and those with the label `ci` unless HEADRACE_CI is set, where those with the label
# `long` (packages in empty systems, Slurm, the site, clang-tidy) are left out instead. With HEADRACE_LONG neither of the two is.
# Of what fell, tests whose result
# depends on the program alone have failed. Those that compare what a probe measured on this machine with a truth (label
# `measures`) are run up to twice more with nothing beside them, since neighbours and a hypervisor may take the CPU between a
# truth's clock and a probe's; they are named at the end. So are those that had no end in their time (tests/cli/watched.py),
# unless something in them failed before. Ends with 1 if any test failed.
set -eu
build=$1 jobs=$2
shift 2
cd "$(dirname "$0")/.."
case $build in build) others=pmu ;; *) others='release|pmu' ;; esac
if [ -z "${HEADRACE_LONG:-}" ]; then
  if [ -n "${HEADRACE_CI:-}" ]; then others="$others|long"; else others="$others|ci"; fi
fi
if ctest --test-dir "$build" -N -LE "$others" "$@" | grep -q '^Total Tests: 0$'; then
  echo "run_tests: no test is called like this: $*" >&2
  exit 2
fi
failures=$build/Testing/Temporary/LastTestsFailed.log
rm -f "$failures"
if ctest --test-dir "$build" -j "$jobs" --output-on-failure -LE "$others" "$@"; then exit 0; fi
if [ ! -s "$failures" ]; then exit 1; fi  # ctest itself failed
log=$build/Testing/Temporary/FirstTest.log
cp "$build/Testing/Temporary/LastTest.log" "$log"  # the repeats write another
# Lines are NUMBER:NAME; a name's dots, slashes and signs are to stand for themselves.
names=$(sed -E 's/^[0-9]+://; s/[].*+?()^$|\[]/\\&/g' "$failures" | paste -sd '|')
[ -n "$names" ] || exit 1
failed() { ctest --test-dir "$build" -N -R "^($names)\$" "$@" | sed -n 's/^  Test *#[0-9]*: //p'; }
# What failed said last, again: of a long log the end is read. What passed in a bats file is left out.
said() {
  printf '%s\n' "$1" | while IFS= read -r name; do
    printf '  %s:\n' "$name"
    awk -v name="$name" '/^[0-9]+\/[0-9]+ Test: / { own = substr($0, index($0, "Test: ") + 6) == name; next }
      own && !/^ok / { print "    " $0 }' "$log" | tail -40
  done
}
# Had no end in its time, and no failure until then: see its own part of the log.
endless() {
  awk '/^[0-9]+\/[0-9]+ Test: / { name = substr($0, index($0, "Test: ") + 6); failed = 0 } /^not ok / { failed = 1 }
    /^# watched: not at its end/ { if (!failed) print name }' "$log"
}
status=0
lasting=$(failed -LE measures | grep -vxF "$(endless)" || true)
repeated=$({ failed -L measures; endless; } | sort -u)
if [ -n "$repeated" ]; then
  echo "run_tests: what measures or had no end, and failed, is repeated, with nothing beside it"
  again=$(printf '%s\n' "$repeated" | sed -E 's/[].*+?()^$|\[]/\\&/g' | paste -sd '|')
  ctest --test-dir "$build" -j 1 --output-on-failure --repeat until-pass:2 -R "^($again)\$" || status=1
  printf 'Failed beside others, and were repeated:\n'
  said "$repeated"
fi
if [ -n "$lasting" ]; then
  printf 'Failed:\n'
  said "$lasting"
  status=1
fi
exit $status
