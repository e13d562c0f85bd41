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
  trigger_text          -- its trigger
FROM runs;
