#!/usr/bin/env bash
# The first step of action.yml: runs the comparison, and leaves its page and exit code as outputs. Fails only where there is no page:
# whether the result fails the job is judged after it was written into the pull request.
set -euo pipefail
folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/headrace.XXXXXX")
page=$folder/comparison.md database=$folder/headrace.db
arguments=(--pairs "$PAIRS" --duration "$DURATION" --db "$database")
if [ "$COMMANDS" = true ]; then
  # A command decides itself how long it runs.
  arguments=(--pairs "$PAIRS" --db "$database" --a-cmd "$SIDE_A" --b-cmd "$SIDE_B")
else
  arguments+=("$SIDE_A" "$SIDE_B")
fi
[ -z "$FAIL_ON" ] || arguments+=(--fail-on "$FAIL_ON")
# The user's options are words of a shell.
[ -z "$OPTIONS" ] || eval "arguments+=($OPTIONS)"
code=0
"$HEADRACE" compare "${arguments[@]}" --format md -o "$page" || code=$?
echo "code=$code" >> "$GITHUB_OUTPUT"
if [ ! -s "$page" ]; then
  echo "::error::headrace compare ended with $code and made no page"
  exit "$((code == 0 ? 1 : code))"
fi
echo "page=$page" >> "$GITHUB_OUTPUT"
verdict=$("$HEADRACE" query --db "$database" --format csv \
  "SELECT verdict FROM comparison_summary ORDER BY comparison_id DESC LIMIT 1" | tail -n 1)
echo "verdict=$verdict" >> "$GITHUB_OUTPUT"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$page" >> "$GITHUB_STEP_SUMMARY"
