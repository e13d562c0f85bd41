// ProcessMaps: the executable mappings of a process, as read from /proc/PID/maps at one moment.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "probes/host.h"

namespace headrace::probes::stack {

struct Mapping {
  uint64_t start = 0, end = 0;
  uint64_t offset = 0;   // in the file
  uint64_t inode = 0;    // 0: no file
  std::string path;      // as the process sees it; "[vdso]", "" anonymous
  bool deleted = false;  // the file's name is gone; " (deleted)" is not part of `path`
};

// The executable mappings in the text of a maps file, by address. Lines that cannot be parsed are
// left out; at most 65536 mappings are kept.
std::vector<Mapping> ParseMaps(std::string_view text);
// The mappings of a live process; empty if they cannot be read.
std::vector<Mapping> ReadMaps(const Host& host, int64_t pid);
// The mapping that contains `address`, or null.
const Mapping* FindMapping(const std::vector<Mapping>& maps, uint64_t address);

}  // namespace headrace::probes::stack
