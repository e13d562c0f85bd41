-- Everything probes measured, with names for labels. One row per (run, metric, labels).
DROP VIEW IF EXISTS measurement_summary;
CREATE VIEW measurement_summary AS SELECT
  d.run_id,
  d.metric,          -- of metric_list
  m.unit,
  m.kind,            -- counter, gauge
  d.source,          -- counter, ebpf, account, estimate
  o.operator,        -- NULL: no operator, or all of them
  s.stage,           -- of that operator
  d.process_id,      -- NULL: the machine
  p.process,         -- short name of the process
  p.pid,
  d.thread,          -- group of threads by name, digits at its end left out; '' all
  d.subject,         -- device, interface, socket, ...; '' all
  d.cause,           -- cause, direction, state; '' all
  d.bucket,          -- lower bound of a histogram bucket, in the unit measured; NULL no histogram
  CASE WHEN m.kind = 'counter' THEN d.last_value
       WHEN d.weight_ns > 0 THEN d.weighted_sum / d.weight_ns ELSE d.last_value END
    AS value,        -- counter: total over the run; gauge: time-weighted mean
  CASE WHEN m.kind = 'gauge' THEN d.minimum_value END AS minimum_value,
  CASE WHEN m.kind = 'gauge' THEN d.maximum_value END AS maximum_value,
  d.last_value,
  d.running_ratio,   -- share of the time the counter really counted; NULL: always
  d.measurement_id   -- within the run, as in measurement_delta
FROM measurements AS d
JOIN metrics AS m USING (run_id, metric)
LEFT JOIN operators AS o ON o.run_id = d.run_id AND o.operator_id = d.operator_id
LEFT JOIN stages AS s ON s.run_id = o.run_id AND s.stage_id = o.stage_id
LEFT JOIN processes AS p ON p.run_id = d.run_id AND p.process_id = d.process_id;
