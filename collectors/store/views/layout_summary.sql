-- Where everything is in the table that a run read, and what the run's projection reads of it in one pass.
-- One row per run that `headrace run` recorded.
DROP VIEW IF EXISTS layout_summary;
CREATE VIEW layout_summary AS SELECT
  l.run_id,
  l.reason,               -- why the layout is not known; NULL: it is
  l.gap_bytes,            -- holes up to this long are read over
  l.most_read_bytes,      -- no joined read is longer
  l.whole_stripes,        -- 1: every stripe is read whole, for its checksum
  l.files_count,
  l.file_bytes,
  l.stripes_count,        -- of the table
  l.known_stripes_count,  -- of which views layout_stripe has rows, the first ones; what follows is of these
  l.features_count,       -- that the projection names
  l.columns_count,
  -- Keys of flattened maps, in the stripes that view layout_stream has. NULL: recorded by an earlier version.
  l.detailed_stripes_count,
  l.stored_features_count,
  l.used_features_count,  -- of which some bytes are wanted
  l.stored_features_bytes,
  l.used_features_bytes,
  s.stored_bytes,         -- index and data areas
  s.wanted_bytes,         -- of streams that the projection needs
  s.over_read_bytes,      -- in reads, and not wanted
  s.skipped_bytes,        -- in no read
  s.reads_count
FROM layouts AS l LEFT JOIN (
  SELECT run_id, SUM(stored_bytes) AS stored_bytes, SUM(wanted_bytes) AS wanted_bytes,
    SUM(over_read_bytes) AS over_read_bytes,
    SUM(stored_bytes - wanted_bytes - over_read_bytes) AS skipped_bytes, SUM(reads_count) AS reads_count
  FROM layout_stripes GROUP BY run_id) AS s ON s.run_id = l.run_id;
