#!/bin/sh
# Installs the Debian packages that are missing, and those named after it; asks nothing. Does nothing when all are there.
set -eu
packages="build-essential cmake ninja-build ccache pkg-config git clang libclang-rt-14-dev clang-format clang-tidy
  libboost-dev libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libsqlite3-dev
  libprotobuf-dev protobuf-compiler libzstd-dev zlib1g-dev libdeflate-dev liblz4-dev libsnappy-dev libxxhash-dev libssl-dev liburing-dev libcurl4-openssl-dev
  coinor-libcbc-dev esbuild libgtest-dev libgmock-dev libbenchmark-dev bats jq python3
  libncurses-dev llvm libbpf-dev libelf-dev libpfm4-dev libgfortran-12-dev unzip $*"
missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get > /dev/null; then
  echo "setup: needs Debian packages:$missing; install them and run make again" >&2
  exit 1
fi
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
echo "setup: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends $missing > /dev/null
