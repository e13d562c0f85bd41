#!/bin/sh
# Runs the tests of the release build: run_tests.sh JOBS [CTEST ARGUMENT...]. First those whose result depends on the program
# alone: once. Then those that compare what a probe measured on this machine with a truth (label `measures`): what falls there
# is run up to twice more, since a hypervisor may take the CPU between a truth's clock and a probe's; what passed only when
# repeated is named at the end. Ends with 1 if any test failed.
set -eu
jobs=$1
shift
cd "$(dirname "$0")/.."
none=error
if [ $# -gt 0 ]; then  # a choice may leave one of the two without tests, not both
  none=ignore
  if ctest --test-dir build -N -LE pmu "$@" | grep -q '^Total Tests: 0$'; then
    echo "run_tests: no test is called like this: $*" >&2
    exit 2
  fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --test-dir build -j "$jobs" --output-on-failure --no-tests=$none -LE 'pmu|measures' "$@" || status=1
{ ctest --test-dir build -j "$jobs" --output-on-failure --no-tests=$none -L measures -LE pmu --repeat until-pass:3 "$@" || echo "run_tests: failed"; } | tee "$log"
! grep -q '^run_tests: failed$' "$log" || status=1
repeated=$(sed -nE 's/^.*Test +#[0-9]+: ([^ ]+) .*\*\*\*(Failed|Timeout|Exception|Not Run).*$/\1/p' "$log" | sort -u)
[ -z "$repeated" ] || printf 'Failed at least once, and were repeated:\n%s\n' "$repeated"
exit $status
