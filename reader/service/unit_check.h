// UnitCheck: units come from other processes, and ranks put them together: what that relies on is
// checked before. Not thread-safe.
#pragma once
#include <string>
#include <vector>

#include "reader/batch/tensor_batch.h"

namespace headrace::reader::service {

class UnitCheck {
 public:
  // Throws Error kBadData for a unit whose spans are not those of its rows, or that has other
  // features than the first one with rows: which of the two is odd is not known.
  void operator()(const TensorBatch& unit);

 private:
  bool has_seen_ = false, is_labelled_ = false;
  std::vector<std::string> dense_, sparse_, weighted_;  // of the first unit with rows
};

}  // namespace headrace::reader::service
