-- Events that were lost, by kind. One row per (run, kind).
DROP VIEW IF EXISTS loss_summary;
CREATE VIEW loss_summary AS SELECT
  run_id,
  what,
  lost_count,
  total_count  -- lost and kept; NULL unknown
FROM losses;
