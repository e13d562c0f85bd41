-- Time and work of each operator over the whole run. One row per (run, operator, stage).
DROP VIEW IF EXISTS operator_summary;
CREATE VIEW operator_summary AS SELECT
  o.run_id,
  o.operator,
  o.kind,               -- what it does: fetch, decompress, decode, extract, transform, ...
  COALESCE(s.stage, '') AS stage,
  COALESCE(s.stage_index, o.stage_id) AS stage_index,
  o.position_index,     -- order within the stage
  o.completions_count,  -- elements finished
  o.rows_count,
  o.bytes_in_bytes,
  o.bytes_out_bytes,
  o.busy_ns,            -- c + b + q
  o.on_cpu_ns,          -- c: on a CPU, all threads; NULL if the level did not separate it
  CASE WHEN o.on_cpu_ns IS NULL OR o.runnable_ns IS NULL THEN NULL
       ELSE MAX(0, o.busy_ns - o.on_cpu_ns - o.runnable_ns) END
    AS blocked_ns,      -- b: off CPU inside the operator, lock waits included; NULL if not separated
  o.runnable_ns,        -- q: ready to run, no CPU free; NULL if not separated
  o.lock_wait_ns,       -- part of b: waited for resources
  o.wait_in_ns,         -- waited for an upstream element; never a demand
  o.wait_out_ns,        -- waited for room downstream; never a demand
  COALESCE(o.time_source, CASE WHEN o.on_cpu_ns IS NULL THEN 'account' ELSE 'thread_clock' END)
    AS source,          -- how c was separated from b + q: account (not), thread_clock, ebpf
  o.residual_ns         -- ebpf: c so found less c by the thread CPU clock; NULL: not both known
FROM operators AS o LEFT JOIN stages AS s USING (run_id, stage_id);
