-- The metrics a run holds. One row per (run, metric).
DROP VIEW IF EXISTS metric_list;
CREATE VIEW metric_list AS SELECT
  run_id,
  metric,
  unit,
  kind,       -- counter, gauge
  source,     -- counter, ebpf, account, estimate; a measurement may say otherwise
  privilege,  -- what reading it needs
  help        -- one sentence
FROM metrics;
