-- Version 21: jobs of the preprocessing service, as their dispatchers kept them. Each member of a job,
-- and each dispatcher, is a run with the tables that any run has.

CREATE TABLE jobs (
  job_id                   INTEGER PRIMARY KEY AUTOINCREMENT,
  job                      TEXT NOT NULL,       -- its name
  fingerprint              TEXT NOT NULL,       -- of table and pipeline: a job of another one is another
  mode                     TEXT NOT NULL,       -- lockstep, independent
  ranks_count              INTEGER NOT NULL,
  epochs_count             INTEGER NOT NULL,
  splits_count             INTEGER NOT NULL,    -- of an epoch
  rows_count               INTEGER NOT NULL,    -- of all epochs
  largest_split_rows_count INTEGER NOT NULL,
  unit_rows_count          INTEGER NOT NULL,    -- what a rank gets in one frame; 0: a split
  batch_rows_count         INTEGER NOT NULL,
  started_realtime_ns      INTEGER NOT NULL,    -- since 1970
  duration_ns              INTEGER NOT NULL DEFAULT 0,
  state                    TEXT NOT NULL CHECK (state IN ('running', 'complete', 'ended')),
  left_rows_count          INTEGER              -- not admitted yet; NULL: not known
) STRICT;

CREATE TABLE members (
  run_id          INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  job_id          INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  instance        TEXT NOT NULL,                -- tells a process from any before or after it
  role            TEXT NOT NULL CHECK (role IN ('dispatcher', 'worker', 'rank')),
  number          INTEGER NOT NULL,             -- of a rank; of a worker or dispatcher in its order of appearance, from 1
  clock_offset_ns INTEGER NOT NULL DEFAULT 0,   -- the dispatcher's clock minus the member's, with the way of a message
  has_ended       INTEGER NOT NULL DEFAULT 0,   -- 1: said that it measures no more
  UNIQUE (job_id, instance)
) STRICT;

CREATE TABLE job_intervals (
  run_id         INTEGER NOT NULL REFERENCES members ON DELETE CASCADE,  -- of the dispatcher
  start_ns       INTEGER NOT NULL,              -- since that run began
  duration_ns    INTEGER NOT NULL,
  running_ns     INTEGER NOT NULL,              -- all ranks had joined
  leases_count   INTEGER NOT NULL,
  again_count    INTEGER NOT NULL,              -- of them, leases of a split that was leased before
  again_rows     INTEGER NOT NULL,              -- rows of those
  lost_count     INTEGER NOT NULL,              -- workers lost while they had splits
  serving_ns     INTEGER NOT NULL,              -- integral of the workers connected and not silent
  no_split_ns    INTEGER NOT NULL,              -- of it: they had asked, and no split was left to lease
  wanted_count   INTEGER,                       -- workers wanted at its end; NULL: nobody says
  late_ns        INTEGER NOT NULL,              -- the dispatcher did nothing of what it does ten times a second
  left_rows      INTEGER,                       -- rows not admitted at its end; NULL: not known
  PRIMARY KEY (run_id, start_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_events (
  run_id      INTEGER NOT NULL REFERENCES members ON DELETE CASCADE,  -- of the dispatcher
  event_index INTEGER NOT NULL,
  at_ns       INTEGER NOT NULL,                 -- since that run began
  kind        TEXT NOT NULL,                    -- worker_joined, worker_lost, worker_silent, worker_failed,
                                                -- rank_lost, term_began
  instance    TEXT NOT NULL,                    -- of the member; '': of none
  splits_count INTEGER,                         -- that are leased again for it; NULL: none
  text        TEXT NOT NULL,
  PRIMARY KEY (run_id, event_index)
) STRICT, WITHOUT ROWID;
