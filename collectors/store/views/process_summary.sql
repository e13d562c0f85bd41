-- The processes of the recorded tree. One row per (run, process).
DROP VIEW IF EXISTS process_summary;
CREATE VIEW process_summary AS SELECT
  p.run_id,
  p.process_id,
  p.pid,
  p.parent_pid,
  p.process,       -- short name
  p.command,
  p.role,          -- root, child
  p.has_accounts,  -- 1: keeps operator accounts
  p.started_ns,    -- since the run began; negative: before it
  -- NULL: alive at the end of the recording. Seen to end before it was seen to begin: as it began.
  MAX(p.ended_ns, p.started_ns) AS ended_ns,
  p.exit_text,     -- '' unknown or alive
  d.cpu_ns,        -- NULL not measured
  d.mean_rss_bytes,
  d.maximum_rss_bytes,
  d.read_bytes,    -- from devices
  d.threads_count  -- most seen
FROM processes AS p LEFT JOIN (
  SELECT run_id, process_id,
    MAX(CASE WHEN metric = 'process_cpu_ns' THEN last_value END) AS cpu_ns,
    MAX(CASE WHEN metric = 'process_rss_bytes' AND weight_ns > 0
        THEN weighted_sum / weight_ns END) AS mean_rss_bytes,
    MAX(CASE WHEN metric = 'process_rss_bytes' THEN maximum_value END) AS maximum_rss_bytes,
    MAX(CASE WHEN metric = 'process_read_bytes' THEN last_value END) AS read_bytes,
    MAX(CASE WHEN metric = 'process_threads_count' THEN maximum_value END) AS threads_count
  FROM measurements
  WHERE metric IN ('process_cpu_ns', 'process_rss_bytes', 'process_read_bytes',
    'process_threads_count') AND process_id IS NOT NULL
  GROUP BY run_id, process_id) AS d USING (run_id, process_id);
