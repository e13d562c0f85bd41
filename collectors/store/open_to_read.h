// Opens a store for reading, whatever version wrote it.
#pragma once
#include <string>

#include "collectors/store/statement.h"

namespace headrace::collectors {

enum class Foreign { kRefused, kAsItIs };
// Opens a store so that it reads as if it were of this version; the file is never written. Works
// while a collector writes to it, and waits up to three seconds for one that has just made the
// file. Throws Error kBadData when there is no such file, or it is not a store, damaged, or of a
// version that this program does not know. With kAsItIs a database of another program is opened as
// it is.
Database OpenToRead(const std::string& path, Foreign foreign = Foreign::kRefused);

}  // namespace headrace::collectors
