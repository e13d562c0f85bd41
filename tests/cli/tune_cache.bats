#!/usr/bin/env bats
# headrace tune --cache: a cache is decided for where it pays, set by starting the pipeline again, and compared.

load helpers

setup_file() { "${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}" generate rm1 -o "$BATS_FILE_TMPDIR/rm1" --rows 4000 --features 0.1 --seed 1 > /dev/null 2>&1; }

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }
pipeline() { echo "$BATS_FILE_TMPDIR/rm1/pipeline.toml"; }

@test "a cache that pays is set by a restart from the checkpoint, and no row comes twice" {
  not_slowed
  timeout 900 "$HEADRACE" tune "$(pipeline)" --max-decisions 1 --cache memory=1GiB --checkpoint at.ckpt -o plan.json --json > tuned.json
  jq '.decisions[-1]' tuned.json > decision.json
  fits_schema decision decision.json
  jq -e '.action == "cache" and .verdict == "kept" and .effect_ratio > 0.1 and .start_settings["cache.tier"] == "memory"' decision.json
  jq -e '.predicted_batches_per_second > .now_batches_per_second' decision.json
  jq -e '.settings["cache.after"] != null and .settings["cache.budget"] != null' plan.json
  # Two runs, the second the first's continuation: the checkpoint knows the rows of both, once.
  first=$("$HEADRACE" query "SELECT rows_count FROM step_summary WHERE run_id = 1" --format csv | tail -n 1)
  second=$("$HEADRACE" query "SELECT rows_count FROM step_summary WHERE run_id = 2" --format csv | tail -n 1)
  "$HEADRACE" run "$(pipeline)" --set source.epochs=0 --plan plan.json --checkpoint at.ckpt --resume --duration 500ms --json --quiet > after.json
  [ "$(jq .resumed_rows_count after.json)" -eq $((first + second)) ]
}
