-- How long the steps of an interval took. One row per (run, interval, bucket). Empty in runs recorded
-- before schema 16. Buckets of several intervals add up, quantiles do not.
DROP VIEW IF EXISTS step_time_interval;
CREATE VIEW step_time_interval AS SELECT
  run_id,
  start_ns,     -- since the run began
  step_ns,      -- wait + compute: middle of the bucket, a tenth wide
  steps_count,
  SUM(steps_count) OVER (PARTITION BY run_id, start_ns ORDER BY step_ns) * 1.0
    / SUM(steps_count) OVER (PARTITION BY run_id, start_ns)
    AS below_ratio  -- of the interval's steps, those that took no longer than this bucket's
FROM step_time_intervals;
