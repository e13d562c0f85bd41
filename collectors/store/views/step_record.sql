-- Single steps of the trainer, where the flight recorder kept full detail (view detail_range). One row per step.
DROP VIEW IF EXISTS step_record;
CREATE VIEW step_record AS SELECT
  run_id,
  end_ns - wait_ns - compute_ns AS begin_ns,  -- since the run began
  wait_ns,                                    -- it waited for its batch, first
  compute_ns,                                 -- then it computed
  rows_count
FROM step_records;
