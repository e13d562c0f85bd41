// Segment claims: every file that is named like a segment of operator accounts, checked against the
// process that it names. Anybody can write to the folder, so a name alone must start nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/process_identity.h"

namespace headrace::collectors {

// Start times of processes are known to 10 ms.
inline constexpr int64_t kProcessStartErrorNs = 20'000'000;

struct SegmentClaim {
  std::string path;
  int64_t pid = 0;      // of the process, in our pid namespace; 0 when refused
  std::string refusal;  // why the file is not believed; "": the process did make it
};

// All files with such a name in the folder of accounts, and in that folder of each visible
// container (mount namespace). Left out are files that are still being made, closed ones, and those
// of dead processes.
//
// A file is believed if it is a regular file, made by the living process that it names
// (WhyNotItsWord) after that process began.
//
// One call takes at most kMostClaims files, and at most half as many of one user other than root,
// so that nobody can keep this program busy by making files. `*left_out`, if given, is the number
// of files beyond that.
constexpr size_t kMostClaims = 4096;
std::vector<SegmentClaim> ReadSegmentClaims(size_t* left_out = nullptr);

// Why the file open as `fd` was not made by process `pid`; "" if it was. It was if only its owner
// may write it, its owner is the process's user, and the process has it mapped. Mappings are not
// checked if they may not be read or the process has ended. `last_ids` are its users as last seen,
// for when nothing can be read about it any more. A file that root owns is also accepted for a
// process that has given up being root, if the process is seen to have it mapped.
std::string WhyNotItsWord(int fd, int64_t pid,
                          const std::optional<probes::ProcessIds>& last_ids = std::nullopt);

}  // namespace headrace::collectors
