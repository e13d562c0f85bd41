-- The settings that a pipeline ran with, defaults included. One row per (run, key).
DROP VIEW IF EXISTS run_setting;
CREATE VIEW run_setting AS SELECT
  run_id,
  key,    -- as `--set` names it: source.io, decode.parallelism; transform[0].op for lists
  value   -- as written in the pipeline file or by `--set`, else the default
FROM run_settings;
