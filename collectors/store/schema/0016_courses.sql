-- Version 16: what the pages draw over time, without reading every operator of every interval.

-- Of a stage: the sums over its operators, c and q only where all of them have it. NULL: recorded by
-- an earlier version; the view adds up the operators then.
ALTER TABLE stages ADD COLUMN busy_ns INTEGER;
ALTER TABLE stages ADD COLUMN operators_on_cpu_ns INTEGER;
ALTER TABLE stages ADD COLUMN operators_runnable_ns INTEGER;
ALTER TABLE stages ADD COLUMN wait_in_ns INTEGER;
ALTER TABLE stages ADD COLUMN wait_out_ns INTEGER;

ALTER TABLE stage_intervals ADD COLUMN busy_ns INTEGER;
ALTER TABLE stage_intervals ADD COLUMN operators_on_cpu_ns INTEGER;
ALTER TABLE stage_intervals ADD COLUMN operators_runnable_ns INTEGER;
ALTER TABLE stage_intervals ADD COLUMN wait_in_ns INTEGER;
ALTER TABLE stage_intervals ADD COLUMN wait_out_ns INTEGER;

-- How long the steps of an interval took: quantiles over time.
CREATE TABLE step_time_intervals (
  run_id      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns    INTEGER NOT NULL,
  step_ns     INTEGER NOT NULL,  -- wait + compute: middle of the bucket, a tenth wide
  steps_count INTEGER NOT NULL,
  PRIMARY KEY (run_id, start_ns, step_ns)
) STRICT, WITHOUT ROWID;
