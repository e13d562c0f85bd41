-- What could be measured in a run, and what not and why. One row per (run, probe).
DROP VIEW IF EXISTS probe_status;
CREATE VIEW probe_status AS SELECT
  run_id,
  probe,
  state,   -- active, degraded, unavailable
  reason,  -- '' when active
  fix,     -- what would change it
  affects  -- what the pages lack without it
FROM probes;
