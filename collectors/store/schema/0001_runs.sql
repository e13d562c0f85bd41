-- Version 1: runs, what they consist of (entities with totals over the run), and their course
-- (intervals). Times are integer nanoseconds, sizes integer bytes; NULL always means "not measured".
-- Entities are numbered within their run; the numbers never leave the store, the views give names.

CREATE TABLE runs (
  run_id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name                TEXT NOT NULL,               -- given by the user; may repeat, the newest wins
  tags                TEXT NOT NULL DEFAULT '',    -- words separated by blanks
  state               TEXT NOT NULL CHECK (state IN ('recording', 'complete', 'interrupted', 'truncated')),
  program             TEXT NOT NULL DEFAULT '',    -- as the pipeline calls itself, else the process's name
  pid                 INTEGER NOT NULL,            -- of the pipeline
  command             TEXT NOT NULL DEFAULT '',    -- its command line, blanks between arguments
  pipeline_path       TEXT NOT NULL DEFAULT '',    -- its pipeline.toml; '' if it has none
  pipeline_text       TEXT NOT NULL DEFAULT '',    -- contents of that file when the run began
  started_realtime_ns INTEGER NOT NULL,            -- since 1970
  duration_ns         INTEGER NOT NULL DEFAULT 0,  -- recorded so far
  accounting_level    INTEGER NOT NULL DEFAULT 0,  -- 0 seen from outside, 1 accounts, 2 + CPU clock
  accounting_note     TEXT NOT NULL DEFAULT '',    -- how the time was split, in words
  cores_count         REAL,                        -- cores the pipeline may use
  cores_bound_by      TEXT NOT NULL DEFAULT '',    -- what limits them: 'affinity', 'cgroup quota', ...
  memory_bytes        INTEGER,                     -- memory the pipeline may use
  memory_bound_by     TEXT NOT NULL DEFAULT '',
  hostname            TEXT NOT NULL DEFAULT '',
  kernel              TEXT NOT NULL DEFAULT '',
  cpu_model           TEXT NOT NULL DEFAULT '',
  headrace_version    TEXT NOT NULL DEFAULT '',
  collector_pid       INTEGER NOT NULL,            -- who writes while state is 'recording'
  collector_start     INTEGER NOT NULL             -- its start time in clock ticks since boot: tells a reused pid
) STRICT;

