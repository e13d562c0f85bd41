-- Fill of each queue over the whole run. One row per (run, queue).
DROP VIEW IF EXISTS queue_summary;
CREATE VIEW queue_summary AS SELECT
  q.run_id,
  q.queue,
  p.stage AS producer_stage,  -- NULL: outside the pipeline
  c.stage AS consumer_stage,  -- NULL: outside the pipeline
  q.capacity_count,           -- elements, at the end
  CASE WHEN q.capacity_ns > 0 THEN CAST(q.occupancy_ns AS REAL) / q.capacity_ns END
    AS mean_occupancy_ratio,  -- time-weighted, of the capacity; NULL never observed
  CASE WHEN q.observed_ns > 0 THEN CAST(q.full_ns AS REAL) / q.observed_ns END
    AS full_ratio,            -- share of time full; NULL never observed
  CASE WHEN q.observed_ns > 0 THEN CAST(q.empty_ns AS REAL) / q.observed_ns END
    AS empty_ratio,           -- share of time empty; NULL never observed
  q.puts_count,
  q.gets_count
FROM queues AS q
LEFT JOIN stages AS p ON p.run_id = q.run_id AND p.stage_id = q.producer_stage_id
LEFT JOIN stages AS c ON c.run_id = q.run_id AND c.stage_id = q.consumer_stage_id;
