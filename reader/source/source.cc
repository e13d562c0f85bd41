#include "reader/source/source.h"

namespace headrace::reader {

void Source::ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const {
  for (const ReadRequest& request : requests) {
    ReadAt(request.offset, request.out);
    ++figures->requests;
    figures->bytes += request.out.size();
  }
}

}  // namespace headrace::reader
