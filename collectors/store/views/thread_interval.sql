-- What each group of threads did over time: the lanes of threads. One row per (run, process, thread group, start).
-- As the scheduler counts whole threads; what they were neither on a core nor ready, they were blocked.
DROP VIEW IF EXISTS thread_interval;
CREATE VIEW thread_interval AS SELECT
  run_id,
  start_ns,                            -- since the run began
  MAX(duration_ns) AS duration_ns,
  process_id,
  process,
  pid,
  thread,                              -- name with digits at its end left out
  SUM(CASE WHEN metric = 'threads_count' THEN value END)
    AS threads_count,                  -- mean over the interval; NULL: not counted in it
  SUM(CASE WHEN metric = 'thread_on_cpu_ns' THEN value ELSE 0 END)
    AS on_cpu_ns,                      -- summed over the threads
  SUM(CASE WHEN metric = 'thread_runnable_ns' THEN value ELSE 0 END)
    AS runnable_ns,                    -- ready, no CPU free
  SUM(CASE WHEN metric = 'thread_switches_count' AND cause = 'voluntary' THEN value ELSE 0 END)
    AS voluntary_switches_count,
  SUM(CASE WHEN metric = 'thread_switches_count' AND cause = 'involuntary' THEN value ELSE 0 END)
    AS involuntary_switches_count
FROM measurement_interval
WHERE pid IS NOT NULL AND thread <> '' AND metric IN ('threads_count', 'thread_on_cpu_ns',
  'thread_runnable_ns', 'thread_switches_count')
GROUP BY run_id, start_ns, process_id, process, pid, thread;
