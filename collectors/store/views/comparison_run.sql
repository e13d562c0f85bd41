-- The runs of comparisons in the order in which they were made. One row per run of a comparison.
DROP VIEW IF EXISTS comparison_run;
CREATE VIEW comparison_run AS SELECT
  comparison_id,
  order_index,  -- from 0
  pair_index,
  side,         -- a, b
  run_id,       -- may be gone from the database; NULL: made no run
  left_out      -- why it does not count; '': it does
FROM comparison_runs;
