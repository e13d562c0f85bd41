-- Version 6: beside what clustering would give, what the same sample gives as its rows lie. Only
-- both together say whether a table is clustered already.

ALTER TABLE runs ADD COLUMN sample_dedup_ratio REAL;       -- bytes of lists for each kept, in the order the rows have: of the sample of clustered_dedup_ratio
