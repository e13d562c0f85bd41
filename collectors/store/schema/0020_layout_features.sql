-- Version 20: which share of a table's features a run uses, counted before streams of one fate are stored together.

-- Of the keys of flattened maps in the stripes that layout_streams has. NULL: of an earlier version.
ALTER TABLE layouts ADD COLUMN detailed_stripes_count INTEGER;  -- stripes that were counted
ALTER TABLE layouts ADD COLUMN stored_features_count INTEGER;
ALTER TABLE layouts ADD COLUMN used_features_count INTEGER;     -- of which some bytes are wanted
ALTER TABLE layouts ADD COLUMN stored_features_bytes INTEGER;
ALTER TABLE layouts ADD COLUMN used_features_bytes INTEGER;
