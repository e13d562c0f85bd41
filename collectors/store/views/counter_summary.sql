-- Hardware and software performance counters and what is computed from them. One row per (run,
-- metric, labels).
DROP VIEW IF EXISTS counter_summary;
CREATE VIEW counter_summary AS SELECT
  run_id, metric, unit, kind, source, operator, stage, process_id, process, pid, thread, subject,
  cause,
  value,
  running_ratio  -- share of the time the counter really counted; the value is scaled by it
FROM measurement_summary
WHERE bucket IS NULL AND (running_ratio IS NOT NULL
  OR metric IN ('cycles_count', 'instructions_count', 'ipc_ratio', 'branches_count',
    'task_clock_ns', 'cpu_migrations_count', 'counter_samples_count', 'memory_read_bytes',
    'memory_write_bytes', 'memory_bytes', 'energy_joules')
  OR metric LIKE '%\_misses\_count' ESCAPE '\' OR metric LIKE 'topdown\_%' ESCAPE '\'
  OR metric LIKE 'stalls\_%' ESCAPE '\');
