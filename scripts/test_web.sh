#!/bin/sh
# The pages of `headrace serve` in a browser: types, then every page against made-up runs and against
# the server itself over databases that this program records.
#   test_web.sh [BUILD [PLAYWRIGHT_ARGUMENT...]]
# Node and npm are used here and nowhere else; packages have exact versions (tests/web). Where npm, Node, a browser or esbuild is
# missing, says which and ends with 77: nothing was tested. HEADRACE_CHROMIUM: another browser.
set -eu
cd "$(dirname "$0")/.."
tree=$PWD
build=${1:-build}
[ $# -eq 0 ] || shift
skip() {
  echo "test_web: $1" >&2
  exit 77
}
for tool in node npm esbuild python3; do
  command -v "$tool" > /dev/null || skip "$tool is not installed: apt-get install nodejs npm esbuild python3"
done
HEADRACE_CHROMIUM=${HEADRACE_CHROMIUM:-$(command -v chromium || true)}
[ -n "$HEADRACE_CHROMIUM" ] || skip "no browser: apt-get install chromium, or set HEADRACE_CHROMIUM"
export HEADRACE_CHROMIUM
# Beside the build, so that the tree stays as it is.
work=$tree/$build/web-test
mkdir -p "$work/bundle"
cp tests/web/package.json tests/web/package-lock.json tests/web/tsconfig.json tests/web/*.ts tests/web/*.mjs tests/web/*.mts tests/web/*.py "$work"
cd "$work"
if ! cmp -s package-lock.json installed-lock.json; then
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund > npm.log 2>&1 || skip "npm could not install what tests/web needs: $work/npm.log"
  cp package-lock.json installed-lock.json
fi
npx tsc -p "$tree/dashboards/web"
npx tsc -p .
npx prettier --print-width 100 --log-level warn --check "$tree/dashboards/web/**/*.ts" "$tree/tests/web/*.ts" "$tree/tests/web/*.m*s" || {
  echo "test_web: make format-web formats them" >&2
  exit 1
}
esbuild "$tree/dashboards/web/main.ts" --bundle --define:SERVED=true --minify --target=es2020 --log-level=warning --outfile=bundle/app.js
esbuild "$tree/dashboards/web/theme.css" --bundle --minify --log-level=warning --outfile=bundle/style.css
cp "$tree/dashboards/web/index.html" bundle
# Single modules, for tests that need no page.
for module in numbers address live; do
  esbuild "$tree/dashboards/web/$module.ts" --bundle --define:SERVED=true --format=esm --target=es2020 --log-level=warning --outfile="bundle/$module.mjs"
done
size=$(cat bundle/app.js bundle/style.css bundle/index.html | gzip -9 | wc -c)
echo "test_web: the bundle is $size bytes compressed"
[ "$size" -le 61440 ] || { echo "test_web: more than 60 KiB" >&2; exit 1; }
export HEADRACE_WEB_BUNDLE="$work/bundle"
# A copy, as another build may take the program away. Databases are made once for a program.
if [ -x "$tree/$build/headrace" ]; then
  if ! cmp -s "$tree/$build/headrace" headrace || ! cat stores.py day.py | cmp -s - stores/made; then
    cp "$tree/$build/headrace" headrace
    rm -rf stores
    python3 stores.py "$work/headrace" "$work/stores"
    cat stores.py day.py > stores/made
  fi
  export HEADRACE="$work/headrace" HEADRACE_WEB_STORES="$work/stores"
else
  echo "test_web: there is no $build/headrace, so the program's own server is not tested" >&2
fi
npx playwright test "$@"
