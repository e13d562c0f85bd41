// Fingerprint: hashes of everything that a pipeline's rows and their contents depend on. A
// checkpoint or a cache can only be used by a run with the same fingerprint. Both take it from
// here, so that a new key of the pipeline file has to be added in one place only.
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
  uint64_t table = 0;       // the files' sizes and footers, but not their location
  uint64_t projection = 0;  // columns, features, label, filters, null columns, operators' choices
  uint64_t transforms = 0;  // and the outputs
  uint64_t seed = 0;
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint FingerprintOf(const Table& table, const PipelineSpec& spec);

// A text with the length before each part, so that different lists of parts always give different
// texts.
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
