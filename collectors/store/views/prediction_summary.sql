-- What a plan predicted of the runs that it was applied to, and what they did. One row per such run.
DROP VIEW IF EXISTS prediction_summary;
CREATE VIEW prediction_summary AS SELECT
  run_id,
  from_run_id,                  -- the run it was predicted from; may be gone
  batches_per_second,           -- predicted
  low,                          -- 90 % interval
  high,
  limited_by,
  limited_by_kind,              -- consumer, cores, stage, lock, device, order
  -- Between the first fifth of the run (a second at most) and its last interval; NULL: too short.
  -- Predictions are of the steady phase, which the report finds: where the run changed for good, or
  -- read a cold table first, this is another rate.
  (SELECT SUM(i.steps_count) * 1e9 / SUM(i.duration_ns) FROM step_interval AS i
   WHERE i.run_id = p.run_id AND (i.start_ns >= r.duration_ns / 5 OR i.start_ns >= 1000000000)
     AND i.start_ns < (SELECT MAX(start_ns) FROM step_interval WHERE run_id = p.run_id))
    AS observed_batches_per_second
FROM predictions AS p JOIN runs AS r USING (run_id);
