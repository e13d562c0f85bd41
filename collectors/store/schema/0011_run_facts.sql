-- Version 11: figures about a run that single recommendations ask for, a row each, so that the next one
-- needs no column. What versions 5 and 6 put into columns of runs stays there.

CREATE TABLE run_facts (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  name   TEXT NOT NULL,  -- 'clustered_dedup_ratio'; ends in its unit
  value  REAL NOT NULL,
  unit   TEXT NOT NULL,  -- ratio, bytes, ns, ...
  PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
