-- Version 9: what c and q of an operator lie between. Short visits of several operators share one
-- reading of their thread's CPU clock; on_cpu_ns and runnable_ns are then estimates, which the views
-- show only where the bounds are close (view split_rule). NULL: on_cpu_ns and runnable_ns are as an
-- earlier version recorded them, or exact.

ALTER TABLE operators ADD COLUMN on_cpu_low_ns INTEGER;
ALTER TABLE operators ADD COLUMN on_cpu_high_ns INTEGER;
ALTER TABLE operators ADD COLUMN runnable_low_ns INTEGER;
ALTER TABLE operators ADD COLUMN runnable_high_ns INTEGER;

ALTER TABLE operator_intervals ADD COLUMN on_cpu_low_ns INTEGER;
ALTER TABLE operator_intervals ADD COLUMN on_cpu_high_ns INTEGER;
ALTER TABLE operator_intervals ADD COLUMN runnable_low_ns INTEGER;
ALTER TABLE operator_intervals ADD COLUMN runnable_high_ns INTEGER;
