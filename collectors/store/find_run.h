// The run that a user means by an id, a name or "latest".
#pragma once
#include <cstdint>
#include <string>

#include "collectors/store/statement.h"

namespace headrace::collectors {

// The id of that run; where several have the name, the newest. Throws Error kBadData naming the
// runs there are.
int64_t FindRunOrThrow(Database& database, const std::string& run);

}  // namespace headrace::collectors
