-- Who took part in a job: its dispatchers, workers and ranks. One row per member, which is a run.
DROP VIEW IF EXISTS member_summary;
CREATE VIEW member_summary AS SELECT
  m.job_id,
  m.run_id,
  m.role,             -- dispatcher, worker, rank
  m.number,           -- of a rank; else its place in the order of appearance, from 1
  m.instance,         -- tells a process from any before or after it
  r.hostname,
  r.pid,
  r.state,
  r.cores_count,
  r.cores_bound_by,
  r.started_realtime_ns + m.clock_offset_ns AS started_realtime_ns,  -- by the dispatcher's clock
  r.duration_ns,      -- measured
  m.clock_offset_ns,  -- the dispatcher's clock minus the member's, with the way of a message
  m.has_ended         -- 1: said that it measures no more
FROM members AS m JOIN runs AS r USING (run_id);
