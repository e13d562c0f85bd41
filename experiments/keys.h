// Tables with encrypted columns are opened with keys from a place that people name.
#pragma once
#include <string>

#include "reader/dwrf/file_reader.h"

namespace headrace::experiments {

// `place`: a file, or env:NAME; empty: no keys, encrypted columns stay locked. Throws Error as
// KeyRing::Load.
reader::dwrf::OpenOptions OpenWithKeys(const std::string& place);

}  // namespace headrace::experiments
