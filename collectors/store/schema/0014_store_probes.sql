-- Version 14: what a stage got from its store with more threads for a moment, while the run went on.

CREATE TABLE store_probes (
  run_id             INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns           INTEGER NOT NULL,  -- since the run began: from when there were more threads
  duration_ns        INTEGER NOT NULL,  -- until there were as many as before
  stage              TEXT NOT NULL,
  few_count          INTEGER NOT NULL,  -- threads before and after
  many_count         INTEGER NOT NULL,  -- in between
  few_rows_per_s     REAL NOT NULL,     -- of the stage
  many_rows_per_s    REAL NOT NULL,
  few_blocked_ratio  REAL NOT NULL,     -- share of its threads' time blocked in operators, locks left out
  many_blocked_ratio REAL NOT NULL,
  PRIMARY KEY (run_id, stage, start_ns)
) STRICT, WITHOUT ROWID;
