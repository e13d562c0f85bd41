-- Moments that somebody marked while a run was recorded (key m of 'headrace top'). One row per (run, moment).
DROP VIEW IF EXISTS run_mark;
CREATE VIEW run_mark AS SELECT
  run_id,
  at_ns,  -- since the run began
  text
FROM run_marks;
