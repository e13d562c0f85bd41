-- What each group of threads did over time: the lanes of threads. One row per (run, process, thread group, start)
-- in which a counter of it grew. As the scheduler counts whole threads; what they were neither on a core nor ready,
-- they were blocked. Of counters NULL is: not measured in this interval, or it did not grow.
DROP VIEW IF EXISTS thread_interval;
CREATE VIEW thread_interval AS SELECT
  c.run_id,
  c.start_ns,                          -- since the run began
  c.duration_ns,
  c.process_id,
  p.process,
  p.pid,
  c.thread,                            -- name with digits at its end left out
  -- A gauge's intervals may begin at other times than those of counters: it is the one in the middle of this interval.
  (SELECT i.value FROM measurement_intervals AS i
   WHERE i.run_id = c.run_id AND i.measurement_id = g.measurement_id
     AND i.start_ns + i.duration_ns > c.start_ns + c.duration_ns / 2
     AND i.start_ns = (SELECT MAX(b.start_ns) FROM measurement_intervals AS b WHERE b.run_id = c.run_id
       AND b.measurement_id = g.measurement_id AND b.start_ns <= c.start_ns + c.duration_ns / 2))
    AS threads_count,                  -- mean over the interval; NULL: not counted in it
  c.on_cpu_ns,                         -- summed over the threads
  c.runnable_ns,                       -- ready, no CPU free
  c.voluntary_switches_count,
  c.involuntary_switches_count
FROM (SELECT
    d.run_id,
    t.start_ns,
    MAX(t.duration_ns) AS duration_ns,
    d.process_id,
    d.thread,
    SUM(CASE WHEN d.metric = 'thread_on_cpu_ns' THEN t.value END) AS on_cpu_ns,
    SUM(CASE WHEN d.metric = 'thread_runnable_ns' THEN t.value END) AS runnable_ns,
    SUM(CASE WHEN d.metric = 'thread_switches_count' AND d.cause = 'voluntary' THEN t.value END)
      AS voluntary_switches_count,
    SUM(CASE WHEN d.metric = 'thread_switches_count' AND d.cause = 'involuntary' THEN t.value END)
      AS involuntary_switches_count
  FROM measurements AS d
  JOIN measurement_intervals AS t ON t.run_id = d.run_id AND t.measurement_id = d.measurement_id
  WHERE d.thread <> '' AND d.metric IN ('thread_on_cpu_ns', 'thread_runnable_ns', 'thread_switches_count')
  GROUP BY d.run_id, t.start_ns, d.process_id, d.thread) AS c
JOIN processes AS p ON p.run_id = c.run_id AND p.process_id = c.process_id
LEFT JOIN (
  SELECT run_id, process_id, thread, MIN(measurement_id) AS measurement_id
  FROM measurements WHERE metric = 'threads_count' AND thread <> '' GROUP BY run_id, process_id, thread) AS g
  ON g.run_id = c.run_id AND g.process_id = c.process_id AND g.thread = c.thread;
