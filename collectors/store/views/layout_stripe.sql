-- The stripes of the table that a run read, in the order of its files. One row per (run, stripe).
DROP VIEW IF EXISTS layout_stripe;
CREATE VIEW layout_stripe AS SELECT
  run_id,
  stripe_index,          -- over all files, from 0
  file,
  offset_bytes,          -- of its first stream in the file
  stored_bytes,          -- of its index and data areas
  rows_count,
  streams_count,
  wanted_streams_count,
  wanted_bytes,          -- of streams that the projection needs
  over_read_bytes,       -- in reads, and not wanted
  stored_bytes - wanted_bytes - over_read_bytes AS skipped_bytes,
  reads_count
FROM layout_stripes;
