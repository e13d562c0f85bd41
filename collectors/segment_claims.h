// Segment claims: every file that is named like a segment of operator accounts, held against the
// process it names. The folder is everybody's, so a name alone must start nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::collectors {

struct SegmentClaim {
  std::string path;
  int64_t pid = 0;      // of the process, as this program numbers it; 0 when refused
  std::string refusal;  // why the file is not believed; "" it is that process's word
};

// All files so named in the folder of accounts, and in that folder of each container (mount
// namespace) to be seen. Left out are those being made, closed ones, and those of dead processes.
//
// Believed is a regular file that only its owner may write, of the owner that the living process
// it names has, made after that process began, and mapped by that process. Where its mappings may
// not be read, the rest has to do.
std::vector<SegmentClaim> ReadSegmentClaims();

}  // namespace headrace::collectors
