-- The knobs that decisions turned. One row per decision and knob.
DROP VIEW IF EXISTS decision_change;
CREATE VIEW decision_change AS SELECT
  run_id,
  decision_index,
  knob,       -- decode.parallelism
  from_text,
  to_text
FROM decision_changes;
