-- The course of each queue, per stored interval.
DROP VIEW IF EXISTS queue_interval;
CREATE VIEW queue_interval AS SELECT
  i.run_id,
  i.start_ns,                 -- since the run began
  t.duration_ns,
  q.queue,
  CASE WHEN i.capacity_ns > 0 THEN CAST(i.occupancy_ns AS REAL) / i.capacity_ns END
    AS mean_occupancy_ratio,  -- NULL not observed
  CASE WHEN i.observed_ns > 0 THEN CAST(i.full_ns AS REAL) / i.observed_ns END AS full_ratio,
  CASE WHEN i.observed_ns > 0 THEN CAST(i.empty_ns AS REAL) / i.observed_ns END AS empty_ratio,
  i.puts_count,
  i.gets_count
FROM queue_intervals AS i
JOIN intervals AS t USING (run_id, start_ns)
JOIN queues AS q USING (run_id, queue_id);
