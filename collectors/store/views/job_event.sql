-- What happened in a job. One row per event.
DROP VIEW IF EXISTS job_event;
CREATE VIEW job_event AS SELECT
  d.job_id,
  e.run_id,                -- of the dispatcher
  e.event_index,
  e.at_ns,                 -- since that run began
  e.kind,                  -- worker_joined, worker_lost, worker_silent, worker_failed, rank_lost, term_began
  m.role,                  -- of the member; NULL: it measured nothing
  m.number,
  e.instance,              -- of the member; '' of none
  e.splits_count,          -- that are leased again for it; NULL none
  e.text
FROM job_events AS e
JOIN members AS d ON d.run_id = e.run_id
LEFT JOIN members AS m ON m.job_id = d.job_id AND m.instance = e.instance AND e.instance <> '';
