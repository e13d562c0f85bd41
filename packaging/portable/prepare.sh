#!/bin/sh
# What the portable program is linked with and this machine does not have: prepare.sh FOLDER GLIBC_RELEASE
#
#   FOLDER/glibc/     the C library of an older Debian release, whose symbols every later Linux has too
#   FOLDER/libcurl.a  libcurl with HTTP and HTTPS alone: Debian's static one wants Kerberos and LDAP, which have no static libraries
#
# Packages and sources come from the Debian mirror that apt uses on this machine. Where the older release cannot be had, glibc/ stays
# empty: the program is then linked with this machine's C library, and the wheel's tag says so.
set -eu
folder=$1 release=$2
# Of a build whose setup.sh ran before it asked for this one. Nobody is asked for a password in the midst of a build.
if [ "$(dpkg-query -W -f '${Status}' libgfortran-12-dev 2> /dev/null)" != "install ok installed" ]; then
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo -n"
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends libgfortran-12-dev > /dev/null
fi
rm -rf "$folder"
mkdir -p "$folder/glibc" "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial"
cd "$folder"
folder=$PWD

# An apt of its own, which neither sees nor changes the machine's packages.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
. /etc/os-release
cat > apt/conf <<CONF
Dir::State "$folder/apt/state";
Dir::State::status "$folder/apt/state/status";
Dir::Cache "$folder/apt/cache";
Dir::Etc::sourcelist "$folder/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "root";
CONF
touch apt/state/status
export APT_CONFIG=$folder/apt/conf
echo "deb-src ${mirror:-http://deb.debian.org/debian} $VERSION_CODENAME main" > apt/sources.list
apt-get update -qq
(mkdir source && cd source && apt-get source -qq curl > ../source.log 2>&1) || { cat source.log; exit 1; }
echo "deb ${mirror:-http://deb.debian.org/debian} $release main" > apt/sources.list
if apt-get update -qq && (cd apt && apt-get download -qq libc6 libc6-dev); then
  for package in apt/*.deb; do dpkg-deb --extract "$package" root; done
  libraries=root/usr/lib/$(gcc -print-multiarch)
  find root/lib -name '*.so.*' -exec cp -L {} glibc/ \;
  cp -L "$libraries"/*crt*.o "$libraries/libc_nonshared.a" glibc/
  for name in dl pthread rt resolv; do ln -s "$(basename "$(readlink "$libraries/lib$name.so")")" "glibc/lib$name.so"; done
  # Scripts of the linker, which name files by their paths in a system: here they are beside the script.
  for name in c m; do sed -E 's#/(usr/)?lib(64)?/([^ /]*/)?##g' "$libraries/lib$name.so" > "glibc/lib$name.so"; done
else
  echo "prepare: no C library of Debian $release here; linking with this machine's" >&2
fi

cd source/curl-*/
without="--without-librtmp --without-libssh2 --without-libidn2 --without-libpsl --without-brotli --without-zstd --without-nghttp2"
disable=$(for protocol in ldap ldaps ftp file rtsp dict telnet tftp pop3 imap smb smtp gopher mqtt manual; do printf -- '--disable-%s ' $protocol; done)
CFLAGS="-O2 -ffunction-sections -fdata-sections" ./configure --disable-shared --enable-static --with-openssl --with-zlib \
  --without-ca-bundle --without-ca-path --with-ca-fallback $without $disable > "$folder/curl.log" 2>&1 &&
  make -C lib -j "$(nproc)" >> "$folder/curl.log" 2>&1 || { tail -20 "$folder/curl.log"; exit 1; }
cp lib/.libs/libcurl.a "$folder/libcurl.a"
cd "$folder" && rm -rf source root apt
