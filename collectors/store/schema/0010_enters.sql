-- Version 10: how often threads entered an operator. Its busy time over that is the length of a visit,
-- which says whether keeping accounts of it costs much, and at level 2 whether c can be told apart.
-- NULL: recorded by an earlier version.

ALTER TABLE operators ADD COLUMN enters_count INTEGER;
ALTER TABLE operator_intervals ADD COLUMN enters_count INTEGER;
