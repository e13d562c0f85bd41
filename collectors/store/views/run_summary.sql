-- The recorded runs and their environment. One row per run.
DROP VIEW IF EXISTS run_summary;
CREATE VIEW run_summary AS SELECT
  run_id,
  name,                 -- given by the user, or made from program and time
  tags,                 -- words separated by blanks
  state,                -- recording, complete, interrupted (pipeline or collector died), truncated (disk full)
  program,              -- as the pipeline calls itself
  pid,
  command,              -- command line
  pipeline_path,        -- '' when it has no pipeline.toml
  pipeline_text,        -- its contents when the run began
  started_realtime_ns,  -- since 1970
  duration_ns,          -- recorded
  accounting_level,     -- reached: 0 from outside, 1 accounts, 2 + thread CPU clock, 3 + eBPF,
                        -- 4 + hardware counters by operator
  accounting_note,      -- how the time was split, in words
  cores_count,          -- cores the pipeline may use; NULL unknown
  cores_bound_by,       -- what limits them
  memory_bytes,         -- memory it may use; NULL unknown
  memory_bound_by,
  hostname,
  kernel,
  cpu_model,
  headrace_version,
  level_asked,          -- --level; NULL: all that works
  deep,                 -- 1: --deep, detail that costs
  ring_ns,              -- flight recorder: kept before a stall; NULL: everything was kept
  trigger_text,         -- its trigger
  kind,                 -- pipeline; ceiling: one batch repeated, no input; NULL unknown, as all below
  settings_text,        -- what was set on top of the pipeline file: KEY=VALUE, one a line, by key
  table_text,           -- what the table was: files, bytes, a hash of names, sizes and times of change
  cold,                 -- 1: the page cache was made to forget the table, in every epoch
  resident_ratio,       -- of the table's bytes in the page cache before the first read
  resident_before_ratio,  -- the same before they were dropped; NULL: they were not
  resident_note,        -- why resident_ratio is NULL
  epoch_splits_count,   -- what the source hands out per epoch; NULL also where it has no epochs
  element_order,        -- file: elements leave every queue in order; any
  order_window_count,   -- how far ahead of the due element one may wait; 0: no bound of its own
  -- Of view run_fact: bytes of lists for each that would be kept if rows lay by session, of a sample ...
  (SELECT f.value FROM run_fact AS f WHERE f.run_id = r.run_id AND f.name = 'clustered_dedup_ratio')
    AS clustered_dedup_ratio,
  -- ... and the same of that sample in the order its rows have.
  (SELECT f.value FROM run_fact AS f WHERE f.run_id = r.run_id AND f.name = 'sample_dedup_ratio')
    AS sample_dedup_ratio
FROM runs AS r;
