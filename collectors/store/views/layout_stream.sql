-- What follows on what within a stripe, and what a run's projection reads of it: adjacent streams of one key
-- of one column are one row. Of the table's first stripes. One row per (run, stripe, offset).
DROP VIEW IF EXISTS layout_stream;
CREATE VIEW layout_stream AS SELECT
  run_id,
  stripe_index,   -- as in layout_stripe
  offset_bytes,   -- in the file
  stored_bytes,
  area,           -- index, data; none: no stream that can be read lies here
  column_name,    -- '': streams of several columns, or of none
  feature_key,    -- of a flattened map; '': not of one key
  streams_count,
  wanted_bytes,
  over_read_bytes,
  stored_bytes - wanted_bytes - over_read_bytes AS skipped_bytes
FROM layout_streams;
