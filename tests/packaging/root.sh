#!/bin/sh
# A Debian system with nothing of headrace in it: root.sh make SUITE FOLDER [ARCH], or root.sh in FOLDER COMMAND...
#
# make: installs SUITE's essential packages and Python below FOLDER, once. Ends with 77 and the reason where that cannot be done. Of another
#       processor (ARCH, Debian's word for it) the kernel has to run programs by an emulator: qemu-user-static with binfmt-support.
# in:   runs a command there, with a /proc, /sys and /dev of its own that end with it.
set -eu
action=$1
shift
if [ "$action" = in ]; then
  folder=$1
  shift
  exec unshare --mount --propagation private sh -eu -c '
    folder=$1
    shift
    mount -t proc proc "$folder/proc"
    mount --rbind /sys "$folder/sys"
    mount --rbind /dev "$folder/dev"
    mount -t tmpfs tmpfs "$folder/dev/shm"
    exec chroot "$folder" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' \
    sh "$folder" "$@"
fi

suite=$1 folder=$2 arch=${3:-$(dpkg --print-architecture)}
left_out() { echo "$1"; exit 77; }
[ ! -e "$folder/made" ] || exit 0
[ "$(id -u)" -eq 0 ] || left_out "a system of its own needs root"
unshare --mount true 2> /dev/null || left_out "no mount namespaces here"
if ! command -v debootstrap > /dev/null; then
  apt-get install -y -qq --no-install-recommends debootstrap > /dev/null 2>&1 || left_out "no debootstrap, and apt does not get it"
fi
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
rm -rf "$folder"
mkdir -p "$folder"
# A suite that is newer than this debootstrap is made as its newest one is.
scripts=/usr/share/debootstrap/scripts
[ -e "$scripts/$suite" ] && script= || script=$scripts/sid
debootstrap --arch="$arch" --variant=minbase --include=python3,python3-venv "$suite" "$folder/root" "$mirror" $script > "$folder/log" 2>&1 ||
  left_out "debootstrap $suite $arch: $(tail -n 1 "$folder/log")"
: > "$folder/made"
