-- The course of each resource, as deltas per stored interval. No row: it was not used.
DROP VIEW IF EXISTS resource_interval;
CREATE VIEW resource_interval AS SELECT
  i.run_id,
  i.start_ns,  -- since the run began
  t.duration_ns,
  r.resource,
  r.kind,
  i.acquisitions_count,
  i.wait_ns,
  i.hold_ns,
  i.moved_bytes
FROM resource_intervals AS i
JOIN intervals AS t USING (run_id, start_ns)
JOIN resources AS r USING (run_id, resource_id);
