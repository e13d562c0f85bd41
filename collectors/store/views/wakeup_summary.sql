-- Who wakes whom: one row per (run, waking thread group, woken thread group, cause of the sleep).
DROP VIEW IF EXISTS wakeup_summary;
CREATE VIEW wakeup_summary AS SELECT
  run_id,
  -- The subject is 'PID/THREAD': what is left of it without its leading digits begins with the '/'.
  CAST(NULLIF(SUBSTR(subject, 1, LENGTH(subject) - LENGTH(LTRIM(subject, '0123456789'))), '')
       AS INTEGER) AS waker_pid,
  SUBSTR(LTRIM(subject, '0123456789'), 2) AS waker_thread,
  process AS wakee_process,
  pid AS wakee_pid,
  thread AS wakee_thread,
  cause,               -- what the woken thread waited for
  CAST(value AS INTEGER) AS wakeups_count
FROM measurement_summary WHERE metric = 'wakeups_count';
