// Opens tables with encrypted columns, with keys from a place that the user names.
#pragma once
#include <string>

#include "reader/dwrf/file_reader.h"

namespace headrace::experiments {

// `place`: a file, or env:NAME; empty: no keys, encrypted columns stay locked. Throws Error as
// KeyRing::Load.
reader::dwrf::OpenOptions OpenWithKeys(const std::string& place);

}  // namespace headrace::experiments
