-- Jobs of the preprocessing service. One row per job.
DROP VIEW IF EXISTS job_summary;
CREATE VIEW job_summary AS SELECT
  job_id,
  job,                       -- its name
  -- running, complete, ended; interrupted: its dispatcher died, and no other goes on with it
  CASE WHEN state = 'running' AND 'recording' <> (
    SELECT r.state FROM members AS m JOIN runs AS r USING (run_id)
    WHERE m.job_id = jobs.job_id AND m.role = 'dispatcher' ORDER BY m.run_id DESC LIMIT 1)
  THEN 'interrupted' ELSE state END AS state,
  mode,                      -- lockstep, independent
  ranks_count,
  epochs_count,
  splits_count,              -- of an epoch
  rows_count,                -- of all epochs
  left_rows_count,           -- not admitted; NULL not known
  largest_split_rows_count,
  unit_rows_count,           -- what a rank gets in one frame; 0: a split
  batch_rows_count,
  started_realtime_ns,       -- since 1970
  duration_ns
FROM jobs;
