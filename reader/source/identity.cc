#include "reader/source/identity.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <string>
#include <vector>

namespace headrace::reader {

SourceIdentity IdentityOf(const Source& source) {
  // The footer of a table's file names every stream of every stripe and its size; it changes with
  // the file even where the storage tells no version.
  std::vector<uint8_t> tail(std::min<uint64_t>(source.size(), 16 << 10));
  source.ReadAt(source.size() - tail.size(), tail);
  const std::string version = fmt::format("{} {}", source.size(), source.version());
  SourceIdentity identity;
  identity.name = XXH3_64bits(source.name().data(), source.name().size());
  identity.content =
      XXH3_64bits_withSeed(tail.data(), tail.size(), XXH3_64bits(version.data(), version.size()));
  return identity;
}

}  // namespace headrace::reader
