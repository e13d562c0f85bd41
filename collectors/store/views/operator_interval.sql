-- The course of each operator: its counters as deltas per stored interval. No row: it did nothing.
DROP VIEW IF EXISTS operator_interval;
CREATE VIEW operator_interval AS SELECT
  i.run_id,
  i.start_ns,           -- since the run began
  t.duration_ns,
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
  CASE WHEN i.on_cpu_ns IS NULL OR i.runnable_ns IS NULL THEN NULL
       ELSE MAX(0, i.busy_ns - i.on_cpu_ns - i.runnable_ns) END
    AS blocked_ns,      -- b; NULL not separated
  i.runnable_ns,        -- q; NULL not separated
  i.lock_wait_ns,       -- part of b
  i.wait_in_ns,
  i.wait_out_ns
FROM operator_intervals AS i
JOIN intervals AS t USING (run_id, start_ns)
JOIN operators AS o USING (run_id, operator_id)
LEFT JOIN stages AS s ON s.run_id = i.run_id AND s.stage_id = o.stage_id;
