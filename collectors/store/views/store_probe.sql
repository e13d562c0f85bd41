-- What a stage got from its store with more threads for a moment. One row per (run, stage, start).
DROP VIEW IF EXISTS store_probe;
CREATE VIEW store_probe AS SELECT
  run_id,
  start_ns,            -- since the run began: from when there were more threads
  duration_ns,         -- until there were as many as before
  stage,
  few_count,           -- threads before and after
  many_count,          -- in between
  few_rows_per_s,      -- of the stage
  many_rows_per_s,
  few_blocked_ratio,   -- share of its threads' time blocked in operators, locks left out
  many_blocked_ratio
FROM store_probes;
