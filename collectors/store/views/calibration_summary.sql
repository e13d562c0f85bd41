-- Ceilings of machines. One row per (calibration, ceiling), the newest calibration first.
DROP VIEW IF EXISTS calibration_summary;
CREATE VIEW calibration_summary AS SELECT
  c.calibration_id,
  c.measured_realtime_ns,
  c.hostname,
  c.kernel,
  c.cpu_model,
  c.folder,         -- whose storage was measured
  x.metric,         -- memory_read_bytes_per_s, storage_read_latency_ns, decompress_bytes_per_s, ...
  x.unit,
  x.subject,        -- codec, hash, cipher, clock
  x.threads_count,  -- NULL: does not apply
  x.size_bytes,     -- of a request, block or working set
  x.depth_count,    -- requests in flight
  x.value,          -- the best of the repetitions
  x.minimum_value,
  x.maximum_value,
  x.repetitions_count,
  x.note
FROM calibrations AS c JOIN ceilings AS x USING (calibration_id)
ORDER BY c.calibration_id DESC, x.ceiling_id;
