#!/bin/sh
# Counters and BPF programs in emulated machines: installs QEMU and the cross compiler if they are
# missing, fetches Debian's kernels once, builds, runs the tests of label pmu.
#   test_pmu.sh [CTEST_ARGUMENT...]   HEADRACE_PMU_CACHE: where packages are kept (~/.cache/headrace/pmu)
# Where that cannot be had, says why and ends with 0: nothing was tested.
set -eu
cd "$(dirname "$0")/.."
cache=${HEADRACE_PMU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headrace/pmu}
export HEADRACE_PMU_CACHE="$cache"
skip() {
  echo "test-pmu: skipped: $*"
  exit 0
}

packages="qemu-system-arm qemu-system-x86 g++-aarch64-linux-gnu binutils-aarch64-linux-gnu e2fsprogs util-linux"
missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
  command -v apt-get > /dev/null || skip "needs Debian packages:$missing"
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo -n"
  echo "test-pmu: installing$missing" >&2
  export DEBIAN_FRONTEND=noninteractive
  { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends $missing; } > /dev/null ||
    skip "these packages could not be installed:$missing"
fi
sh tests/pmu/fetch.sh "$cache" || skip "Debian's kernels could not be fetched into $cache"
cmake --preset release -DHEADRACE_TESTS=ON > /dev/null
cmake --build --preset release --target probes_test headrace stack_target_with stack_target_without
python3 tests/pmu/emulated_pmu.py build --build
echo "test-pmu: four guests, about two minutes"
status=0
ctest --test-dir build -V --no-tests=error -L pmu "$@" > build/pmu/report.txt 2>&1 || status=$?
grep -v -E '^[0-9]+: (Test command|Working Directory|Test timeout)|^(UpdateCTest|test [0-9]|Test project)' build/pmu/report.txt |
  sed -e 's/^[0-9]*: //' -e '/./,$!d'
exit "$status"
