-- Version 2: what probes measure. A measurement is one metric with its labels (process, operator,
-- thread group, subject, cause, histogram bucket): its total over the run, and its course where
-- that was asked for. Every run carries the list of the metrics it holds.

ALTER TABLE runs ADD COLUMN level_asked INTEGER;                  -- --level; NULL: all that works
ALTER TABLE runs ADD COLUMN deep INTEGER NOT NULL DEFAULT 0;      -- 1: --deep, detail that costs
ALTER TABLE runs ADD COLUMN ring_ns INTEGER;                      -- flight recorder: kept before a stall; NULL: none
ALTER TABLE runs ADD COLUMN trigger_text TEXT NOT NULL DEFAULT '';  -- its trigger, 'stall > 200ms'
ALTER TABLE operators ADD COLUMN time_source TEXT;                -- account, thread_clock, ebpf; NULL: by on_cpu_ns
ALTER TABLE operators ADD COLUMN residual_ns INTEGER;             -- level 3: c by eBPF less c by the CPU clock
ALTER TABLE probes ADD COLUMN affects TEXT NOT NULL DEFAULT '';   -- what the pages lack without it

CREATE TABLE processes (
  run_id       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  process_id   INTEGER NOT NULL,            -- within the run; a pid may come back as another process
  pid          INTEGER NOT NULL,
  parent_pid   INTEGER NOT NULL,
  process      TEXT NOT NULL,               -- short name
  command      TEXT NOT NULL DEFAULT '',
  role         TEXT NOT NULL DEFAULT '',    -- root, child; analysis knows more
  has_accounts INTEGER NOT NULL DEFAULT 0,
  started_ns   INTEGER NOT NULL,            -- since the run began; negative: before it
  ended_ns     INTEGER,                     -- NULL: alive at the end of the recording
  exit_text    TEXT NOT NULL DEFAULT '',    -- 'exited 1', 'killed by signal 9'; '' unknown or alive
  PRIMARY KEY (run_id, process_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE metrics (
  run_id    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  metric    TEXT NOT NULL,
  unit      TEXT NOT NULL,
  kind      TEXT NOT NULL CHECK (kind IN ('counter', 'gauge')),
  source    TEXT NOT NULL,             -- counter, ebpf, account, estimate
  privilege TEXT NOT NULL DEFAULT '',  -- what reading it needs
  help      TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run_id, metric)
) STRICT, WITHOUT ROWID;

-- One row per metric and labels. A counter grows from 0 at the start of the run, last_value is its
-- total; a gauge has a time-weighted mean and a range.
CREATE TABLE measurements (
  run_id         INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  measurement_id INTEGER NOT NULL,
  metric         TEXT NOT NULL,
  source         TEXT NOT NULL,
  operator_id    INTEGER,                     -- NULL: no operator, or all
  process_id     INTEGER,                     -- NULL: the machine
  thread         TEXT NOT NULL DEFAULT '',    -- group of threads by name
  subject        TEXT NOT NULL DEFAULT '',    -- device, interface, socket, ...
  cause          TEXT NOT NULL DEFAULT '',    -- cause, direction, state
  bucket         INTEGER,                     -- lower bound of a histogram bucket
  weight_ns      INTEGER NOT NULL DEFAULT 0,
  weighted_sum   REAL NOT NULL DEFAULT 0,
  minimum_value  REAL,
  maximum_value  REAL,
  last_value     REAL,
  running_ratio  REAL,                        -- share of the time a multiplexed counter really counted
  PRIMARY KEY (run_id, measurement_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE measurement_intervals (
  run_id         INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns       INTEGER NOT NULL,            -- since the run began
  measurement_id INTEGER NOT NULL,
  duration_ns    INTEGER NOT NULL,
  value          REAL NOT NULL,               -- counter: growth in the interval; gauge: mean
  PRIMARY KEY (run_id, start_ns, measurement_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE stacks (
  run_id        INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  stack_id      INTEGER NOT NULL,
  kind          TEXT NOT NULL,               -- cpu, off_cpu
  operator_id   INTEGER,                     -- NULL: outside every operator
  process_id    INTEGER,
  thread        TEXT NOT NULL DEFAULT '',
  folded        TEXT NOT NULL,               -- root first, frames separated by ';'
  samples_count INTEGER NOT NULL,
  time_ns       INTEGER NOT NULL,            -- what the samples stand for
  PRIMARY KEY (run_id, stack_id)
) STRICT, WITHOUT ROWID;

-- Where the flight recorder kept full detail.
CREATE TABLE detail_ranges (
  run_id   INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns INTEGER NOT NULL,           -- since the run began
  end_ns   INTEGER NOT NULL,
  reason   TEXT NOT NULL,              -- what pulled the trigger: 'stall 312 ms > 200 ms'
  PRIMARY KEY (run_id, start_ns)
) STRICT, WITHOUT ROWID;
