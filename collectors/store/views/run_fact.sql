-- Figures about a run that single recommendations ask for. One row per (run, name).
DROP VIEW IF EXISTS run_fact;
CREATE VIEW run_fact AS SELECT
  run_id,
  name,   -- clustered_dedup_ratio: bytes of lists for each that would be kept if rows lay by session,
          -- of a sample; sample_dedup_ratio: the same of that sample in the order its rows have;
          -- lz4_bytes_ratio, lz4_decompress_ratio: of the columns that are read, with lz4 / as they are, of
          -- a sample: stored bytes, and CPU time of decompressing them
  value,
  unit    -- ratio, bytes, ns, ...
FROM run_facts
-- Of runs that an earlier version recorded.
UNION ALL SELECT r.run_id, 'clustered_dedup_ratio', r.clustered_dedup_ratio, 'ratio'
FROM runs AS r
WHERE r.clustered_dedup_ratio IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM run_facts AS f WHERE f.run_id = r.run_id AND f.name = 'clustered_dedup_ratio')
UNION ALL SELECT r.run_id, 'sample_dedup_ratio', r.sample_dedup_ratio, 'ratio'
FROM runs AS r
WHERE r.sample_dedup_ratio IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM run_facts AS f WHERE f.run_id = r.run_id AND f.name = 'sample_dedup_ratio');
