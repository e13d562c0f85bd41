-- The course of each stage, as deltas per stored interval.
DROP VIEW IF EXISTS stage_interval;
CREATE VIEW stage_interval AS SELECT
  i.run_id,
  i.start_ns,         -- since the run began
  t.duration_ns,
  s.stage,
  s.stage_index,
  CASE WHEN i.observed_ns > 0 THEN CAST(i.parallelism_ns AS REAL) / i.observed_ns ELSE 0.0 END
    AS parallelism_count,  -- threads set, mean over the interval
  i.lifetime_ns,      -- sum over the stage's threads
  i.on_cpu_ns,        -- NULL not readable
  i.runnable_ns,      -- NULL not readable
  i.unattributed_ns
FROM stage_intervals AS i
JOIN intervals AS t USING (run_id, start_ns)
JOIN stages AS s USING (run_id, stage_id);
