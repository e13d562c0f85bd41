#include "reader/dwrf/encode/statistics_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace::reader::dwrf {
namespace {

template <class T>
struct Summary {
  T minimum, maximum;
  double sum;
  bool has_nan;
};

template <class T>
Summary<T> Summarize(std::span<const T> values) {
  Summary<T> s{values[0], values[0], 0, false};
  for (const T value : values) {
    s.has_nan |= std::isnan(value);
    s.minimum = value < s.minimum ? value : s.minimum;
    s.maximum = value > s.maximum ? value : s.maximum;
    s.sum += static_cast<double>(value);
  }
  return s;
}

}  // namespace

void StatisticsBuilder::AddIntegers(std::span<const int64_t> values) {
  if (values.empty()) return;
  int64_t minimum = values[0], maximum = values[0];
  for (const int64_t value : values) {
    minimum = value < minimum ? value : minimum;
    maximum = value > maximum ? value : maximum;
  }
  const int64_t safe = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(values.size());
  if (minimum >= -safe && maximum <= safe) {  // the usual case, in one machine word
    int64_t sum = 0;
    for (const int64_t value : values) sum += value;
    sum_ += sum;
  } else {
    for (const int64_t value : values) sum_ += value;
  }
  min_integer_ = has_range_ ? std::min(min_integer_, minimum) : minimum;
  max_integer_ = has_range_ ? std::max(max_integer_, maximum) : maximum;
  has_range_ = true;
}

void StatisticsBuilder::AddInteger(int64_t value, uint64_t count) {
  if (count == 0) return;
  sum_ += static_cast<__int128>(value) * static_cast<__int128>(count);
  min_integer_ = has_range_ ? std::min(min_integer_, value) : value;
  max_integer_ = has_range_ ? std::max(max_integer_, value) : value;
  has_range_ = true;
}

void StatisticsBuilder::AddDouble(double minimum, double maximum, double sum) {
  min_double_ = has_range_ ? std::min(min_double_, minimum) : minimum;
  max_double_ = has_range_ ? std::max(max_double_, maximum) : maximum;
  sum_double_ += sum;
  has_range_ = true;
}

void StatisticsBuilder::AddFloats(std::span<const float> values) {
  if (values.empty()) return;
  const auto s = Summarize(values);
  has_nan_ |= s.has_nan;
  AddDouble(static_cast<double>(s.minimum), static_cast<double>(s.maximum), s.sum);
}

void StatisticsBuilder::AddDoubles(std::span<const double> values) {
  if (values.empty()) return;
  const auto s = Summarize(values);
  has_nan_ |= s.has_nan;
  AddDouble(s.minimum, s.maximum, s.sum);
}

void StatisticsBuilder::AddString(std::string_view value, uint64_t count) {
  total_bytes_ += count * value.size();
  value = value.substr(0, kMaxBoundBytes + 1);  // std::string compares as unsigned bytes
  if (!has_range_ || value < min_string_) min_string_ = value;
  if (!has_range_ || value > max_string_) max_string_ = value;
  has_range_ = true;
}

void StatisticsBuilder::Add(const StatisticsBuilder& other) {
  num_values += other.num_values;
  has_null |= other.has_null;
  raw_bytes += other.raw_bytes;
  total_bytes_ += other.total_bytes_;
  trues_ += other.trues_;
  has_nan_ |= other.has_nan_;
  sum_ += other.sum_;
  if (!other.has_range_) return;
  if (!has_range_ || other.min_string_ < min_string_) min_string_ = other.min_string_;
  if (!has_range_ || other.max_string_ > max_string_) max_string_ = other.max_string_;
  min_integer_ = has_range_ ? std::min(min_integer_, other.min_integer_) : other.min_integer_;
  max_integer_ = has_range_ ? std::max(max_integer_, other.max_integer_) : other.max_integer_;
  AddDouble(other.min_double_, other.max_double_, other.sum_double_);
}

void StatisticsBuilder::ToProto(TypeKind kind, proto::ColumnStatistics* out) const {
  out->set_number_of_values(num_values);
  out->set_has_null(has_null);
  out->set_raw_size(raw_bytes);
  if (num_values == 0) return;
  switch (kind) {
    case TypeKind::kBoolean:
      out->mutable_bucket_statistics()->add_count(trues_);
      break;
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong: {
      auto* integers = out->mutable_int_statistics();
      integers->set_minimum(min_integer_);
      integers->set_maximum(max_integer_);
      if (sum_ >= std::numeric_limits<int64_t>::min() &&
          sum_ <= std::numeric_limits<int64_t>::max())
        integers->set_sum(static_cast<int64_t>(sum_));
      break;
    }
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      if (has_nan_) break;
      auto* doubles = out->mutable_double_statistics();
      doubles->set_minimum(min_double_);
      doubles->set_maximum(max_double_);
      if (!std::isnan(sum_double_)) doubles->set_sum(sum_double_);  // infinities of both signs
      break;
    }
    case TypeKind::kString: {
      auto* strings = out->mutable_string_statistics();
      if (min_string_.size() <= kMaxBoundBytes) strings->set_minimum(min_string_);
      if (max_string_.size() <= kMaxBoundBytes) strings->set_maximum(max_string_);
      strings->set_sum(static_cast<int64_t>(total_bytes_));
      break;
    }
    case TypeKind::kBinary:
      out->mutable_binary_statistics()->set_sum(static_cast<int64_t>(total_bytes_));
      break;
    default:
      break;
  }
}

}  // namespace headrace::reader::dwrf
