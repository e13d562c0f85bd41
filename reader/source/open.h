// OpenSource: a Source for a place, read as the options say; and what a table's place holds.
//
//   folder/part-00000.dwrf             a local file
//   http://host/t/part-00000.dwrf      an object behind HTTP or HTTPS
//   s3://bucket/t/part-00000.dwrf      an object of S3 (reader/source/s3.h)
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reader/source/options.h"
#include "reader/source/source.h"
#include "reader/source/throttle.h"

namespace headrace::reader {

// What the sources of a pipeline share.
struct SourceContext {
  std::shared_ptr<Throttle> throttle;  // null: as fast as the storage is
  std::function<bool()> stopped;       // true ends waits for remote storage; may be null
};

bool IsRemote(const std::string& place);

// Throws Error: what opening throws; kUsage for a place or options that cannot be; kPrivilege where
// the kernel or its owner does not let this process use io_uring, or a server refuses.
std::shared_ptr<const Source> OpenSource(const std::string& place, const SourceOptions& options,
                                         const SourceContext& context = {});

// The files of a table: the place itself, or the .dwrf and .orc files of a folder in name order. A
// folder behind HTTP ends in "/" and names its files in an object files.json beside them:
// {"files": ["part-00000.dwrf"]}. Throws Error kBadData when there are none.
std::vector<std::string> ListTable(const std::string& place, const SourceOptions& options,
                                   const SourceContext& context = {});

}  // namespace headrace::reader
