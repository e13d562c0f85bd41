#!/usr/bin/env bats
# The wheel and the Debian packages for 64-bit ARM: what is in them, and their program, library and package in an emulated processor.
# HEADRACE_WHEELS is the folder with the wheel, HEADRACE_BUILD the one with headrace for this machine, HEADRACE_ARM64_SYSTEM one with a C
# library and a Python for that processor.

HEADRACE_PACKAGES=$HEADRACE_BUILD/packages-arm64
load system.bash

setup() {
  WHEEL=$(ls "$HEADRACE_WHEELS"/headrace-*.whl 2> /dev/null) || skip "no wheel here: make wheel ARCH=aarch64"
  export HEADRACE_CONFIG=
  cd "$BATS_TEST_TMPDIR"
  unzip -q "$WHEEL"
  PROGRAM=$(echo "$PWD"/headrace-*.data/scripts/headrace)
}

emulator_or_skip() { EMULATOR=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || skip "no emulator here: apt-get install qemu-user-static"; }
on_arm64() { "$EMULATOR" -L "$HEADRACE_ARM64_SYSTEM" "$@"; }

@test "program and library are for 64-bit ARM, and need the C library alone, as old as the wheel's tag says" {
  for file in "$PROGRAM" headrace/libheadrace_account.so.1; do
    readelf -h "$file" | grep -q 'Machine: *AArch64'
    readelf -VW "$file" | grep -oE 'GLIBC_[0-9]+\.[0-9]+' >> needed
    foreign=$(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux-aarch64)\.so' || true)
    [ -z "$foreign" ] || { echo "$file needs $foreign"; false; }
  done
  tag=$(sort -V needed | tail -n 1 | sed 's/GLIBC_/manylinux_/; s/\./_/')
  [[ $WHEEL == *-py3-none-${tag}_aarch64.whl ]] || { echo "$WHEEL needs $tag"; false; }
  # Libraries that start on processors with pages of 64 KiB are laid out for them.
  ! readelf -lW "$PROGRAM" headrace/libheadrace_account.so.1 | awk '$1 == "LOAD" && $NF != "0x10000"' | grep .
}

@test "pip takes it for such a machine, with the versions of what is linked into it" {
  python3 -c 'import pip' || skip "no pip here"
  tag=$(basename "$WHEEL" .whl | sed 's/.*-none-//')
  python3 -m pip install -q --disable-pip-version-check --no-index --only-binary :all: --platform "$tag" --target there "$WHEEL"
  [ -x there/bin/headrace ] && [ -s there/share/man/man1/headrace.1 ]
  grep -qE '^  gcc-12-cross [0-9]' headrace-*.dist-info/licenses/NOTICE
  grep -qE '^  elfutils [0-9]' headrace-*.dist-info/licenses/NOTICE
}

@test "the program runs, says what it was built for, and explains its commands as here" {
  emulator_or_skip
  on_arm64 "$PROGRAM" --version | grep -qE '^build .* aarch64$'
  for command in demo generate profile; do
    on_arm64 "$PROGRAM" "$command" --help > there
    "$HEADRACE_BUILD/headrace" "$command" --help > here
    cmp there here
  done
}

@test "a table made there is the one made here, byte for byte, and rows read there are those read here" {
  emulator_or_skip
  on_arm64 "$PROGRAM" generate rm1 --rows 2048 -o there > /dev/null
  "$HEADRACE_BUILD/headrace" generate rm1 --rows 2048 -o here > /dev/null
  diff -r there here
  on_arm64 "$PROGRAM" cat here/part-00000.dwrf > there.rows
  "$HEADRACE_BUILD/headrace" cat there/part-00000.dwrf > here.rows
  [ -s here.rows ] && cmp there.rows here.rows
}

@test "its Python finds the package and the library" {
  emulator_or_skip
  [ "$(on_arm64 "$HEADRACE_ARM64_SYSTEM/usr/bin/python3.11" -c 'import headrace, headrace._library as it, platform
assert it.library is not None, it.reason
with headrace.operator("one"): pass
print(platform.machine())')" = aarch64 ]
}

# listed DEB: what is in a package, without its licences and without what the version of a library is.
listed() { dpkg-deb -c "$1" | awk '{ print $1, $6, $7, $8 }' | grep -vE '/licenses/| \./ ' | LC_ALL=C sort -k 2; }

@test "the Debian packages for 64-bit ARM have the files of those for this machine, that program, and need the C library alone" {
  packages=$HEADRACE_BUILD/packages-arm64
  [ -n "$(ls "$packages"/headrace_*_arm64.deb 2> /dev/null)" ] || skip "no packages: dpkg-deb or dpkg-shlibdeps is missing here"
  for name in headrace libheadrace-account1 libheadrace-account-dev; do
    there=$(ls "$packages/$name"_*_arm64.deb) here=$(ls "$HEADRACE_BUILD/packages/$name"_*_"$(dpkg --print-architecture)".deb)
    [ "$(dpkg-deb -f "$there" Architecture)" = arm64 ]
    diff <(listed "$here") <(listed "$there")
    mkdir -p "unpacked/$name" "control/$name"
    dpkg-deb -x "$there" "unpacked/$name"
    dpkg-deb -e "$there" "control/$name"
    (cd "unpacked/$name" && md5sum -c --quiet "$OLDPWD/control/$name/md5sums")
  done
  [[ $(dpkg-deb -f "$packages"/headrace_*_arm64.deb Depends) =~ ^libc6\ \(\>=\ 2\.[0-9]+\)$ ]]
  [[ $(dpkg-deb -f "$packages"/libheadrace-account1_*_arm64.deb Depends) =~ ^libc6\ \(\>=\ 2\.[0-9]+\)$ ]]
  [ -s unpacked/headrace/usr/share/doc/headrace/licenses/NOTICE ]
  readelf -h unpacked/libheadrace-account1/usr/lib/libheadrace_account.so.1 | grep -q 'Machine: *AArch64'
  emulator_or_skip
  on_arm64 unpacked/headrace/usr/bin/headrace --version | grep -qE '^build .* aarch64$'
}

@test "the Debian packages for 64-bit ARM install in a Debian 12 of that processor, work, and leave nothing when purged" {
  [ -n "$(ls "$HEADRACE_PACKAGES"/headrace_*_arm64.deb 2> /dev/null)" ] || skip "no packages: dpkg-deb or dpkg-shlibdeps is missing here"
  "$HEADRACE_ARM64_SYSTEM/lib/ld-linux-aarch64.so.1" --version > /dev/null 2>&1 ||
    skip "the kernel runs no program for 64-bit ARM here: apt-get install qemu-user-static binfmt-support"
  system bookworm arm64
  [ "$(inside 'uname -m')" = aarch64 ]
  LIMIT='[a-zA-Z]'  # emulated cores are slow, so the store need not be the limit
  installed_and_purged "$HEADRACE_PACKAGES"/headrace_*_arm64.deb "$HEADRACE_PACKAGES"/libheadrace-account1_*_arm64.deb
}
