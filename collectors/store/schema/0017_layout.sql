-- Version 17: where everything is in the table that a run read, and what of it the run's projection reads.

CREATE TABLE layouts (
  run_id              INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  reason              TEXT,     -- why the layout is not known; NULL: it is
  gap_bytes           INTEGER,  -- holes up to this long are read over
  most_read_bytes     INTEGER,  -- no joined read is longer
  whole_stripes       INTEGER,  -- 1: every stripe is read whole, for its checksum
  files_count         INTEGER,
  file_bytes          INTEGER,
  stripes_count       INTEGER,  -- of the table
  known_stripes_count INTEGER,  -- of which there are rows: the first ones
  features_count      INTEGER,  -- that the projection names
  columns_count       INTEGER
) STRICT;

-- The stripes of the table, in the order of its files.
CREATE TABLE layout_stripes (
  run_id                INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  stripe_index          INTEGER NOT NULL,  -- over all files, from 0
  file                  TEXT NOT NULL,
  offset_bytes          INTEGER NOT NULL,  -- of its first stream in the file
  stored_bytes          INTEGER NOT NULL,  -- of its index and data areas
  rows_count            INTEGER NOT NULL,
  streams_count         INTEGER NOT NULL,
  wanted_streams_count  INTEGER NOT NULL,
  wanted_bytes          INTEGER NOT NULL,  -- of streams that the projection needs
  over_read_bytes       INTEGER NOT NULL,  -- in reads, and not wanted
  reads_count           INTEGER NOT NULL,
  PRIMARY KEY (run_id, stripe_index)
) STRICT, WITHOUT ROWID;

-- What follows on what within a stripe: adjacent streams of one key of one column are one row.
CREATE TABLE layout_streams (
  run_id          INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  stripe_index    INTEGER NOT NULL,
  offset_bytes    INTEGER NOT NULL,  -- in the file
  stored_bytes    INTEGER NOT NULL,
  area            TEXT NOT NULL,     -- index, data; none: no stream that can be read lies here
  column_name     TEXT NOT NULL,     -- '': streams of several columns, or of none
  feature_key     TEXT NOT NULL,     -- of a flattened map; '': not of one key
  streams_count   INTEGER NOT NULL,
  wanted_bytes    INTEGER NOT NULL,
  over_read_bytes INTEGER NOT NULL,
  PRIMARY KEY (run_id, stripe_index, offset_bytes)
) STRICT, WITHOUT ROWID;

CREATE TABLE layout_reads (
  run_id       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  stripe_index INTEGER NOT NULL,
  offset_bytes INTEGER NOT NULL,  -- in the file
  read_bytes   INTEGER NOT NULL,
  wanted_bytes INTEGER NOT NULL,
  PRIMARY KEY (run_id, stripe_index, offset_bytes)
) STRICT, WITHOUT ROWID;
