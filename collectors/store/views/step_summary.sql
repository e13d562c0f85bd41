-- The consumer's steps over the whole run. One row per run that has steps.
DROP VIEW IF EXISTS step_summary;
CREATE VIEW step_summary AS SELECT
  s.run_id,
  s.steps_count,
  s.rows_count,
  s.wait_ns,                            -- waited for a batch
  s.compute_ns,                         -- worked on it
  s.last_ns - s.first_ns AS wall_ns,    -- from the begin of the first step to the end of the last
  (SELECT MIN(step_ns) FROM (
     SELECT step_ns, SUM(steps_count) OVER (ORDER BY step_ns) AS below, SUM(steps_count) OVER () AS n
     FROM step_histogram WHERE run_id = s.run_id) AS buckets WHERE below * 100 >= n * 50)
    AS step_p50_ns,                     -- wait + compute; within 1 %; NULL no step seen
  (SELECT MIN(step_ns) FROM (
     SELECT step_ns, SUM(steps_count) OVER (ORDER BY step_ns) AS below, SUM(steps_count) OVER () AS n
     FROM step_histogram WHERE run_id = s.run_id) AS buckets WHERE below * 100 >= n * 99)
    AS step_p99_ns                      -- wait + compute; within 1 %; NULL no step seen
FROM steps AS s;
