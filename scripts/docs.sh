#!/bin/sh
# The documents as a site of files: docs.sh BUILD, into BUILD/site. mkdocs-material comes from PyPI into BUILD/mkdocs, once.
# Ends with 77 where it cannot be had.
set -eu
build=$1
mkdocs=$build/mkdocs/bin/mkdocs
if [ ! -x "$mkdocs" ]; then
  rm -rf "$build/mkdocs"
  { python3 -m venv "$build/mkdocs" && "$build/mkdocs/bin/pip" install -q --disable-pip-version-check 'mkdocs-material>=9.5,<10'; } > "$build/mkdocs.log" 2>&1 ||
    { echo "docs: no mkdocs-material: $(tail -n 1 "$build/mkdocs.log")" >&2; rm -rf "$build/mkdocs"; exit 77; }
fi
NO_MKDOCS_2_WARNING=1 "$mkdocs" build --strict --quiet --config-file "$(dirname "$0")/../packaging/docs/mkdocs.yml" --site-dir "$(realpath "$build")/site"
echo "$build/site/index.html"
