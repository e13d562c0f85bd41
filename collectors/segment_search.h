// SegmentSearch: finds the file with the operator accounts of one process. It checks the content,
// because where containers share a folder the usual name may be another process's. For a process in
// its own namespaces it looks for the pid that the process has there, in the folder that the
// process sees.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/account/account_segment.h"
#include "probes/process_identity.h"

namespace headrace::collectors {

class SegmentSearch {
 public:
  // `pid`: in our pid namespace.
  explicit SegmentSearch(int64_t pid) : pid_(pid) {}

  // The path of the process's segment; "" while there is no complete one. If the only file with
  // such a name is damaged or may not be read, its path, so that opening it throws the reason.
  // Meant to be called repeatedly: usually that costs two system calls. Still finds the file after
  // the process has died, if it was looked for before.
  std::string Find();
  // The same, but "" instead of the path of a file that is damaged or may not be read.
  std::string FindWhole() { return Look(nullptr); }

  // The users of the process, as last read while it lived; absent if they were never read.
  const std::optional<probes::ProcessIds>& ids() const { return ids_; }

  // What keeps the process from having accounts: the folder is absent, read-only, full or not
  // writable for it, or accounts are switched off.
  struct Obstacle {
    std::string reason;  // "its /dev/shm is read-only"; "" if nothing is seen
    std::string fix;
  };
  Obstacle FindObstacle();

 private:
  std::string Look(std::string* faulty);
  void FindPlaces();
  bool IsIts(const hr_header& header) const;

  int64_t pid_;
  std::optional<probes::ProcessIds> ids_;
  int64_t own_pid_ = 0;         // the process's pid in its own namespace
  uint64_t pid_namespace_ = 0;  // 0: not known
  // Path of the folder for its accounts, as the process sees it ...
  std::string own_name_;
  std::string own_folder_;          // ... and as this program reaches it
  std::vector<std::string> paths_;  // where its segment may be
  int64_t next_look_ns_ = 0;        // when its namespaces are looked at again
};

}  // namespace headrace::collectors
