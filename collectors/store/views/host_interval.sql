-- The course of the host metrics that have neither subject nor cause, per stored interval. No row: a
-- counter did not grow in it.
DROP VIEW IF EXISTS host_interval;
CREATE VIEW host_interval AS SELECT
  i.run_id,
  i.start_ns,  -- since the run began
  i.duration_ns,
  d.metric,
  m.unit,
  CASE WHEN m.kind = 'counter' THEN SUM(i.value) OVER (
         PARTITION BY i.run_id, d.metric, i.measurement_id ORDER BY i.start_ns)
       ELSE i.value END
    AS value   -- gauge: mean over the interval; counter: total at its end
FROM measurement_intervals AS i
JOIN measurements AS d USING (run_id, measurement_id)
JOIN metrics AS m USING (run_id, metric)
WHERE d.process_id IS NULL AND d.operator_id IS NULL AND d.thread = '' AND d.bucket IS NULL
  AND d.subject = '' AND d.cause = ''
-- Runs of before these were measurements.
UNION ALL SELECT
  i.run_id, i.start_ns, t.duration_ns, m.metric, m.unit, i.value
FROM host_intervals AS i
JOIN intervals AS t USING (run_id, start_ns)
JOIN host_metrics AS m USING (run_id, metric_id);
