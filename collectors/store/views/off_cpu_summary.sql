-- Why threads were off a CPU. One row per (run, process, operator, thread group, cause).
DROP VIEW IF EXISTS off_cpu_summary;
CREATE VIEW off_cpu_summary AS SELECT
  run_id,
  operator,         -- NULL: outside every operator, or a process without accounts
  stage,
  process_id,
  process,
  pid,
  thread,           -- group of threads by name
  cause,            -- storage, network, lock, sleep, pipe, poll, child, fault, other, stopped
  CASE WHEN cause IN ('storage', 'network', 'lock', 'sleep') THEN cause ELSE 'other' END AS class,
  SUM(CASE WHEN metric = 'off_cpu_ns' THEN value END)
    AS blocked_ns,  -- while busy in the operator (b); NULL none seen
  CAST(SUM(CASE WHEN metric = 'off_cpu_count' THEN value END) AS INTEGER)
    AS blocked_count,
  SUM(CASE WHEN metric = 'off_cpu_wait_ns' THEN value END)
    AS wait_ns,     -- while waiting for an upstream element or room downstream; never a demand
  MAX(source) AS source
FROM measurement_summary
WHERE metric IN ('off_cpu_ns', 'off_cpu_count', 'off_cpu_wait_ns')
GROUP BY run_id, process_id, process, pid, operator, stage, thread, cause;
