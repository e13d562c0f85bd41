-- Version 12: the settings that a pipeline ran with, defaults included, a row each. Of runs that an
-- earlier version recorded there are none.

CREATE TABLE run_settings (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  key    TEXT NOT NULL,  -- as `--set` names it: 'source.io', 'decode.parallelism'
  value  TEXT NOT NULL,
  PRIMARY KEY (run_id, key)
) STRICT, WITHOUT ROWID;
