// Segment claims: every file that is named like a segment of operator accounts, held against the
// process it names. The folder is everybody's, so a name alone must start nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/process_identity.h"

namespace headrace::collectors {

struct SegmentClaim {
  std::string path;
  int64_t pid = 0;      // of the process, as this program numbers it; 0 when refused
  std::string refusal;  // why the file is not believed; "" it is that process's word
};

// All files so named in the folder of accounts, and in that folder of each container (mount
// namespace) to be seen. Left out are those being made, closed ones, and those of dead processes.
//
// Believed is a regular file that is the word (WhyNotItsWord) of the living process it names, made
// after that process began.
//
// A look takes kMostClaims files, and of one user other than root half of them: who makes files
// must not be able to keep this program busy. `*left_out`, if given, is how many there are more.
constexpr size_t kMostClaims = 4096;
std::vector<SegmentClaim> ReadSegmentClaims(size_t* left_out = nullptr);

// Why the file open as `fd` is not the word of process `pid`, "" if it is: only its owner may write
// it, its owner is the process's user, and the process has it mapped. Where its mappings may not be
// read or it has ended, the rest has to do; where nothing can be read of it any more, `last_ids`
// are its users as last seen. What root wrote, a process that has given up being root may have as
// its own, if it is seen to have it mapped.
std::string WhyNotItsWord(int fd, int64_t pid,
                          const std::optional<probes::ProcessIds>& last_ids = std::nullopt);

}  // namespace headrace::collectors
