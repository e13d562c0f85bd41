-- The comparisons (A/B) made or shown with this database. One row per comparison, of no single run.
DROP VIEW IF EXISTS comparison_summary;
CREATE VIEW comparison_summary AS SELECT
  comparison_id,
  name,
  started_realtime_ns,  -- since 1970
  duration_ns,          -- NULL: not finished
  state,                -- running, complete, interrupted, failed
  a_label,              -- what side A is: a setting, a file, a run, a command
  b_label,
  seed,                 -- of the order of the runs and of the resampling, in decimal
  verdict,              -- faster, slower, same, cannot_tell; '': none
  -- Pairs of which both runs count.
  (SELECT COUNT(*) FROM (SELECT 1 FROM comparison_runs AS r WHERE r.comparison_id = c.comparison_id
   GROUP BY r.pair_index HAVING COUNT(DISTINCT r.side) = 2 AND MAX(r.left_out) = '') AS whole_pairs)
    AS pairs_count,
  result_json           -- as `headrace compare --json` printed it
FROM comparisons AS c;
