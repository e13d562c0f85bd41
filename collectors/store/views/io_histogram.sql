-- Histograms of probes: sizes, latencies, gaps. One row per (run, metric, labels, bucket).
DROP VIEW IF EXISTS io_histogram;
CREATE VIEW io_histogram AS SELECT
  run_id,
  metric,        -- block_latency_count (ns), block_size_count (bytes), block_gap_count, ...
  subject AS device,
  cause AS direction,
  operator,
  stage,
  process_id,
  process,
  pid,
  thread,
  bucket,        -- lower bound of a power-of-two bucket
  CAST(value AS INTEGER) AS events_count
FROM measurement_summary
-- What has two buckets is in io_size_latency.
WHERE bucket IS NOT NULL AND metric NOT IN ('block_size_latency_count', 'file_read_size_latency_count');
