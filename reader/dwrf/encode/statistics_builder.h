// StatisticsBuilder: the statistics of one node over some rows: a stride, a stripe, a file. Adding
// two builders gives the statistics of their rows together, in any order and grouping (sums of
// floats: up to rounding).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reader/dwrf/dwrf.pb.h"
#include "reader/dwrf/encode/bit_buffer.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

namespace proto = ::headrace::dwrf::proto;

class StatisticsBuilder {
 public:
  // A string bound longer than this is left out of the file.
  static constexpr size_t kMaxBoundBytes = 64;

  uint64_t num_values = 0;  // not null
  bool has_null = false;
  uint64_t raw_bytes = 0;  // nulls 1 byte, containers the sum of what they hold

  void AddIntegers(std::span<const int64_t> values);
  void AddInteger(int64_t value, uint64_t count);  // the same value `count` times
  void AddFloats(std::span<const float> values);
  void AddDoubles(std::span<const double> values);
  void AddString(std::string_view value, uint64_t count);  // count > 0
  void AddBinaryBytes(uint64_t bytes) { total_bytes_ += bytes; }
  void AddTrues(uint64_t count) { trues_ += count; }

  // Cut to kMaxBoundBytes + 1 bytes; meaningful after AddString.
  const std::string& min_string() const { return min_string_; }
  const std::string& max_string() const { return max_string_; }

  void Add(const StatisticsBuilder& other);
  void ToProto(TypeKind kind, proto::ColumnStatistics* out) const;

 private:
  void AddDouble(double minimum, double maximum, double sum);

  bool has_range_ = false;  // integers, doubles or strings were added
  int64_t min_integer_ = 0, max_integer_ = 0;
  __int128 sum_ = 0;
  bool has_nan_ = false;
  double min_double_ = 0, max_double_ = 0, sum_double_ = 0;
  // Bounds cut to kMaxBoundBytes + 1 bytes: what is longer is not written, and order among shorter
  // ones is not touched.
  std::string min_string_, max_string_;
  uint64_t total_bytes_ = 0;
  uint64_t trues_ = 0;
};

}  // namespace headrace::reader::dwrf
