#include "reader/service/unit_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "reader/pipeline/fingerprint.h"

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

uint64_t HashOfFeatures(bool is_labelled, const std::vector<std::string>& dense,
                        const std::vector<std::string>& sparse,
                        const std::vector<std::string>& weighted) {
  Description text;
  text.Add(is_labelled);
  text.AddList(dense);
  text.AddList(sparse);
  text.AddList(weighted);
  return text.Hash();
}

}  // namespace

uint64_t FeaturesOf(const std::vector<AvailableColumn>& columns, const std::string& label) {
  const auto names = [&](ColumnKind kind) {
    std::vector<std::string> of_kind;
    for (const AvailableColumn& column : columns)
      if (column.kind == kind) of_kind.push_back(column.name);
    return of_kind;
  };
  return HashOfFeatures(!label.empty(), names(ColumnKind::kDense), names(ColumnKind::kSparse),
                        names(ColumnKind::kWeightedSparse));
}

bool UnitCheck::AreLast(const TensorBatch& unit) const {
  return hash_of_last_ && unit.labels.empty() != last_.is_labelled &&
         unit.dense_names == last_.dense && AreNames(unit, false, last_.sparse) &&
         AreNames(unit, true, last_.weighted);
}

std::optional<uint64_t> UnitCheck::FeaturesOf(const TensorBatch& unit) {
  CheckSpansOfUnit(unit);
  if (unit.rows == 0) return std::nullopt;
  if (!AreLast(unit)) {
    last_ = {!unit.labels.empty(), unit.dense_names, NamesOf(unit, false), NamesOf(unit, true)};
    hash_of_last_ = HashOfFeatures(last_.is_labelled, last_.dense, last_.sparse, last_.weighted);
  }
  return hash_of_last_;
}

}  // namespace headrace::reader::service
