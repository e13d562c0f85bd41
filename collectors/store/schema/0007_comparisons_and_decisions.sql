-- Version 7: comparisons (A/B) and what a tuner decided.
--
-- A comparison names runs of this database, which may be removed later: it keeps its own figures, as
-- the JSON that `compare --json` prints.

CREATE TABLE comparisons (
  comparison_id       INTEGER PRIMARY KEY AUTOINCREMENT,
  name                TEXT NOT NULL DEFAULT '',
  started_realtime_ns INTEGER NOT NULL,            -- since 1970
  duration_ns         INTEGER,                     -- NULL: not finished
  state               TEXT NOT NULL CHECK (state IN ('running', 'complete', 'interrupted', 'failed')),
  a_label             TEXT NOT NULL,               -- what side A is: a setting, a file, a run, a command
  b_label             TEXT NOT NULL,
  seed                TEXT NOT NULL DEFAULT '',    -- of the order and of the resampling, in decimal
  verdict             TEXT NOT NULL DEFAULT '',    -- faster, slower, same, cannot_tell; '': none yet
  result_json         TEXT NOT NULL DEFAULT ''     -- headrace.compare/1; '': none yet
) STRICT;

CREATE TABLE comparison_runs (
  comparison_id  INTEGER NOT NULL REFERENCES comparisons ON DELETE CASCADE,
  order_index    INTEGER NOT NULL,                 -- as they were made, from 0
  pair_index     INTEGER NOT NULL,
  side           TEXT NOT NULL CHECK (side IN ('a', 'b')),
  run_id         INTEGER,                          -- may be gone; NULL: made no run
  left_out       TEXT NOT NULL DEFAULT '',         -- why it does not count; '': it does
  PRIMARY KEY (comparison_id, order_index)
) STRICT, WITHOUT ROWID;

-- What was decided about a running pipeline, in the order of the decisions. Rates in batches a second.
CREATE TABLE decisions (
  run_id            INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  decision_index    INTEGER NOT NULL,              -- from 0
  at_ns             INTEGER NOT NULL,              -- since the run began: when it was decided
  applied_ns        INTEGER,                       -- when it took effect; NULL: it did not
  observed_ns       INTEGER,                       -- when it was judged; NULL: not yet
  action            TEXT NOT NULL,                 -- apply, verify, revert, hold, scale_down, replan, cache, stop
  limited_by        TEXT NOT NULL DEFAULT '',      -- the row that limited when it was decided
  limited_by_kind   TEXT NOT NULL DEFAULT '',      -- consumer, cores, stage, lock, device, order, ...
  now_rate          REAL,                          -- measured when it was decided
  predicted_rate    REAL,
  predicted_low     REAL,                          -- 90 % interval
  predicted_high    REAL,
  observed_rate     REAL,
  observed_low      REAL,                          -- 95 % interval
  observed_high     REAL,
  verdict           TEXT NOT NULL DEFAULT '',      -- kept, reverted, failed, superseded; '': open
  reason            TEXT NOT NULL DEFAULT '',      -- in words, for people
  detail_json       TEXT NOT NULL DEFAULT '',      -- headrace.decision/1
  PRIMARY KEY (run_id, decision_index)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision_changes (
  run_id         INTEGER NOT NULL,
  decision_index INTEGER NOT NULL,
  knob           TEXT NOT NULL,                    -- decode.parallelism
  from_text      TEXT NOT NULL,
  to_text        TEXT NOT NULL,
  PRIMARY KEY (run_id, decision_index, knob),
  FOREIGN KEY (run_id, decision_index) REFERENCES decisions ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
