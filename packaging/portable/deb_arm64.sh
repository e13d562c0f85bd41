#!/bin/sh
# Debian packages for 64-bit ARM: deb_arm64.sh PACKAGES BUILD OUTPUT
#
# They are the packages of this machine (in PACKAGES) with the portable program and library of BUILD (build-arm64, by
# `make wheel ARCH=aarch64`) in place of its own. The program needs no library but the C library's, so they install on any Debian that
# has one of that age. Everything else in a package is the same on all processors.
set -eu
packages=$(realpath "$1") build=$(realpath "$2") output=$3
here=$(cd "$(dirname "$0")" && pwd)
portable=$build/packaging/portable/bin
for file in headrace libheadrace_account.so.1; do
  [ -e "$portable/$file" ] || { echo "deb_arm64: no $portable/$file; make wheel ARCH=aarch64 makes it" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$output"

# oldest_libc FILE: the newest version of the C library that it has symbols of, "2.30".
oldest_libc() { readelf -VW "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1; }

for name in headrace libheadrace-account1 libheadrace-account-dev; do
  deb=$(ls "$packages/$name"_*_"$(dpkg --print-architecture)".deb) || { echo "deb_arm64: no package $name in $packages; make package" >&2; exit 1; }
  root=$work/$name
  dpkg-deb --raw-extract "$deb" "$root"
  depends=$(sed -n 's/^Depends: //p' "$root/DEBIAN/control")
  case $name in
    headrace)
      aarch64-linux-gnu-strip --strip-debug -o "$root/usr/bin/headrace" "$portable/headrace"  # names of functions stay, for stacks
      python3 "$here/../wheel/make_wheel.py" --licences "$root/usr/share/doc/headrace/licenses" "$build/root"
      depends="libc6 (>= $(oldest_libc "$portable/headrace"))"
      ;;
    libheadrace-account1)
      library=$(ls "$root"/usr/lib/libheadrace_account.so.*.*)
      aarch64-linux-gnu-strip --strip-unneeded -o "$library" "$portable/libheadrace_account.so.1"
      chmod 644 "$library"
      depends="libc6 (>= $(oldest_libc "$portable/libheadrace_account.so.1"))"
      ;;
  esac
  chmod -R u+rwX,go+rX,go-w "$root"
  size=$(du -k -s --apparent-size --exclude DEBIAN "$root" | cut -f 1)
  sed -i "s/^Architecture: .*/Architecture: arm64/; s/^Depends: .*/Depends: $depends/; s/^Installed-Size: .*/Installed-Size: $size/" \
    "$root/DEBIAN/control"
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums)
  dpkg-deb --root-owner-group -Zxz --build "$root" "$output/$(basename "$deb" | sed 's/_[a-z0-9]*\.deb$/_arm64.deb/')" > /dev/null
  echo "$output/$(basename "$deb" | sed 's/_[a-z0-9]*\.deb$/_arm64.deb/')"
done
