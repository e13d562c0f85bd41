// FirstUse: renumbers rows in the order of their first use. It gives a part of a batch its own
// unique rows (dedup_group.h).
//
//   rows used 5 2 5 0     numbers 0 1 0 2     used() 5 2 0
//
// One thread; memory is kept from one Reset to the next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::reader {

class FirstUse {
 public:
  // Rows are below `rows`; none is used yet.
  void Reset(size_t rows) {
    numbers_.assign(rows, kNever);
    used_.clear();
  }
  // The number of `row`: the next free one when it is used for the first time.
  uint32_t operator()(uint32_t row) {
    uint32_t& number = numbers_[row];
    if (number == kNever) {
      number = static_cast<uint32_t>(used_.size());
      used_.push_back(row);
    }
    return number;
  }
  // The row of each number.
  const std::vector<uint32_t>& used() const { return used_; }

 private:
  static constexpr uint32_t kNever = UINT32_MAX;
  std::vector<uint32_t> numbers_, used_;
};

}  // namespace headrace::reader
