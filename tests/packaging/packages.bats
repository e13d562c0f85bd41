#!/usr/bin/env bats
# The Debian packages of `make package`: lintian finds nothing in them, they install, work and leave nothing. HEADRACE_PACKAGES is the folder with them, which tests/packaging/make.sh has filled.

setup() { [ -n "$(ls "$HEADRACE_PACKAGES"/headrace_*.deb 2> /dev/null)" ] || skip "no packages: dpkg-deb or dpkg-shlibdeps is missing here"; }

tool() { echo "$HEADRACE_PACKAGES"/headrace_*.deb; }
all() { ls "$HEADRACE_PACKAGES"/*.deb; }

@test "lintian finds no error and nothing to warn of" {
  command -v lintian > /dev/null || skip "no lintian here"
  run lintian --allow-root --fail-on error,warning --tag-display-limit 0 $(all)
  [ "$status" -eq 0 ] || { echo "$output"; false; }
}

@test "the package of the tool has manual, completions, service, documents and schemas" {
  dpkg-deb --contents "$(tool)" | awk '{ print $6 }' > files
  for file in ./usr/bin/headrace ./usr/share/man/man1/headrace.1.gz ./usr/share/man/man1/headrace-run.1.gz \
    ./usr/share/bash-completion/completions/headrace ./usr/share/zsh/vendor-completions/_headrace \
    ./usr/share/fish/vendor_completions.d/headrace.fish ./usr/lib/systemd/system/headrace-collect.service \
    ./usr/share/headrace/schema/plan.schema.json ./usr/share/doc/headrace/docs/index.md ./usr/share/doc/headrace/copyright; do
    grep -qxF "$file" files || { echo "no $file"; false; }
  done
  ! grep -E '\.debug|__pycache__' files
  dpkg-deb --field "$(tool)" Depends | grep -q libsqlite3-0
}

@test "unpacked, it runs, and its files name the places where they will be" {
  root=$(mktemp -d)
  for package in $(all); do dpkg-deb --extract "$package" "$root"; done
  "$root/usr/bin/headrace" --version | grep -q '^headrace '
  grep -q '^ExecStart=/usr/bin/headrace collect' "$root/usr/lib/systemd/system/headrace-collect.service"
  ! grep -rIl "$(dirname "$HEADRACE_PACKAGES")" "$root/usr/share" "$root/usr/lib"
  zcat "$root/usr/share/man/man1/headrace-report.1.gz" | grep -qF 'HEADRACE_DB or ./headrace.db'
  rm -rf "$root"
}

@test "installed in a system of its own, it works; purged, it leaves nothing" {
  [ "$(id -u)" -eq 0 ] || skip "installing needs root"
  root=$(mktemp -d)
  # dpkg with a database and a root of its own: dependencies are this machine's and are not looked for.
  mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/log"
  touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
  dpkg="dpkg --root=$root --force-depends --force-not-root --force-script-chrootless --log=/dev/null"
  run $dpkg --install $(all)
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  "$root/usr/bin/headrace" man run | grep -q HEADRACE
  $dpkg --verify headrace
  run $dpkg --purge headrace libheadrace-account-dev libheadrace-account1
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  left=$(find "$root" -path "$root/var" -prune -o -type f -print)
  [ -z "$left" ] || { echo "left: $left"; false; }
  ! ls "$root"/var/lib/dpkg/info | grep -q headrace
  rm -rf "$root"
}

@test "purging removes what the service recorded" {
  folder=$(mktemp -d)
  mkdir -p "$folder/private/headrace"
  sed "s|/var/lib/|$folder/|g; s|/etc/|$folder/etc/|g; s|/run/systemd/system|$folder/none|" \
    "$BATS_TEST_DIRNAME/../../packaging/debian/postrm" > "$folder/postrm"
  ln -s private/headrace "$folder/headrace"
  sh "$folder/postrm" remove
  [ -d "$folder/private/headrace" ]
  sh "$folder/postrm" purge
  [ ! -e "$folder/private/headrace" ]
  [ ! -L "$folder/headrace" ]
  rm -rf "$folder"
}

@test "a program of its own builds with the CMake package and with pkg-config" {
  folder=$(mktemp -d)
  for package in $(all); do dpkg-deb --extract "$package" "$folder/root"; done
  cp "$BATS_TEST_DIRNAME/../../docs/examples/reader.c" "$folder"
  cat > "$folder/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(reader LANGUAGES C)
find_package(headrace-account 0.2 REQUIRED)
add_executable(reader reader.c)
target_link_libraries(reader PRIVATE headrace::account)
CMAKE
  cmake -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/root/usr" > "$folder/log" 2>&1 || { cat "$folder/log"; false; }
  cmake --build "$folder/build" > "$folder/log" 2>&1 || { cat "$folder/log"; false; }
  [ -x "$folder/build/reader" ]
  export PKG_CONFIG_PATH=$(dirname "$(find "$folder/root" -name headrace-account.pc)")
  cc $(pkg-config --cflags headrace-account) "$folder/reader.c" -o "$folder/linked" -lpthread $(pkg-config --libs headrace-account)
  rm -rf "$folder"
}
