-- Version 18: moments that somebody marked while a run was recorded.

CREATE TABLE run_marks (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  at_ns  INTEGER NOT NULL,  -- since the run began
  text   TEXT NOT NULL,
  PRIMARY KEY (run_id, at_ns)
) STRICT, WITHOUT ROWID;
