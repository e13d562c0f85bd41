#!/usr/bin/env bats
# The wheel and the archive: what is in them, and every CPython at hand. tests/packaging/clean_root.bats installs it in systems of its own.
# HEADRACE_WHEELS and HEADRACE_PACKAGES are the folders with them; HEADRACE_TEST_PYTHONS names more interpreters than PATH has.

setup() {
  WHEEL=$(ls "$HEADRACE_WHEELS"/headrace-*.whl 2> /dev/null) || skip "no wheel here: make wheel"
  export HEADRACE_CONFIG=
  cd "$BATS_TEST_TMPDIR"
}

@test "the tag of the wheel is the newest symbol its files need, and they need no library but the C library's" {
  unzip -q "$WHEEL"
  for file in headrace/libheadrace_account.so.1 headrace-*.data/scripts/headrace; do objdump -T "$file"; done |
    grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -Vu | tail -n 1 > newest
  tag=$(sed 's/GLIBC_/manylinux_/; s/\./_/' newest)
  [[ $WHEEL == *-py3-none-${tag}_$(uname -m).whl ]] || { echo "$WHEEL needs $(cat newest)"; false; }
  [ -x headrace-*.data/scripts/headrace ]
  foreign=$(objdump -p headrace-*.data/scripts/headrace | awk '/NEEDED/ { print $2 }' | grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so' || true)
  [ -z "$foreign" ] || { echo "needs $foreign"; false; }
}

# licensed FOLDER: it has the licences of what is linked into the program, the texts that those name, and a NOTICE with versions.
licensed() {
  for part in LICENSE libssl-dev.txt libcurl4-openssl-dev.txt coinor-libcbc-dev.txt libelf-dev.txt common-licenses/LGPL-3; do
    [ -s "$1/$part" ] || { echo "no $part"; return 1; }
  done
  for named in $(cat "$1"/*.txt | grep -oE '/usr/share/common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9]' | sort -u); do
    [ -s "$1/common-licenses/${named##*/}" ] || { echo "no text of $named"; return 1; }
  done
  grep -qE '^  elfutils [0-9]' "$1/NOTICE" && grep -q 'Linking with other libraries' "$1/NOTICE"
  grep -q '^## Linking with other libraries' "$BATS_TEST_DIRNAME/../../docs/install.md"
}

@test "the wheel brings the licence of everything that is linked into the program" {
  unzip -q "$WHEEL"
  licensed headrace-*.dist-info/licenses
}

@test "the archive brings the same licences" {
  tar -xzf "$HEADRACE_PACKAGES"/headrace-*.tar.gz
  licensed headrace-*/share/doc/headrace/licenses
  unzip -q "$WHEEL" '*/licenses/*'
  diff -r headrace-*.dist-info/licenses headrace-*-linux-*/share/doc/headrace/licenses
}

@test "the archive runs from anywhere, and has the program of the wheel" {
  tar -xzf "$HEADRACE_PACKAGES"/headrace-*.tar.gz
  headrace-*/bin/headrace --version | grep -q '^headrace '
  ls headrace-*/share/man/man1/headrace.1
  [ ! -e headrace-*/bin/.debug ]
  foreign=$(ldd headrace-*/bin/headrace | awk '$2 == "=>" { print $1 }' | grep -vE '^(libc|libm|libpthread|libdl|librt)\.so' || true)
  [ -z "$foreign" ] || { echo "needs $foreign"; false; }
  unzip -q "$WHEEL"
  cmp headrace-*/bin/headrace headrace-*.data/scripts/headrace
  PYTHONPATH=$(echo "$PWD"/headrace-*-linux-*/share/headrace/python) python3 -c 'import headrace._library as it; assert it.library, it.reason'
}

@test "a file that needs a library of its own is refused" {
  mkdir portable
  printf 'int main(void) { return 0; }\n' > main.c
  cc -Wl,--no-as-needed main.c -lz -o portable/headrace
  cp "$(type -P true)" portable/libheadrace_account.so.1
  run python3 "$BATS_TEST_DIRNAME/../../packaging/wheel/make_wheel.py" portable dist
  [ "$status" -eq 1 ]
  [[ $output == *"needs libz.so.1, which not every Linux has"* ]]
  [ ! -e dist ]
}

@test "every CPython at hand installs the wheel, has the command and the package, and uninstalls it without a trace" {
  tried=0
  for python in ${HEADRACE_TEST_PYTHONS:-} python3 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14; do
    "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null || continue  # what the wheel supports
    rm -rf new
    "$python" -m venv new
    new/bin/pip install -q --no-index --disable-pip-version-check "$WHEEL"
    new/bin/headrace --version | grep -q '^headrace '
    new/bin/python -m headrace --version | grep -q '^headrace '
    # Both without the environment's folder in PATH.
    new/bin/python -c 'import headrace, headrace._library as it
assert it.library is not None, it.reason
with headrace.operator("one"): pass'
    [ -f new/share/man/man1/headrace-run.1 ]
    new/bin/pip uninstall -q -y headrace
    left=$(find new -name '*headrace*')
    [ -z "$left" ] || { echo "$python left: $left"; false; }
    tried=$((tried + 1))
  done
  [ "$tried" -gt 0 ] || skip "no Python with ensurepip here"
}

@test "python -m headrace says what to do where the program is missing" {
  unzip -q "$WHEEL" 'headrace/*'
  run env PATH=/nowhere PYTHONPATH=. "$(python3 -c 'import sys; print(sys.executable)')" -I -c \
    'import sys; sys.path.insert(0, "."); import runpy; runpy.run_module("headrace", run_name="__main__")'
  [ "$status" -eq 1 ]
  [[ $output == *"the program headrace is not in \$PATH; set HEADRACE to where it is"* ]] || { echo "$output"; false; }
}
