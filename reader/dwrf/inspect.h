// What a file says about itself: schema, postscript, footer, stripes, streams, encodings, keys,
// statistics, cache, encryption.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/verify.h"

namespace headrace::reader::dwrf {

// {"schema": "headrace.inspect/1", ...}; sizes in bytes, offsets in the file unless named
// otherwise, names as in the format with units; byte strings that are not UTF-8 have \xNN in place
// of their bytes; unsaid fields are absent. A stripe whose footer cannot be read has "error" in
// place of its contents. With `verified`, also what Verify compared with the rows.
std::string InspectJson(const FileReader& file, const Verification* verified = nullptr);

struct InspectTextOptions {
  bool streams = false;  // list every stream, not sums by kind
};
// The same for people.
std::string InspectText(const FileReader& file, const InspectTextOptions& options = {});

}  // namespace headrace::reader::dwrf
