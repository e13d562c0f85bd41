-- The course of the host metrics, per stored interval.
DROP VIEW IF EXISTS host_interval;
CREATE VIEW host_interval AS SELECT
  i.run_id,
  i.start_ns,  -- since the run began
  t.duration_ns,
  m.metric,
  m.unit,
  i.value      -- gauge: mean over the interval; counter: value at its end
FROM host_intervals AS i
JOIN intervals AS t USING (run_id, start_ns)
JOIN host_metrics AS m USING (run_id, metric_id);
