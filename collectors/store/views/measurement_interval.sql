-- The course of measurements, per stored interval. No row: a counter did not grow in it. What a
-- probe that is read seldom says is of the time since it was read before: a longer interval.
DROP VIEW IF EXISTS measurement_interval;
CREATE VIEW measurement_interval AS SELECT
  i.run_id,
  i.start_ns,      -- since the run began
  i.duration_ns,
  d.metric,
  m.unit,
  m.kind,
  d.source,
  o.operator,
  s.stage,
  d.process_id,
  p.process,
  p.pid,
  d.thread,
  d.subject,
  d.cause,
  i.value          -- counter: growth in the interval; gauge: mean over it
FROM measurement_intervals AS i
JOIN measurements AS d USING (run_id, measurement_id)
JOIN metrics AS m USING (run_id, metric)
LEFT JOIN operators AS o ON o.run_id = d.run_id AND o.operator_id = d.operator_id
LEFT JOIN stages AS s ON s.run_id = o.run_id AND s.stage_id = o.stage_id
LEFT JOIN processes AS p ON p.run_id = d.run_id AND p.process_id = d.process_id;
