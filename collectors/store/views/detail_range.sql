-- Where the flight recorder kept full detail. One row per (run, range).
DROP VIEW IF EXISTS detail_range;
CREATE VIEW detail_range AS SELECT
  run_id,
  start_ns,  -- since the run began
  end_ns,
  reason     -- what pulled the trigger
FROM detail_ranges;
