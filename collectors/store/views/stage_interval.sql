-- The course of each stage, as deltas per stored interval.
DROP VIEW IF EXISTS stage_interval;
CREATE VIEW stage_interval AS SELECT
  run_id,
  start_ns,               -- since the run began
  duration_ns,
  stage,
  stage_index,
  parallelism_count,      -- threads set, mean over the interval
  lifetime_ns,            -- sum over the stage's threads
  on_cpu_ns,              -- as the scheduler counts it; NULL not readable
  runnable_ns,            -- as the scheduler counts it; NULL not readable
  unattributed_ns,
  busy_ns,                -- c + b + q of its operators
  -- The sums are known where single operators share a reading of their thread's CPU clock, so that
  -- operator_interval has NULL.
  operators_on_cpu_ns,    -- c of its operators; NULL not separated
  CASE WHEN busy_ns < operators_on_cpu_ns + operators_runnable_ns THEN 0
       ELSE busy_ns - operators_on_cpu_ns - operators_runnable_ns END
    AS operators_blocked_ns,  -- b of its operators; NULL not separated
  operators_runnable_ns,  -- q of its operators; NULL not separated
  wait_in_ns,
  wait_out_ns
FROM (
  SELECT
    i.run_id, i.start_ns, t.duration_ns, s.stage, s.stage_index,
    CASE WHEN i.observed_ns > 0 THEN CAST(i.parallelism_ns AS REAL) / i.observed_ns ELSE 0.0 END
      AS parallelism_count,
    i.lifetime_ns, i.on_cpu_ns, i.runnable_ns, i.unattributed_ns,
    -- Runs of an earlier version have the operators' intervals only.
    CASE WHEN i.busy_ns IS NOT NULL THEN i.busy_ns ELSE
      (SELECT SUM(o.busy_ns) FROM operators AS p JOIN operator_intervals AS o
       ON o.run_id = i.run_id AND o.start_ns = i.start_ns AND o.operator_id = p.operator_id
       WHERE p.run_id = i.run_id AND p.stage_id = i.stage_id) END AS busy_ns,
    CASE WHEN i.busy_ns IS NOT NULL THEN i.operators_on_cpu_ns ELSE
      (SELECT CASE WHEN COUNT(o.on_cpu_ns) = COUNT(*) THEN SUM(o.on_cpu_ns) END
       FROM operators AS p JOIN operator_intervals AS o
       ON o.run_id = i.run_id AND o.start_ns = i.start_ns AND o.operator_id = p.operator_id
       WHERE p.run_id = i.run_id AND p.stage_id = i.stage_id) END AS operators_on_cpu_ns,
    CASE WHEN i.busy_ns IS NOT NULL THEN i.operators_runnable_ns ELSE
      (SELECT CASE WHEN COUNT(o.runnable_ns) = COUNT(*) THEN SUM(o.runnable_ns) END
       FROM operators AS p JOIN operator_intervals AS o
       ON o.run_id = i.run_id AND o.start_ns = i.start_ns AND o.operator_id = p.operator_id
       WHERE p.run_id = i.run_id AND p.stage_id = i.stage_id) END AS operators_runnable_ns,
    CASE WHEN i.busy_ns IS NOT NULL THEN i.wait_in_ns ELSE
      (SELECT SUM(o.wait_in_ns) FROM operators AS p JOIN operator_intervals AS o
       ON o.run_id = i.run_id AND o.start_ns = i.start_ns AND o.operator_id = p.operator_id
       WHERE p.run_id = i.run_id AND p.stage_id = i.stage_id) END AS wait_in_ns,
    CASE WHEN i.busy_ns IS NOT NULL THEN i.wait_out_ns ELSE
      (SELECT SUM(o.wait_out_ns) FROM operators AS p JOIN operator_intervals AS o
       ON o.run_id = i.run_id AND o.start_ns = i.start_ns AND o.operator_id = p.operator_id
       WHERE p.run_id = i.run_id AND p.stage_id = i.stage_id) END AS wait_out_ns
  FROM stage_intervals AS i
  JOIN intervals AS t USING (run_id, start_ns)
  JOIN stages AS s USING (run_id, stage_id)
) AS sums;
