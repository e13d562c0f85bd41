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
  o.on_cpu_ns,          -- c: on a CPU, all threads; NULL if it is not told apart
  CASE WHEN o.busy_ns < o.on_cpu_ns + o.runnable_ns THEN 0
       ELSE o.busy_ns - o.on_cpu_ns - o.runnable_ns END
    AS blocked_ns,      -- b: off CPU inside the operator, lock waits included; NULL: not told apart
  o.runnable_ns,        -- q: ready to run, no CPU free; NULL if it is not told apart
  o.lock_wait_ns,       -- part of b: waited for resources
  o.wait_in_ns,         -- waited for an upstream element; never a demand
  o.wait_out_ns,        -- waited for room downstream; never a demand
  COALESCE(o.time_source, CASE WHEN o.on_cpu_ns IS NULL THEN 'account' ELSE 'thread_clock' END)
    AS source,          -- how c was separated from b + q: account (not), thread_clock, ebpf
  o.residual_ns,        -- ebpf: how far c so found is outside of what the thread CPU clock allows
  o.on_cpu_low_ns,      -- c lies between these, also where it is not told apart; NULL: exact or
  o.on_cpu_high_ns,     -- not measured at all
  CASE WHEN o.busy_ns < o.on_cpu_high_ns + o.runnable_high_ns THEN 0
       ELSE o.busy_ns - o.on_cpu_high_ns - o.runnable_high_ns END
    AS blocked_low_ns,  -- b lies between these, likewise
  CASE WHEN o.busy_ns < o.on_cpu_low_ns + o.runnable_low_ns THEN 0
       ELSE o.busy_ns - o.on_cpu_low_ns - o.runnable_low_ns END
    AS blocked_high_ns,
  o.enters_count,       -- times a thread entered it; NULL: recorded by an earlier version
  o.operator_id         -- within the run, as in operator_delta
FROM (
  -- What is told apart: c where its bounds are close, q where those of c and q together are.
  SELECT
    run_id, operator_id, operator, kind, stage_id, position_index, completions_count, rows_count,
    bytes_in_bytes, bytes_out_bytes, busy_ns, lock_wait_ns, wait_in_ns, wait_out_ns, time_source,
    residual_ns, on_cpu_low_ns, on_cpu_high_ns, runnable_low_ns, runnable_high_ns, enters_count,
    CASE WHEN on_cpu_high_ns - on_cpu_low_ns > (SELECT known_ratio FROM split_rule) * busy_ns
         THEN NULL
         WHEN on_cpu_ns < on_cpu_low_ns THEN on_cpu_low_ns
         WHEN on_cpu_ns > on_cpu_high_ns THEN on_cpu_high_ns
         ELSE on_cpu_ns END AS on_cpu_ns,
    CASE WHEN on_cpu_high_ns - on_cpu_low_ns + runnable_high_ns - runnable_low_ns >
              (SELECT known_ratio FROM split_rule) * busy_ns THEN NULL
         ELSE runnable_ns END AS runnable_ns
  FROM operators
) AS o LEFT JOIN stages AS s USING (run_id, stage_id);
