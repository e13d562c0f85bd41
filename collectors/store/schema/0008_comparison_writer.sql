-- Version 8: who makes a comparison, so that one whose program was killed is not running for ever.

ALTER TABLE comparisons ADD COLUMN hostname TEXT NOT NULL DEFAULT '';  -- '': of an earlier version
ALTER TABLE comparisons ADD COLUMN writer_pid INTEGER;                 -- who runs it while state is 'running'
ALTER TABLE comparisons ADD COLUMN writer_start INTEGER;               -- its start time in clock ticks since boot
