#!/bin/sh
# Makes the wheel for 64-bit ARM by cross compilation, and gets a Python that can try it, for the tests of this folder:
# arm64.sh BUILD PROGRAM. Its objects are those of `make wheel ARCH=aarch64`. It needs Debian's mirror once.
set -eu
build=$1 program=$2
cd "$(dirname "$0")/../.."
command -v aarch64-linux-gnu-g++ > /dev/null || { echo "no cross compiler here: apt-get install g++-aarch64-linux-gnu"; exit 77; }
apt-get indextargets --format x 'Created-By: Packages' 2> /dev/null | grep -q x ||
  { echo "no apt with a Debian mirror here: libraries for 64-bit ARM come from there"; exit 77; }
failed() {
  if grep -qE 'Could not resolve|Failed to fetch|Unable to fetch|Unable to find a source|Could not connect' "$build/arm64.log"; then
    echo "the Debian mirror does not answer"
    exit 77
  fi
  tail -n 40 "$build/arm64.log"
  exit 1
}
{ sh packaging/portable/arm64_root.sh build-arm64/root && cmake --preset arm64 &&
  cmake --build --preset arm64 --target headrace_portable headrace_account_portable; } > "$build/arm64.log" 2>&1 || failed
python3 packaging/wheel/make_wheel.py build-arm64/packaging/portable/bin "$build/wheels-arm64" build-arm64/root "$program"
if [ -n "$(ls "$build"/packages/headrace_*_"$(dpkg --print-architecture)".deb 2> /dev/null)" ]; then
  rm -rf "$build/packages-arm64"
  sh packaging/portable/deb_arm64.sh "$build/packages" build-arm64 "$build/packages-arm64"
fi

python=$PWD/build-arm64/python
[ -e "$python/complete" ] && exit 0
rm -rf "$python"
mkdir -p "$python/deb"
. packaging/portable/own_apt.sh
cd "$python"
. /etc/os-release
{ own_apt arm64 && from_mirror deb "$VERSION_CODENAME" &&
  (cd deb && apt-get download -qq python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 zlib1g libexpat1 libffi8); } \
  > "$build/arm64.log" 2>&1 || failed
for package in deb/*.deb; do dpkg-deb --extract "$package" .; done
rm -rf deb apt
touch complete
