-- The course of each operator: its counters as deltas per stored interval. No row: it did nothing.
DROP VIEW IF EXISTS operator_interval;
CREATE VIEW operator_interval AS SELECT
  i.run_id,
  i.start_ns,           -- since the run began
  i.duration_ns,
  o.operator,
  COALESCE(s.stage, '') AS stage,
  COALESCE(s.stage_index, o.stage_id) AS stage_index,
  o.position_index,
  i.completions_count,
  i.rows_count,
  i.bytes_in_bytes,
  i.bytes_out_bytes,
  i.busy_ns,            -- c + b + q
  i.on_cpu_ns,          -- c; NULL not separated
  CASE WHEN i.busy_ns < i.on_cpu_ns + i.runnable_ns THEN 0
       ELSE i.busy_ns - i.on_cpu_ns - i.runnable_ns END
    AS blocked_ns,      -- b; NULL not separated
  i.runnable_ns,        -- q; NULL not separated
  i.lock_wait_ns,       -- part of b
  i.wait_in_ns,
  i.wait_out_ns,
  i.on_cpu_low_ns,      -- c lies between these, NULL exact or not known
  i.on_cpu_high_ns,
  CASE WHEN i.busy_ns < i.on_cpu_high_ns + i.runnable_high_ns THEN 0
       ELSE i.busy_ns - i.on_cpu_high_ns - i.runnable_high_ns END
    AS blocked_low_ns,  -- b lies between these
  CASE WHEN i.busy_ns < i.on_cpu_low_ns + i.runnable_low_ns THEN 0
       ELSE i.busy_ns - i.on_cpu_low_ns - i.runnable_low_ns END
    AS blocked_high_ns,
  i.enters_count        -- NULL: recorded by an earlier version
FROM (
  -- What is told apart: c where its bounds are close, q where those of c and q together are.
  SELECT
    run_id, start_ns, duration_ns, operator_id, completions_count, rows_count, bytes_in_bytes, bytes_out_bytes,
    busy_ns, lock_wait_ns, wait_in_ns, wait_out_ns,
    on_cpu_low_ns, on_cpu_high_ns, runnable_low_ns, runnable_high_ns, enters_count,
    CASE WHEN on_cpu_high_ns - on_cpu_low_ns
              > (SELECT known_ratio FROM split_rule) * busy_ns
              AND on_cpu_high_ns - on_cpu_low_ns
              > (SELECT small_ratio FROM split_rule) * duration_ns THEN NULL
         WHEN on_cpu_ns < on_cpu_low_ns THEN on_cpu_low_ns
         WHEN on_cpu_ns > on_cpu_high_ns THEN on_cpu_high_ns
         ELSE on_cpu_ns END AS on_cpu_ns,
    CASE WHEN on_cpu_high_ns - on_cpu_low_ns + runnable_high_ns - runnable_low_ns
              > (SELECT known_ratio FROM split_rule) * busy_ns
              AND on_cpu_high_ns - on_cpu_low_ns + runnable_high_ns - runnable_low_ns
              > (SELECT small_ratio FROM split_rule) * duration_ns THEN NULL
         ELSE runnable_ns END AS runnable_ns
  FROM operator_intervals JOIN intervals USING (run_id, start_ns)
) AS i
JOIN operators AS o USING (run_id, operator_id)
LEFT JOIN stages AS s ON s.run_id = i.run_id AND s.stage_id = o.stage_id;
