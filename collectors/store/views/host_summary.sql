-- Metrics of the machine, the pipeline's process and the collector. One row per (run, metric,
-- subject, cause).
DROP VIEW IF EXISTS host_summary;
CREATE VIEW host_summary AS SELECT
  run_id,
  metric,         -- process_cpu_ns, process_rss_bytes, host_busy_cores, collector_cpu_ns, ...
  unit,           -- ns, bytes, cores, count
  CASE WHEN kind = 'gauge' AND weight_ns > 0 THEN weighted_sum / weight_ns END
    AS mean_value,     -- time-weighted; NULL for counters, which grow from 0 at the run's start
  CASE WHEN kind = 'gauge' THEN minimum_value END AS minimum_value,
  CASE WHEN kind = 'gauge' THEN maximum_value END AS maximum_value,
  last_value,     -- of a counter: its total over the run
  source,         -- counter, ebpf, account, estimate
  '' AS subject,  -- device, interface, ...; '' all
  '' AS cause     -- cause, direction, state; '' all
FROM host_metrics
UNION ALL SELECT
  d.run_id, d.metric, m.unit,
  CASE WHEN m.kind = 'gauge' AND d.weight_ns > 0 THEN d.weighted_sum / d.weight_ns END,
  CASE WHEN m.kind = 'gauge' THEN d.minimum_value END,
  CASE WHEN m.kind = 'gauge' THEN d.maximum_value END,
  d.last_value, d.source, d.subject, d.cause
FROM measurements AS d JOIN metrics AS m USING (run_id, metric)
WHERE d.process_id IS NULL AND d.operator_id IS NULL AND d.thread = '' AND d.bucket IS NULL;
