#!/usr/bin/env bats
# The container: the last stage of packaging/Dockerfile as written, on a Debian 12 that debootstrap makes in place of the registry's
# image, with the packages of this build in place of the first stage's. buildah runs it without a daemon. HEADRACE_PACKAGES has the packages.

ROOTS=${HEADRACE_ROOTS:-$(dirname "$HEADRACE_PACKAGES")/roots}

setup() {
  [ -n "$(ls "$HEADRACE_PACKAGES"/headrace_*.deb 2> /dev/null)" ] || skip "no packages: dpkg-deb or dpkg-shlibdeps is missing here"
  command -v buildah > /dev/null || skip "no buildah here: apt-get install buildah"
  mkdir -p "$ROOTS"
  run sh "$BATS_TEST_DIRNAME/root.sh" make bookworm "$ROOTS/bookworm"
  [ "$status" -ne 77 ] || skip "$output"
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  STORAGE=$(mktemp -d "$ROOTS/images.XXXXXX")
}

teardown() {
  [ -z "$STORAGE" ] || { images rm --all > /dev/null 2>&1; images rmi --all --force > /dev/null 2>&1; rm -rf "$STORAGE"; }
}

# Images and containers of this test alone.
images() { buildah --root "$STORAGE/root" --runroot "$STORAGE/run" --storage-driver overlay "$@"; }

@test "the image has the program, and runs the demo" {
  images info > /dev/null 2>&1 || skip "buildah has no storage here"
  base=$(images from scratch)
  cp -a "$ROOTS/bookworm/root/." "$(images mount "$base")/"
  images unmount "$base" > /dev/null
  images commit -q --rm "$base" docker.io/library/debian:12-slim > /dev/null
  mkdir "$STORAGE/context"
  cp "$HEADRACE_PACKAGES"/*.deb "$STORAGE/context"
  { printf 'FROM scratch AS build\nCOPY *.deb /packages/\n'; sed -n '/^FROM debian:12-slim/,$p' "$BATS_TEST_DIRNAME/../../packaging/Dockerfile"; } \
    > "$STORAGE/context/Dockerfile"
  run images bud --isolation chroot --pull=never -t headrace "$STORAGE/context"
  [ "$status" -eq 0 ] || { echo "$output" | grep -q 'Could not resolve\|Failed to fetch' && skip "apt reaches no mirror from there"; echo "$output"; false; }
  container=$(images from --pull=never localhost/headrace)
  images run --isolation chroot "$container" -- headrace demo --duration 4s > "$STORAGE/demo" 2>&1 || { cat "$STORAGE/demo"; false; }
  grep -q 'limit  ' "$STORAGE/demo" && grep -q '─▶' "$STORAGE/demo" || { cat "$STORAGE/demo"; false; }
}
