-- Version 13: resources of any kind, not only locks and devices: which there are, the kinds of limits
-- know. SQLite changes no constraint of a table, so it is made anew.

ALTER TABLE resources RENAME TO resources_of_version_12;
CREATE TABLE resources (
  run_id             INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
  resource_id        INTEGER NOT NULL,
  resource           TEXT NOT NULL,
  kind               TEXT NOT NULL,               -- lock, device, memory
  servers_count      INTEGER NOT NULL,            -- holders at the same time; of memory: MiB
  acquisitions_count INTEGER NOT NULL DEFAULT 0,
  wait_ns            INTEGER NOT NULL DEFAULT 0,
  hold_ns            INTEGER NOT NULL DEFAULT 0,
  moved_bytes        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, resource_id)
) STRICT, WITHOUT ROWID;
INSERT INTO resources (run_id, resource_id, resource, kind, servers_count, acquisitions_count, wait_ns,
                       hold_ns, moved_bytes)
  SELECT run_id, resource_id, resource, kind, servers_count, acquisitions_count, wait_ns, hold_ns,
         moved_bytes
  FROM resources_of_version_12;
DROP TABLE resources_of_version_12;
