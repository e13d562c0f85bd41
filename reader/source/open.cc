#include "reader/source/open.h"

#include "reader/source/local_file.h"
#include "reader/source/uring.h"

namespace headrace::reader {

std::shared_ptr<const Source> OpenSource(const std::string& path, const SourceOptions& options) {
  if (options.io == IoMethod::kUring)
    return OpenUringFile(path, options.direct, options.depth, options.registered);
  return std::make_shared<LocalFile>(path, options.direct);
}

}  // namespace headrace::reader
