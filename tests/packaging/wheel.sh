#!/bin/sh
# Makes the wheel and the archive of a build, for the tests of this folder: wheel.sh BUILD. It needs Debian's mirror once.
set -eu
build=$1
[ -e "$build/packaging/portable/prepared/libcurl.a" ] || apt-get indextargets --format x 'Created-By: Packages' 2> /dev/null | grep -q x ||
  { echo "no apt with a Debian mirror here: the portable program's libraries come from there"; exit 77; }
cmake --build "$build" --target headrace_portable headrace_account_portable > "$build/wheel.log" 2>&1 || {
  if grep -qE 'Could not resolve|Failed to fetch|Unable to fetch|Unable to find a source|Could not connect' "$build/wheel.log"; then echo "the Debian mirror does not answer"; exit 77; fi
  # prepare.sh installs a package that scripts/setup.sh names.
  reason=$(grep -m 1 -oE 'sudo: not found|a password is required|Unable to locate package .*' "$build/wheel.log") &&
    { echo "libgfortran-12-dev is missing and cannot be installed here: $reason"; exit 77; }
  tail -n 40 "$build/wheel.log"
  exit 1
}
rm -f "$build"/packages/*.tar.gz
(cd "$build" && cpack -G TGZ -B packages > archive.log 2>&1) || { cat "$build/archive.log"; exit 1; }
rm -rf "$build/packages/_CPack_Packages"
python3 "$(dirname "$0")/../../packaging/wheel/make_wheel.py" "$build/packaging/portable/bin" "$build/wheels"
