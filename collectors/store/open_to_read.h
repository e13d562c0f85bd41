// Opening a store to be read as this version would have it.
#pragma once
#include <string>

#include "collectors/store/statement.h"

namespace headrace::collectors {

enum class Foreign { kRefused, kAsItIs };
// Opens a store to be read as this version would have it; the file is never written. Works beside
// a collector that writes. Throws Error kBadData when there is no such file, or it is no store,
// damaged or of a version this program does not know; with kAsItIs another program's database is
// given as it is.
Database OpenToRead(const std::string& path, Foreign foreign = Foreign::kRefused);

}  // namespace headrace::collectors
