-- Block requests. One row per (run, device, direction, process, operator).
DROP VIEW IF EXISTS io_summary;
CREATE VIEW io_summary AS SELECT
  run_id,
  subject AS device,
  cause AS direction,    -- read, write, discard, flush
  operator,              -- NULL: not in an operator
  stage,
  process_id,
  process,
  pid,                   -- NULL: of the machine
  CAST(requests AS INTEGER) AS requests_count,
  CAST(bytes AS INTEGER) AS bytes,
  CASE WHEN requests > 0 THEN bytes / requests END AS mean_size_bytes,
  CASE WHEN requests > 0 THEN latency_ns / requests END AS mean_latency_ns,
  latency_ns,            -- summed over requests
  CASE WHEN requests > 0 THEN sequential / requests END
    AS sequential_ratio  -- requests that began where the one before ended; NULL not measured
FROM (SELECT run_id, subject, cause, operator, stage, process_id, process, pid,
        SUM(CASE WHEN metric = 'block_requests_count' THEN value END) AS requests,
        SUM(CASE WHEN metric = 'block_bytes' THEN value END) AS bytes,
        SUM(CASE WHEN metric = 'block_latency_ns' THEN value END) AS latency_ns,
        SUM(CASE WHEN metric = 'block_sequential_count' THEN value END) AS sequential
      FROM measurement_summary
      WHERE metric IN ('block_requests_count', 'block_bytes', 'block_latency_ns',
        'block_sequential_count')
      GROUP BY run_id, subject, cause, process_id, process, pid, operator, stage
) AS requests_by_operator;
