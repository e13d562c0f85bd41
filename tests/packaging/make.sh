#!/bin/sh
# Makes the Debian packages of a build once, for the tests of this folder: make.sh BUILD. Quick compression: their contents are what is tested.
set -eu
build=$1
if ! command -v dpkg-deb > /dev/null || ! command -v dpkg-shlibdeps > /dev/null; then
  echo "no dpkg-deb or dpkg-shlibdeps here"
  exit 77
fi
rm -f "$build"/packages/*.deb
cd "$build"
cpack -G DEB -B packages -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip > packages.log 2>&1 || { cat packages.log; exit 1; }
rm -rf packages/_CPack_Packages
