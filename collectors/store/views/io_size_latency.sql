-- Requests by size and latency together: which sizes are slow. One row per (run, metric, labels, size, latency).
DROP VIEW IF EXISTS io_size_latency;
CREATE VIEW io_size_latency AS SELECT
  run_id,
  metric,               -- block_size_latency_count: requests to devices; file_read_size_latency_count: read
                        -- calls on files (only with --deep)
  subject AS device,    -- '': of calls
  cause AS direction,   -- of requests: read, write, ...; of calls what served them: cache, device
  operator,
  stage,
  process_id,
  process,
  pid,
  -- Lower bounds of buckets that double.
  CAST(1 AS BIGINT) << CAST(bucket / 64 AS INTEGER) AS size_bytes,
  CAST(1 AS BIGINT) << CAST(bucket % 64 AS INTEGER) AS latency_ns,
  CAST(value AS INTEGER) AS events_count
FROM measurement_summary
WHERE bucket IS NOT NULL AND metric IN ('block_size_latency_count', 'file_read_size_latency_count');
