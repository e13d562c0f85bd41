// One run of a store as a database of its own.
#pragma once
#include <cstdint>
#include <string>

#include "collectors/store/statement.h"

namespace headrace::collectors {

// Copies a run, with its id, into a new database at `path`, which appears whole or not at all, as
// one file without a log beside it. `from` is a store of this version, or one shown as such
// (ShowAsCurrent); it is only read. The file has permissions `mode` less the umask. Throws Error;
// kUsage when `path` exists.
void CopyRun(Database& from, int64_t run_id, const std::string& path, uint32_t mode);

}  // namespace headrace::collectors
