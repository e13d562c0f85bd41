-- Threads by process and name: CPU, run queue, switches. One row per (run, process, thread group);
-- thread '' is time inside operators, whatever the thread. By eBPF where it counted, else by the
-- scheduler's own accounts in /proc, which lose what ended between two readings.
DROP VIEW IF EXISTS thread_summary;
CREATE VIEW thread_summary AS SELECT
  run_id,
  process_id,
  process,
  pid,
  thread,                     -- name with digits at its end left out
  COALESCE(SUM(CASE WHEN metric = 'on_cpu_ns' THEN value END),
           SUM(CASE WHEN metric = 'thread_on_cpu_ns' THEN value END))
    AS on_cpu_ns,             -- NULL not measured
  COALESCE(SUM(CASE WHEN metric = 'runnable_ns' THEN value END),
           SUM(CASE WHEN metric = 'thread_runnable_ns' THEN value END))
    AS runnable_ns,           -- ready, no CPU free
  SUM(CASE WHEN metric = 'runnable_count' THEN value END) AS runnable_count,
  SUM(CASE WHEN metric = 'off_cpu_ns' THEN value END) AS blocked_ns,      -- all causes together
  SUM(CASE WHEN metric = 'off_cpu_wait_ns' THEN value END) AS wait_ns,    -- waits of operators
  COALESCE(SUM(CASE WHEN metric = 'switches_count' AND cause = 'voluntary' THEN value END),
           SUM(CASE WHEN metric = 'thread_switches_count' AND cause = 'voluntary' THEN value END))
    AS voluntary_switches_count,
  COALESCE(SUM(CASE WHEN metric = 'switches_count' AND cause = 'involuntary' THEN value END),
           SUM(CASE WHEN metric = 'thread_switches_count' AND cause = 'involuntary' THEN value END))
    AS involuntary_switches_count,
  MAX(source) AS source
FROM measurement_summary
WHERE pid IS NOT NULL AND metric IN ('on_cpu_ns', 'runnable_ns', 'runnable_count', 'off_cpu_ns',
  'off_cpu_wait_ns', 'switches_count', 'thread_on_cpu_ns', 'thread_runnable_ns',
  'thread_switches_count')
GROUP BY run_id, process_id, process, pid, thread;
