-- Metrics of the machine, the pipeline's process and the collector. One row per (run, metric,
-- subject, cause).
DROP VIEW IF EXISTS host_summary;
CREATE VIEW host_summary AS SELECT
  d.run_id,
  d.metric,       -- process_cpu_ns, process_rss_bytes, host_busy_cores, collector_cpu_ns, ...
  m.unit,         -- ns, bytes, cores, count
  CASE WHEN m.kind = 'gauge' AND d.weight_ns > 0 THEN d.weighted_sum / d.weight_ns
       WHEN m.kind = 'gauge' THEN d.last_value END
    AS mean_value,     -- time-weighted; NULL for counters, which grow from 0 at the run's start
  CASE WHEN m.kind = 'gauge' THEN d.minimum_value END AS minimum_value,
  CASE WHEN m.kind = 'gauge' THEN d.maximum_value END AS maximum_value,
  d.last_value,   -- of a counter: its total over the run
  d.source,       -- counter, ebpf, account, estimate
  d.subject,      -- device, interface, ...; '' all
  d.cause         -- cause, direction, state; '' all
FROM measurements AS d JOIN metrics AS m USING (run_id, metric)
WHERE d.process_id IS NULL AND d.operator_id IS NULL AND d.thread = '' AND d.bucket IS NULL
-- Runs of before these were measurements.
UNION ALL SELECT
  run_id, metric, unit,
  CASE WHEN kind = 'gauge' AND weight_ns > 0 THEN weighted_sum / weight_ns END,
  CASE WHEN kind = 'gauge' THEN minimum_value END,
  CASE WHEN kind = 'gauge' THEN maximum_value END,
  last_value, source, '', ''
FROM host_metrics;
