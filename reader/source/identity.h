// SourceIdentity: what a source is known by between runs, for what is kept of its bytes.
#pragma once
#include <cstdint>

#include "reader/source/source.h"

namespace headrace::reader {

struct SourceIdentity {
  uint64_t name = 0;     // hash of its name
  uint64_t content = 0;  // hash of size, version and last 16 KiB: another file has another
  bool operator==(const SourceIdentity&) const = default;
};

// Throws Error as source.ReadAt does.
SourceIdentity IdentityOf(const Source& source);

}  // namespace headrace::reader
