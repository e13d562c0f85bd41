#!/usr/bin/env bash
# The last step of action.yml: what the exit code of headrace compare means for the job.
set -euo pipefail
case $CODE in
  0) ;;
  3)
    echo "::error::the gate holds: see the comparison in the job's summary"
    exit 3
    ;;
  4)
    echo "::warning::the comparison cannot tell whether the gate holds; more pairs or longer runs would"
    [ "$UNDECIDED" != fail ] || exit 4
    ;;
  *)
    echo "::error::headrace compare ended with $CODE"
    exit "$CODE"
    ;;
esac
