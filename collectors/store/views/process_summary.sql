-- The processes of the recorded tree. One row per (run, process). CPU time and page faults are
-- eBPF's where it counted, to the process's last instant; else what /proc said at the last reading,
-- once a second.
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
  CASE WHEN p.ended_ns < p.started_ns THEN p.started_ns ELSE p.ended_ns END AS ended_ns,
  p.exit_text,     -- '' unknown or alive
  p.session_id,    -- pid of the process that began its session; NULL not seen
  COALESCE(d.on_cpu_ns, d.read_cpu_ns) AS cpu_ns,  -- NULL not measured: it lived between readings
  COALESCE(d.minor_count, d.read_minor_count) AS minor_faults_count,
  COALESCE(d.major_count, d.read_major_count) AS major_faults_count,  -- those that read a device
  CASE WHEN d.on_cpu_ns IS NOT NULL THEN 0
       WHEN d.read_cpu_ns IS NULL THEN NULL
       WHEN p.ended_ns IS NULL THEN 0
       ELSE 1 END
    AS cpu_is_least,  -- 1: it ended after the last reading; what it did then is not in cpu_ns
  d.mean_rss_bytes,
  d.maximum_rss_bytes,
  d.read_bytes,    -- from devices
  d.threads_count  -- most seen
FROM processes AS p LEFT JOIN (
  SELECT run_id, process_id,
    SUM(CASE WHEN metric = 'on_cpu_ns' THEN last_value END) AS on_cpu_ns,
    MAX(CASE WHEN metric = 'process_cpu_ns' THEN last_value END) AS read_cpu_ns,
    SUM(CASE WHEN metric = 'page_faults_count' AND cause IN ('minor', 'any') THEN last_value END)
      AS minor_count,
    SUM(CASE WHEN metric = 'page_faults_count' AND cause = 'major' THEN last_value END)
      AS major_count,
    MAX(CASE WHEN metric = 'process_page_faults_count' AND cause = 'minor' THEN last_value END)
      AS read_minor_count,
    MAX(CASE WHEN metric = 'process_page_faults_count' AND cause = 'major' THEN last_value END)
      AS read_major_count,
    MAX(CASE WHEN metric = 'process_rss_bytes' AND weight_ns > 0
        THEN weighted_sum / weight_ns END) AS mean_rss_bytes,
    MAX(CASE WHEN metric = 'process_rss_bytes' THEN maximum_value END) AS maximum_rss_bytes,
    MAX(CASE WHEN metric = 'process_read_bytes' THEN last_value END) AS read_bytes,
    MAX(CASE WHEN metric = 'process_threads_count' THEN maximum_value END) AS threads_count
  FROM measurements
  WHERE metric IN ('on_cpu_ns', 'page_faults_count', 'process_cpu_ns', 'process_page_faults_count',
    'process_rss_bytes', 'process_read_bytes', 'process_threads_count')
    AND process_id IS NOT NULL
  GROUP BY run_id, process_id) AS d USING (run_id, process_id);
