#!/bin/sh
# The libraries that headrace is built with, for 64-bit ARM: arm64_root.sh FOLDER
#
# Unpacks Debian's arm64 packages into FOLDER, once. FOLDER/packages then lists them: package, source package, its version.
set -eu
. "$(dirname "$0")/own_apt.sh"
[ $# = 1 ] || { echo "usage: arm64_root.sh FOLDER" >&2; exit 2; }
packages="libfmt-dev libfmt9 libprotobuf-dev libprotobuf32 libprotobuf-lite32 zlib1g-dev zlib1g libcurl4-openssl-dev libcurl4 libssl-dev libssl3
  libsqlite3-dev libsqlite3-0 nlohmann-json3-dev libtomlplusplus-dev libtomlplusplus3 libboost1.74-dev libzstd-dev libzstd1 liblz4-dev liblz4-1
  libdeflate-dev libdeflate0 libxxhash-dev libxxhash0 coinor-libcbc-dev coinor-libcbc3 coinor-libcgl-dev coinor-libcgl1 coinor-libclp-dev
  coinor-libclp1 coinor-libcoinutils-dev coinor-libcoinutils3v5 coinor-libosi-dev coinor-libosi1v5 liburing-dev liburing2 libbpf-dev libbpf1
  libelf-dev libelf1 libncurses-dev libncursesw6 libtinfo6 libcli11-dev libsnappy-dev libsnappy1v5 libbz2-dev libbz2-1.0 liblapack-dev
  libblas-dev libgfortran-12-dev linux-libc-dev"
# A complete one was made by a script like this one.
made_by=$(cksum < "$0")
[ "$(cat "$1/made_by" 2> /dev/null)" = "$made_by" ] && exit 0
rm -rf "$1"
mkdir -p "$1/deb"
cd "$1"
. /etc/os-release
own_apt arm64
from_mirror deb "$VERSION_CODENAME"
(cd deb && apt-get download -qq $packages)
for package in deb/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --exclude=./usr/share/doc --exclude=./usr/share/man
  dpkg-deb -W --showformat '${Package} ${source:Package} ${source:Version}\n' "$package"
done > packages
rm -rf deb apt
echo "$made_by" > made_by
