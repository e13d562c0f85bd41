-- What a tuner decided about a run, in order. One row per decision. Rates in batches per second.
DROP VIEW IF EXISTS decision_summary;
CREATE VIEW decision_summary AS SELECT
  run_id,
  decision_index,   -- from 0
  at_ns,            -- since the run began: when it was decided
  applied_ns,       -- when it took effect; NULL: it did not
  observed_ns,      -- when its effect was judged; NULL: not yet
  action,           -- apply, verify, revert, hold, scale_down, replan, cache, stop
  limited_by,       -- what limited when it was decided
  limited_by_kind,  -- consumer, cores, stage, lock, device, order, ...
  now_rate,         -- measured when it was decided
  predicted_rate,
  predicted_low,    -- 90 % interval
  predicted_high,
  observed_rate,    -- with it applied
  observed_low,     -- 95 % interval
  observed_high,
  verdict,          -- kept, reverted, failed, superseded; '': open
  reason,           -- in words
  detail_json       -- headrace.decision/1
FROM decisions;
