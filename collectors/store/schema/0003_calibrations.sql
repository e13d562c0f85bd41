-- Version 3: the ceilings of machines, measured by `headrace doctor --calibrate`. They belong to a
-- machine, not to a run; a run is compared with the latest calibration of its host and CPU.

CREATE TABLE calibrations (
  calibration_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  measured_realtime_ns INTEGER NOT NULL,         -- since 1970
  hostname             TEXT NOT NULL DEFAULT '',
  kernel               TEXT NOT NULL DEFAULT '',
  cpu_model            TEXT NOT NULL DEFAULT '',
  folder               TEXT NOT NULL DEFAULT '', -- whose storage was measured
  headrace_version     TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE ceilings (
  calibration_id    INTEGER NOT NULL REFERENCES calibrations ON DELETE CASCADE,
  ceiling_id        INTEGER NOT NULL,            -- in the order measured
  metric            TEXT NOT NULL,               -- ends in its unit: memory_read_bytes_per_s
  unit              TEXT NOT NULL,
  subject           TEXT NOT NULL DEFAULT '',    -- codec, hash, cipher, clock
  threads_count     INTEGER,                     -- NULL: does not apply
  size_bytes        INTEGER,                     -- of a request, block or working set
  depth_count       INTEGER,                     -- requests in flight
  value             REAL NOT NULL,               -- the best of the repetitions
  minimum_value     REAL NOT NULL,               -- over the repetitions
  maximum_value     REAL NOT NULL,
  repetitions_count INTEGER NOT NULL,
  note              TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (calibration_id, ceiling_id)
) STRICT, WITHOUT ROWID;
