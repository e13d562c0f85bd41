#include "base/quantity.h"

#include <algorithm>

#include "base/check.h"

namespace headrace {

const char* UnitName(Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return "";
    case Unit::kRatio:
      return "ratio";
    case Unit::kNanoseconds:
      return "ns";
    case Unit::kBytes:
      return "bytes";
    case Unit::kRows:
      return "rows";
    case Unit::kPerSecond:
      return "1/s";
    case Unit::kBytesPerSecond:
      return "bytes/s";
    case Unit::kRowsPerSecond:
      return "rows/s";
    case Unit::kCores:
      return "cores";
    case Unit::kCount:
      return "count";
  }
  return "";
}

const char* SourceName(Source source) {
  switch (source) {
    case Source::kCounter:
      return "counter";
    case Source::kEbpf:
      return "ebpf";
    case Source::kAccount:
      return "account";
    case Source::kEstimate:
      return "estimate";
  }
  return "";
}

Quantity Quantity::Of(double value, Unit unit, Source source) {
  Quantity q;
  q.value_ = value;
  q.unit_ = unit;
  q.source_ = source;
  return q;
}

Quantity Quantity::Unavailable(std::string reason, Unit unit) {
  Quantity q;
  q.reason_ = std::move(reason);
  q.unit_ = unit;
  return q;
}

Quantity Quantity::WithInterval(double low, double high, double level) const {
  Quantity q = *this;
  if (!q.available()) return q;
  q.has_interval_ = true;
  q.low_ = low;
  q.high_ = high;
  q.level_ = level;
  return q;
}

double Quantity::value() const {
  HR_CHECK(value_.has_value(), "value() of an unavailable quantity");
  return *value_;
}

Quantity Divide(const Quantity& a, const Quantity& b, Unit unit) {
  if (!a.available()) return Quantity::Unavailable(a.reason(), unit);
  if (!b.available()) return Quantity::Unavailable(b.reason(), unit);
  if (b.value() == 0) return Quantity::Unavailable("the divisor is 0", unit);
  return Quantity::Of(a.value() / b.value(), unit, std::max(a.source(), b.source()));
}

}  // namespace headrace
