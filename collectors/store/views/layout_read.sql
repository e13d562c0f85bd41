-- The reads by which a run's projection is fetched from a stripe: wanted ranges, joined over short holes. Of the
-- stripes that layout_stream has. One row per (run, stripe, offset).
DROP VIEW IF EXISTS layout_read;
CREATE VIEW layout_read AS SELECT
  run_id,
  stripe_index,  -- as in layout_stripe
  offset_bytes,  -- in the file
  read_bytes,
  wanted_bytes
FROM layout_reads;
