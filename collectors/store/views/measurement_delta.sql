-- The course of measurements by their numbers: what measurement_interval says, without looking
-- anything up for a row, so that a few of them are found fast in a long run.
DROP VIEW IF EXISTS measurement_delta;
CREATE VIEW measurement_delta AS SELECT
  run_id,
  start_ns,        -- since the run began
  measurement_id,  -- within the run, as in measurement_summary
  duration_ns,
  value            -- counter: growth in the interval; gauge: mean over it
FROM measurement_intervals;
