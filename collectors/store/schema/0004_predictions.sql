-- Version 4: what was predicted of a run before it began, by the plan that it was started with. Beside
-- what was then observed it tells how wrong predictions are on this machine.

CREATE TABLE predictions (
  run_id             INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  from_run_id        INTEGER,                    -- the run it was predicted from; may be gone
  batches_per_second REAL NOT NULL,
  low                REAL,                       -- 90 % interval
  high               REAL,
  limited_by         TEXT NOT NULL DEFAULT '',
  limited_by_kind    TEXT NOT NULL DEFAULT ''    -- consumer, cores, stage, lock, device, order
) STRICT;
