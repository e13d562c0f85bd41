// Quantity: a measured value with its unit, source and interval, or the reason why there is none.
//
// Nothing unmeasured is ever 0: an unavailable Quantity prints "unavailable (reason)" and makes
// everything computed from it unavailable with the same reason.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace headrace {

enum class Unit : uint8_t {
  kNone,
  kRatio,
  kNanoseconds,
  kBytes,
  kRows,
  kPerSecond,
  kBytesPerSecond,
  kRowsPerSecond,
  kCores,
  kCount
};

// Best first; arithmetic keeps the worst of its operands.
enum class Source : uint8_t { kCounter, kEbpf, kAccount, kEstimate };

const char* UnitName(Unit unit);        // "ns", "bytes", "rows/s", ...
const char* SourceName(Source source);  // "counter", "ebpf", "account", "estimate"

class Quantity {
 public:
  static Quantity Of(double value, Unit unit, Source source);
  static Quantity Unavailable(std::string reason, Unit unit = Unit::kNone);

  // The same value with a confidence interval; `level` is its nominal coverage, e.g. 0.9.
  Quantity WithInterval(double low, double high, double level = 0.9) const;

  bool available() const { return value_.has_value(); }
  double value() const;  // HR_CHECKs availability
  std::optional<double> optional_value() const { return value_; }
  const std::string& reason() const { return reason_; }
  Unit unit() const { return unit_; }
  Source source() const { return source_; }
  bool has_interval() const { return has_interval_; }
  double low() const { return low_; }
  double high() const { return high_; }
  double level() const { return level_; }

 private:
  std::optional<double> value_;
  std::string reason_;
  Unit unit_ = Unit::kNone;
  Source source_ = Source::kAccount;
  bool has_interval_ = false;
  double low_ = 0, high_ = 0, level_ = 0;
};

// a / b in `unit`; unavailable when either is, or when b is 0 ("division by zero" is absence, not
// infinity).
Quantity Divide(const Quantity& a, const Quantity& b, Unit unit);

}  // namespace headrace
