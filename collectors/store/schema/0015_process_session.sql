-- Version 15: the session of a process, which its terminal or its job started.

ALTER TABLE processes ADD COLUMN session_id INTEGER;
