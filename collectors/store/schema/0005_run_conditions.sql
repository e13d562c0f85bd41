-- Version 5: under which conditions a run was made, as `headrace run` knows them: what makes two runs
-- of one pipeline comparable, and what must not be mixed. NULL: not known (runs of other programs,
-- of earlier versions).

ALTER TABLE runs ADD COLUMN kind TEXT;                     -- pipeline; ceiling: one batch repeated, no input
ALTER TABLE runs ADD COLUMN settings_text TEXT;            -- what was set on top of the pipeline file, 'KEY=VALUE' a line
ALTER TABLE runs ADD COLUMN table_text TEXT;               -- what the table was: files, bytes, hash of names, sizes, times
ALTER TABLE runs ADD COLUMN cold INTEGER;                  -- 1: the page cache was made to forget the table, every epoch
ALTER TABLE runs ADD COLUMN resident_ratio REAL;           -- of the table's bytes in the page cache before the first read
ALTER TABLE runs ADD COLUMN resident_before_ratio REAL;    -- the same before they were dropped; NULL: they were not
ALTER TABLE runs ADD COLUMN resident_note TEXT;            -- why resident_ratio is NULL
ALTER TABLE runs ADD COLUMN epoch_splits_count INTEGER;    -- what the source hands out per epoch; NULL also: no epochs
ALTER TABLE runs ADD COLUMN element_order TEXT;            -- file: elements leave every queue in order; any
ALTER TABLE runs ADD COLUMN order_window_count INTEGER;    -- how far ahead of the due element one may wait; 0: no bound
ALTER TABLE runs ADD COLUMN clustered_dedup_ratio REAL;    -- bytes of lists for each kept, if rows lay by session: of a sample
