#!/bin/sh
# Fails, naming the lines, where C and C++ files are not as .clang-format has it. Exit code 77: no clang-format of version 14,
# the one of Debian 12, here; others format differently.
set -eu
cd "$(dirname "$0")/.."
clang-format --version 2> /dev/null | grep -q 'version 14\.' || {
  echo "check_format: clang-format 14 is not installed" >&2
  exit 77
}
find base probes collectors reader analysis dashboards workloads experiments cli tests docs/examples \
  -name '*.h' -o -name '*.cc' -o -name '*.c' | sort | xargs -P 2 -n 40 clang-format --dry-run -Werror
