#!/bin/sh
# Fills a folder with what the guests of test-pmu need: Debian's kernels and static libraries, as
# packages, unpacked. The only step that uses the network; apt works in a state folder of its own,
# so that this machine's packages and architectures stay as they are.
#   fetch.sh CACHE
set -eu
[ $# = 1 ] || { echo "usage: fetch.sh CACHE" >&2; exit 2; }
contents=2  # raised when what is unpacked changes: an older cache is filled anew
mkdir -p "$1"
cache=$(cd "$1" && pwd)

# get ARCHITECTURE KERNEL_PACKAGE PACKAGE...: into $cache/ARCHITECTURE/root
get() {
  architecture=$1 meta=$2
  shift 2
  [ "$(cat "$cache/$architecture/complete" 2> /dev/null)" = "$contents" ] && return
  state=$cache/$architecture/apt packages=$cache/$architecture/packages
  rm -rf "${cache:?}/$architecture"
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$packages" "$cache/$architecture/root"
  : > "$state/status"
  apt() {
    command=$1
    shift
    "apt-$command" -q -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
      -o Dir::State="$state" -o Dir::State::Lists="$state/lists" -o Dir::State::Status="$state/status" \
      -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "$@"
  }
  apt get update > /dev/null
  kernel=$(apt cache depends "$meta" | awk '/Depends: linux-image-/ {print $2; exit}')
  [ -n "$kernel" ] || { echo "no kernel package behind $meta" >&2; exit 1; }
  (cd "$packages" && apt get download "$kernel" "$@" > /dev/null)
  for package in "$packages"/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$cache/$architecture/root" \
      --exclude='./usr/share' --exclude='./usr/lib/linux-image-*' \
      --exclude='./lib/modules/*/kernel/[!cdfl]*' --exclude='./lib/modules/*/kernel/drivers/[!bv]*' \
      --exclude='./lib/modules/*/kernel/fs/[!ejm]*'
  done
  rm -rf "$state" "$packages"
  echo "$contents" > "$cache/$architecture/complete"
}

get arm64 linux-image-arm64 libbpf-dev libelf-dev zlib1g-dev libpfm4-dev libfmt-dev
get amd64 linux-image-amd64
echo "fetched: $(ls "$cache"/*/root/boot/vmlinuz-* | tr '\n' ' ')"
