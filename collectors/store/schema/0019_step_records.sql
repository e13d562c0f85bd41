-- Version 19: single steps where the flight recorder kept full detail.

CREATE TABLE step_records (
  run_id       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns     INTEGER NOT NULL,  -- of the interval in which the step ended
  record_index INTEGER NOT NULL,  -- within that interval
  end_ns       INTEGER NOT NULL,  -- of the step, since the run began
  wait_ns      INTEGER NOT NULL,
  compute_ns   INTEGER NOT NULL,
  rows_count   INTEGER NOT NULL,
  PRIMARY KEY (run_id, start_ns, record_index)
) STRICT, WITHOUT ROWID;