CREATE TABLE stages (
  run_id                 INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  stage_id               INTEGER NOT NULL,
  stage                  TEXT NOT NULL,               -- '' collects threads that joined no stage
  stage_index            INTEGER NOT NULL,            -- order of registration = pipeline order
  last_parallelism_count INTEGER NOT NULL DEFAULT 0,  -- threads set at the end
  max_parallelism_count  INTEGER NOT NULL DEFAULT 0,  -- 0 no limit, 1 sequential
  parallelism_ns         INTEGER NOT NULL DEFAULT 0,  -- integral of the parallelism over time
  observed_ns            INTEGER NOT NULL DEFAULT 0,  -- time over which that was taken
  lifetime_ns            INTEGER NOT NULL DEFAULT 0,  -- summed over its threads
  on_cpu_ns              INTEGER,                     -- scheduler's figure
  runnable_ns            INTEGER,                     -- scheduler's figure: waiting for a CPU
  unattributed_ns        INTEGER NOT NULL DEFAULT 0,  -- part of lifetime outside every operator
  PRIMARY KEY (run_id, stage_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE operators (
  run_id            INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  operator_id       INTEGER NOT NULL,
  operator          TEXT NOT NULL,
  kind              TEXT NOT NULL,
  stage_id          INTEGER NOT NULL,
  position_index    INTEGER NOT NULL,            -- order within the stage
  completions_count INTEGER NOT NULL DEFAULT 0,
  rows_count        INTEGER NOT NULL DEFAULT 0,
  bytes_in_bytes    INTEGER NOT NULL DEFAULT 0,
  bytes_out_bytes   INTEGER NOT NULL DEFAULT 0,
  busy_ns           INTEGER NOT NULL DEFAULT 0,  -- c + b + q, lock waits included
  on_cpu_ns         INTEGER,                     -- c
  runnable_ns       INTEGER,                     -- q
  lock_wait_ns      INTEGER NOT NULL DEFAULT 0,  -- part of b: waited for resources
  wait_in_ns        INTEGER NOT NULL DEFAULT 0,  -- waited for an upstream element
  wait_out_ns       INTEGER NOT NULL DEFAULT 0,  -- waited for room downstream
  PRIMARY KEY (run_id, operator_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE queues (
  run_id            INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  queue_id          INTEGER NOT NULL,
  queue             TEXT NOT NULL,
  producer_stage_id INTEGER,                     -- NULL: outside the pipeline
  consumer_stage_id INTEGER,
  capacity_count    INTEGER NOT NULL,            -- at the end
  observed_ns       INTEGER NOT NULL DEFAULT 0,
  occupancy_ns      INTEGER NOT NULL DEFAULT 0,  -- integral of the number of elements over time
  capacity_ns       INTEGER NOT NULL DEFAULT 0,  -- integral of the capacity
  full_ns           INTEGER NOT NULL DEFAULT 0,
  empty_ns          INTEGER NOT NULL DEFAULT 0,
  puts_count        INTEGER NOT NULL DEFAULT 0,
  gets_count        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, queue_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE resources (
  run_id             INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  resource_id        INTEGER NOT NULL,
  resource           TEXT NOT NULL,
  kind               TEXT NOT NULL CHECK (kind IN ('lock', 'device')),
  servers_count      INTEGER NOT NULL,            -- holders at the same time
  acquisitions_count INTEGER NOT NULL DEFAULT 0,
  wait_ns            INTEGER NOT NULL DEFAULT 0,
  hold_ns            INTEGER NOT NULL DEFAULT 0,
  moved_bytes        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, resource_id)
) STRICT, WITHOUT ROWID;

-- Steps of the consumer: totals, and a histogram with buckets 2 % wide.
CREATE TABLE steps (
  run_id      INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  steps_count INTEGER NOT NULL DEFAULT 0,
  rows_count  INTEGER NOT NULL DEFAULT 0,
  wait_ns     INTEGER NOT NULL DEFAULT 0,
  compute_ns  INTEGER NOT NULL DEFAULT 0,
  first_ns    INTEGER,                    -- begin of the first step, since the run began
  last_ns     INTEGER                     -- end of the last
) STRICT;

CREATE TABLE step_histogram (
  run_id      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  step_ns     INTEGER NOT NULL,  -- wait + compute: middle of the bucket
  steps_count INTEGER NOT NULL,
  PRIMARY KEY (run_id, step_ns)
) STRICT, WITHOUT ROWID;

-- Metrics of the machine, the process and the collector. A 'counter' grows from 0 at the start of
-- the run and only its last value means something; a 'gauge' has a mean and a range.
CREATE TABLE host_metrics (
  run_id        INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  metric_id     INTEGER NOT NULL,
  metric        TEXT NOT NULL,
  unit          TEXT NOT NULL,
  kind          TEXT NOT NULL CHECK (kind IN ('counter', 'gauge')),
  source        TEXT NOT NULL,  -- counter, ebpf, account, estimate
  weight_ns     INTEGER NOT NULL DEFAULT 0,
  weighted_sum  REAL NOT NULL DEFAULT 0,
  minimum_value REAL,
  maximum_value REAL,
  last_value    REAL,
  PRIMARY KEY (run_id, metric_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE probes (
  run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  probe  TEXT NOT NULL,
  state  TEXT NOT NULL CHECK (state IN ('active', 'degraded', 'unavailable')),
  reason TEXT NOT NULL DEFAULT '',
  fix    TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run_id, probe)
) STRICT, WITHOUT ROWID;

CREATE TABLE losses (
  run_id      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  what        TEXT NOT NULL,
  lost_count  INTEGER NOT NULL,
  total_count INTEGER,           -- lost and kept; NULL: unknown
  PRIMARY KEY (run_id, what)
) STRICT, WITHOUT ROWID;

-- The course of the run. An interval is named by its start; an entity that did nothing in it has no
-- row. Old intervals are merged into longer ones (resolution_ns), so a run stays bounded.
CREATE TABLE intervals (
  run_id           INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns         INTEGER NOT NULL,            -- since the run began
  duration_ns      INTEGER NOT NULL,
  resolution_ns    INTEGER NOT NULL DEFAULT 0,  -- 0 as recorded, else the bucket it was merged into
  steps_count      INTEGER NOT NULL DEFAULT 0,
  step_rows_count  INTEGER NOT NULL DEFAULT 0,
  step_wait_ns     INTEGER NOT NULL DEFAULT 0,
  step_compute_ns  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, start_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE stage_intervals (
  run_id          INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns        INTEGER NOT NULL,
  stage_id        INTEGER NOT NULL,
  parallelism_ns  INTEGER NOT NULL,
  observed_ns     INTEGER NOT NULL,
  lifetime_ns     INTEGER NOT NULL,
  on_cpu_ns       INTEGER,
  runnable_ns     INTEGER,
  unattributed_ns INTEGER NOT NULL,
  PRIMARY KEY (run_id, start_ns, stage_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE operator_intervals (
  run_id            INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns          INTEGER NOT NULL,
  operator_id       INTEGER NOT NULL,
  completions_count INTEGER NOT NULL,
  rows_count        INTEGER NOT NULL,
  bytes_in_bytes    INTEGER NOT NULL,
  bytes_out_bytes   INTEGER NOT NULL,
  busy_ns           INTEGER NOT NULL,
  on_cpu_ns         INTEGER,
  runnable_ns       INTEGER,
  lock_wait_ns      INTEGER NOT NULL,
  wait_in_ns        INTEGER NOT NULL,
  wait_out_ns       INTEGER NOT NULL,
  PRIMARY KEY (run_id, start_ns, operator_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE queue_intervals (
  run_id       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns     INTEGER NOT NULL,
  queue_id     INTEGER NOT NULL,
  observed_ns  INTEGER NOT NULL,
  occupancy_ns INTEGER NOT NULL,
  capacity_ns  INTEGER NOT NULL,
  full_ns      INTEGER NOT NULL,
  empty_ns     INTEGER NOT NULL,
  puts_count   INTEGER NOT NULL,
  gets_count   INTEGER NOT NULL,
  PRIMARY KEY (run_id, start_ns, queue_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE resource_intervals (
  run_id             INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns           INTEGER NOT NULL,
  resource_id        INTEGER NOT NULL,
  acquisitions_count INTEGER NOT NULL,
  wait_ns            INTEGER NOT NULL,
  hold_ns            INTEGER NOT NULL,
  moved_bytes        INTEGER NOT NULL,
  PRIMARY KEY (run_id, start_ns, resource_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE host_intervals (
  run_id    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  start_ns  INTEGER NOT NULL,
  metric_id INTEGER NOT NULL,
  value     REAL NOT NULL,  -- gauge: mean over the interval; counter: value at its end
  PRIMARY KEY (run_id, start_ns, metric_id)
) STRICT, WITHOUT ROWID;
