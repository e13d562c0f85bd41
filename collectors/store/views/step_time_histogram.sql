-- How long the steps of a run took. One row per (run, bucket).
DROP VIEW IF EXISTS step_time_histogram;
CREATE VIEW step_time_histogram AS SELECT
  run_id,
  step_ns,      -- wait + compute: middle of the bucket, a fiftieth wide
  steps_count
FROM step_histogram;
