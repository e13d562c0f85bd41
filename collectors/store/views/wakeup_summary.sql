-- Who wakes whom: one row per (run, waking thread group, woken thread group, cause of the sleep).
DROP VIEW IF EXISTS wakeup_summary;
CREATE VIEW wakeup_summary AS SELECT
  run_id,
  CAST(CASE WHEN instr(subject, '/') > 0 THEN substr(subject, 1, instr(subject, '/') - 1) END
       AS INTEGER) AS waker_pid,
  substr(subject, instr(subject, '/') + 1) AS waker_thread,
  process AS wakee_process,
  pid AS wakee_pid,
  thread AS wakee_thread,
  cause,               -- what the woken thread waited for
  CAST(value AS INTEGER) AS wakeups_count
FROM measurement_summary WHERE metric = 'wakeups_count';
