-- The course of the consumer's steps, as deltas per stored interval.
DROP VIEW IF EXISTS step_interval;
CREATE VIEW step_interval AS SELECT
  run_id,
  start_ns,                         -- since the run began
  duration_ns,
  steps_count,                      -- steps that ended in the interval
  step_rows_count AS rows_count,
  step_wait_ns AS wait_ns,
  step_compute_ns AS compute_ns
FROM intervals;
