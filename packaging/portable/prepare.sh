#!/bin/sh
# What the portable program is linked with and this machine does not have: prepare.sh FOLDER GLIBC_RELEASE [ARCHITECTURE TRIPLE ROOT]
#
#   FOLDER/glibc/     the C library of an older Debian release, whose symbols every later Linux has too
#   FOLDER/libcurl.a  libcurl with HTTP and HTTPS alone: Debian's static one wants Kerberos and LDAP, which have no static libraries
#
# Packages and sources come from the Debian mirror that apt uses on this machine. Where the older release cannot be had, glibc/ stays
# empty: the program is then linked with this machine's C library, and the wheel's tag says so.
#
# ARCHITECTURE: as Debian calls it, if it is not this machine's, with the prefix of its cross compiler and the folder of its libraries.
set -eu
. "$(dirname "$0")/own_apt.sh"
folder=$1 release=$2 architecture=${3:-$(dpkg --print-architecture)} triple=${4:-} root=${5:-}
# Of a build whose setup.sh ran before it asked for this one. Nobody is asked for a password in the midst of a build.
if [ -z "$triple" ] && [ "$(dpkg-query -W -f '${Status}' libgfortran-12-dev 2> /dev/null)" != "install ok installed" ]; then
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo -n"
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends libgfortran-12-dev > /dev/null
fi
rm -rf "$folder"
mkdir -p "$folder/glibc"
cd "$folder"
folder=$PWD

. /etc/os-release
own_apt "$architecture"
from_mirror deb-src "$VERSION_CODENAME"
(mkdir source && cd source && apt-get source -qq curl > ../source.log 2>&1) || { cat source.log; exit 1; }
if from_mirror deb "$release" && (cd apt && apt-get download -qq libc6 libc6-dev); then
  for package in apt/*.deb; do dpkg-deb --extract "$package" root; done
  libraries=root/usr/lib/${triple:-$(gcc -print-multiarch)}
  find root/lib -name '*.so.*' -exec cp -L {} glibc/ \;
  cp -L "$libraries"/*crt*.o "$libraries/libc_nonshared.a" glibc/
  shared="dl pthread rt resolv" scripts="c m"
  [ -L "$libraries/libm.so" ] && shared="$shared m" scripts=c
  for name in $shared; do ln -s "$(basename "$(readlink "$libraries/lib$name.so")")" "glibc/lib$name.so"; done
  # Scripts of the linker, which name files by their paths in a system: here they are beside the script.
  for name in $scripts; do sed -E 's#/(usr/)?lib(64)?/([^ /]*/)?##g' "$libraries/lib$name.so" > "glibc/lib$name.so"; done
else
  echo "prepare: no C library of Debian $release here; linking with this machine's" >&2
fi

cd source/curl-*/
without="--without-librtmp --without-libssh2 --without-libidn2 --without-libpsl --without-brotli --without-zstd --without-nghttp2"
disable=$(for protocol in ldap ldaps ftp file rtsp dict telnet tftp pop3 imap smb smtp gopher mqtt manual; do printf -- '--disable-%s ' $protocol; done)
cross=""
if [ -n "$triple" ]; then
  cross="--host=$triple"
  export CPPFLAGS="-isystem $root/usr/include -isystem $root/usr/include/$triple" LDFLAGS="-L$root/usr/lib/$triple"
  export PKG_CONFIG_LIBDIR="$root/usr/lib/$triple/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
fi
CFLAGS="-O2 -ffunction-sections -fdata-sections" ./configure $cross --disable-shared --enable-static --with-openssl --with-zlib \
  --without-ca-bundle --without-ca-path --with-ca-fallback $without $disable > "$folder/curl.log" 2>&1 &&
  make -C lib -j "$(nproc)" >> "$folder/curl.log" 2>&1 || { tail -20 "$folder/curl.log"; exit 1; }
cp lib/.libs/libcurl.a "$folder/libcurl.a"
cd "$folder" && rm -rf source root apt
