-- Locks and devices the pipeline's threads waited for. One row per (run, resource).
DROP VIEW IF EXISTS resource_summary;
CREATE VIEW resource_summary AS SELECT
  run_id,
  resource,
  kind,                -- lock, device
  servers_count,       -- holders at the same time
  acquisitions_count,
  wait_ns,             -- summed over threads
  hold_ns,             -- summed over holders
  moved_bytes          -- through a device
FROM resources;
