// SegmentSearch: finds the file with the operator accounts of one process. By content: where
// containers share a folder, the usual name may be another's. A process in namespaces of its own is
// looked for under the number that it has there, and in the folder as it sees it.
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
  // `pid`: as this program numbers the process.
  explicit SegmentSearch(int64_t pid) : pid_(pid) {}

  // The path of the process's segment; "" while there is none that is whole. If the only file with
  // such a name is damaged or may not be read, its path: opening it throws why. Meant to be called
  // again and again: usually that costs two calls of the kernel. Still finds the file after the
  // process has died, if it was looked for before.
  std::string Find();
  // The same, but "" instead of the path of a file that is damaged or may not be read.
  std::string FindWhole() { return Look(nullptr); }

  // The users of the process, as of the last look while it had some; absent if there was none.
  const std::optional<probes::ProcessIds>& ids() const { return ids_; }

  // What keeps the process from having accounts: the folder for them is absent, read-only, full or
  // not its to write, or they are switched off.
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
  int64_t own_pid_ = 0;             // as the process numbers itself
  uint64_t pid_namespace_ = 0;      // 0: not known
  std::string own_name_;            // of the folder for its accounts, as the process has it ...
  std::string own_folder_;          // ... and as this program reaches it
  std::vector<std::string> paths_;  // where its segment may be
  int64_t next_look_ns_ = 0;        // for its namespaces
};

}  // namespace headrace::collectors
