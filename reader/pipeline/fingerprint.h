// Fingerprint: hashes of what the rows of a pipeline, and what is in them, depend on. A checkpoint
// and a cache are of use to a run with the same ones only; both take them from here, so that what
// comes to depend on a new key of the pipeline file is said once.
//
// How rows are batched, ordered and shuffled, and by how many threads, is not in it.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {

struct Fingerprint {
  uint64_t table = 0;       // the files' sizes and footers; not their place
  uint64_t projection = 0;  // columns, features, label, filters, null columns, operators' choices
  uint64_t transforms = 0;  // and the outputs
  uint64_t seed = 0;
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint FingerprintOf(const Table& table, const PipelineSpec& spec);

// Text with lengths before its parts, so that no two lists of parts are equal.
class Description {
 public:
  template <typename T>
  void Add(const T& value) {
    const std::string text = fmt::format("{}", value);
    text_ += fmt::format("{}:{},", text.size(), text);
  }
  void AddList(const std::vector<std::string>& values) {
    Add(values.size());
    for (const std::string& value : values) Add(value);
  }
  uint64_t Hash() const;  // XXH3-64

 private:
  std::string text_;
};

}  // namespace headrace::reader
