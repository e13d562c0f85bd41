// OpenSource: a Source for a place, read as the options say.
#pragma once
#include <memory>
#include <string>

#include "reader/source/options.h"
#include "reader/source/source.h"

namespace headrace::reader {

// Throws Error: what opening throws; kUsage for options that the place cannot have; kPrivilege
// where the kernel or its owner does not let this process use io_uring.
std::shared_ptr<const Source> OpenSource(const std::string& path, const SourceOptions& options);

}  // namespace headrace::reader
