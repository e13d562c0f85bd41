#!/bin/sh
# Builds these targets under ThreadSanitizer, in build-tsan: build_tsan.sh TARGET...
set -eu
cd "$(dirname "$0")/.."
cmake --preset tsan > /dev/null
cmake --build --preset tsan -j "$(nproc)" --target "$@"
