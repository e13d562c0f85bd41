-- Jobs of the preprocessing service. One row per job.
DROP VIEW IF EXISTS job_summary;
CREATE VIEW job_summary AS SELECT
  job_id,
  job,                       -- its name
  state,                     -- running, complete, ended
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
