#!/usr/bin/env bats
# headrace characterize: the optimisation ladder of a tiny table.
bats_require_minimum_version 1.5.0
load helpers

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }

@test "the ladder alone: every rung in its tiers, exit 3 where a sign is opposite" {
  "$HEADRACE" generate rm1 -o table --rows 2048 --features 0.01 --stripe-rows 512 2> /dev/null
  run --separate-stderr "$HEADRACE" characterize table --ladder-only --quick --pairs 2 -o study --json
  [ "$status" -eq 0 ] || [ "$status" -eq 3 ]
  printf '%s' "$output" > ladder.json
  fits_schema characterization ladder.json
  jq -e '[.ladder.totals[].rung] == ["base", "FF", "FM", "CR", "FR", "LS", "RB", "CL", "DD"]' ladder.json
  jq -e '[.ladder.steps[] | select(.tier == "storage")] | length == 8' ladder.json
  # The one rung whose published gain was under a memory limit is measured under one.
  # A tiny table may be too small for that, which is said.
  jq -e '([.ladder.steps[] | select(.tier == "memory") | select(.rung == "RB" and .published_low == 1.2)] | length)
         + ([.ladder.left_out[] | select(startswith("RB, memory: "))] | length) == 1' ladder.json
  # The modelled disk's time is virtual: its signs hold on any machine.
  jq -e '[.ladder.steps[] | select(.tier == "storage" and .published_low != null) | .sign] | all(. != "OPPOSITE")' ladder.json
  jq -e '.ladder.opposite == ([.ladder.steps[] | .sign] | any(. == "OPPOSITE"))' ladder.json
  [ "$(jq -r .ladder.opposite ladder.json)" = "$([ "$status" -eq 3 ] && echo true || echo false)" ]
}
