-- Folded stacks. One row per (run, kind, process, operator, thread group, stack).
DROP VIEW IF EXISTS stack_summary;
CREATE VIEW stack_summary AS SELECT
  k.run_id,
  k.kind,           -- cpu, off_cpu; python: functions of Python, whatever the thread did
  CASE WHEN k.kind <> 'off_cpu' THEN NULL
       WHEN k.operator_id IS NULL THEN 'outside'
       WHEN k.folded LIKE '%[waits for input]%' OR k.folded LIKE '%[waits for room]%' THEN 'queue'
       ELSE 'inside' END
    AS class,       -- of off_cpu: inside an operator, waiting at a queue, outside every operator. Runs
                    -- recorded before schema 16 call waits at a queue inside too
  o.operator,       -- NULL: outside every operator
  s.stage,
  k.process_id,
  p.process,
  p.pid,
  k.thread,
  k.folded,         -- root first, frames separated by ';'
  k.samples_count,
  k.time_ns         -- what the samples stand for
FROM stacks AS k
LEFT JOIN operators AS o ON o.run_id = k.run_id AND o.operator_id = k.operator_id
LEFT JOIN stages AS s ON s.run_id = o.run_id AND s.stage_id = o.stage_id
LEFT JOIN processes AS p ON p.run_id = k.run_id AND p.process_id = k.process_id;
