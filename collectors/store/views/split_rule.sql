-- When c and b of an operator count as told apart. One row.
DROP VIEW IF EXISTS split_rule;
CREATE VIEW split_rule AS SELECT
  0.1 AS known_ratio,   -- widest bounds, of busy_ns: as far as costs differ between windows of a run
  0.01 AS small_ratio;  -- of an interval: what lies closer is too little of a thread to matter
