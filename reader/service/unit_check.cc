#include "reader/service/unit_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace headrace::reader::service {
namespace {

void CheckSpansOfUnit(const TensorBatch& unit) {
  uint64_t row = 0;
  for (const RowSpan& span : unit.spans) {
    if (span.rows > span.count || span.rows > unit.rows - row)
      throw Error(ExitCode::kBadData, "a unit's spans have other rows than the unit");
    uint64_t next = 0;  // from the span's first row: the least that may follow
    for (const uint64_t end = row + span.rows; row < end; ++row) {
      const uint64_t id = unit.RowId(row);
      if (id < span.first || id - span.first < next || id - span.first >= span.count)
        throw Error(ExitCode::kBadData,
                    fmt::format("a unit has row {} out of order, or outside its span", id));
      next = id - span.first + 1;
    }
  }
  if (row != unit.rows)
    throw Error(ExitCode::kBadData, "a unit's spans have other rows than the unit");
}

std::vector<std::string> NamesOf(const TensorBatch& unit, bool weighted) {
  std::vector<std::string> names;
  for (const JaggedKey& key : KeysInOrder(unit, weighted)) names.push_back(key.name());
  return names;
}

bool AreNames(const TensorBatch& unit, bool weighted, const std::vector<std::string>& names) {
  const std::vector<JaggedKey> keys = KeysInOrder(unit, weighted);
  return std::equal(
      keys.begin(), keys.end(), names.begin(), names.end(),
      [](const JaggedKey& key, const std::string& name) { return key.name() == name; });
}

}  // namespace

void UnitCheck::operator()(const TensorBatch& unit) {
  CheckSpansOfUnit(unit);
  if (unit.rows == 0) return;  // of rows that were all dropped nobody needs to know the features
  if (!has_seen_) {
    has_seen_ = true;
    is_labelled_ = !unit.labels.empty();
    dense_ = unit.dense_names;
    sparse_ = NamesOf(unit, false);
    weighted_ = NamesOf(unit, true);
  }
  if (unit.labels.empty() == is_labelled_ || unit.dense_names != dense_ ||
      !AreNames(unit, false, sparse_) || !AreNames(unit, true, weighted_))
    throw Error(ExitCode::kBadData, "a unit has other features than the first that came", {},
                "use the same headrace and the same table for all processes of a job");
}

}  // namespace headrace::reader::service
