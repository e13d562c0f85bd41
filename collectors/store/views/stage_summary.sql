-- Threads of each stage over the whole run. One row per (run, stage).
DROP VIEW IF EXISTS stage_summary;
CREATE VIEW stage_summary AS SELECT
  s.run_id,
  s.stage,                   -- '' collects threads that joined no stage
  s.stage_index,             -- order along the pipeline
  CASE WHEN s.observed_ns > 0 THEN CAST(s.parallelism_ns AS REAL) / s.observed_ns
       ELSE CAST(s.last_parallelism_count AS REAL) END
    AS parallelism_count,    -- threads set, mean over the time the stage existed
  s.last_parallelism_count,  -- threads set at the end
  s.max_parallelism_count,   -- 0 no limit, 1 sequential by nature
  s.lifetime_ns,             -- sum over the stage's threads: c + b + q + w + unattributed
  s.on_cpu_ns,               -- by the scheduler's accounts; NULL not readable
  s.runnable_ns,             -- waiting for a CPU, by the scheduler's accounts; NULL not readable
  s.unattributed_ns          -- part of lifetime outside every operator
FROM stages AS s;
