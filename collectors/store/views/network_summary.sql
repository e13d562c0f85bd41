-- Sockets of the processes. One row per (run, process, socket, operator).
DROP VIEW IF EXISTS network_summary;
CREATE VIEW network_summary AS SELECT
  run_id,
  process_id,
  process,
  pid,
  subject AS socket,      -- addr:port>addr:port; '' all of the process
  operator,               -- NULL: not in an operator
  stage,
  CAST(SUM(CASE WHEN metric = 'socket_received_bytes' THEN value END) AS INTEGER)
    AS received_bytes,    -- NULL not measured
  CAST(SUM(CASE WHEN metric = 'socket_sent_bytes' THEN value END) AS INTEGER) AS sent_bytes,
  CAST(SUM(CASE WHEN metric = 'tcp_retransmits_count' THEN value END) AS INTEGER)
    AS retransmits_count,
  CAST(SUM(CASE WHEN metric = 'tcp_receive_window_stalls_count' THEN value END) AS INTEGER)
    AS receive_window_stalls_count
FROM measurement_summary
WHERE metric IN ('socket_received_bytes', 'socket_sent_bytes', 'tcp_retransmits_count',
  'tcp_receive_window_stalls_count')
GROUP BY run_id, process_id, process, pid, subject, operator, stage;
