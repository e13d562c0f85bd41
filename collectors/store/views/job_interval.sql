-- The course of a job as its dispatcher saw it. One row per interval.
DROP VIEW IF EXISTS job_interval;
CREATE VIEW job_interval AS SELECT
  m.job_id,
  i.run_id,                             -- of the dispatcher
  i.start_ns,                           -- since that run began
  i.duration_ns,
  i.running_ns,                         -- all ranks had joined
  i.leases_count,
  i.again_count AS leased_again_count,  -- leases of a split that was leased before
  i.again_rows AS leased_again_rows_count,
  i.lost_count AS workers_lost_count,   -- while they had splits
  i.serving_ns,                         -- integral of the workers connected and not silent
  i.no_split_ns,                        -- of it: they had asked, and no split was left to lease
  i.wanted_count,                       -- workers wanted at its end; NULL nobody says
  i.late_ns,                            -- the dispatcher did nothing of what it does ten times a second
  i.left_rows AS left_rows_count        -- rows not admitted at its end; NULL not known
FROM job_intervals AS i JOIN members AS m USING (run_id);
