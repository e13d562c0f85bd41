-- What each operator did per stored interval, as it was counted. These columns add up over
-- intervals, where operator_interval has NULL for what one interval alone does not tell apart.
-- Nothing is looked up for a row, so that long courses are read fast. No row: it did nothing.
DROP VIEW IF EXISTS operator_delta;
CREATE VIEW operator_delta AS SELECT
  run_id,
  start_ns,          -- since the run began; its length is in step_interval
  operator_id,       -- within the run, as in operator_summary
  completions_count,
  rows_count,
  bytes_in_bytes,
  bytes_out_bytes,
  busy_ns,           -- c + b + q
  lock_wait_ns,      -- part of b
  wait_in_ns,
  wait_out_ns,
  on_cpu_ns,         -- c, most likely; NULL not measured
  runnable_ns,       -- q, most likely; NULL not measured
  on_cpu_low_ns,     -- c lies between these, NULL exact or not measured
  on_cpu_high_ns,
  enters_count,      -- NULL: recorded by an earlier version
  runnable_low_ns,   -- q lies between these, likewise
  runnable_high_ns
FROM operator_intervals;
