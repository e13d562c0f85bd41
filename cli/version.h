// What `headrace --version` prints: version, commit, how this was built, and the formats it knows.
#pragma once

namespace headrace::cli {

// Prints to standard output, as one JSON object (schema headrace.version/1) or as lines for people,
// the first of which is "headrace VERSION".
void PrintVersion(bool json);

}  // namespace headrace::cli
