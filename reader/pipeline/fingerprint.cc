#include "reader/pipeline/fingerprint.h"

#include <xxhash.h>

#include <type_traits>
#include <variant>

#include "reader/dwrf/crypto/file_keys.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

void AddParam(const ParamValue& value, Description* text) {
  text->Add(value.index());
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (!std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>) {
          text->Add(held.size());
          for (size_t i = 0; i < held.size(); ++i) {
            text->Add(static_cast<const typename T::value_type&>(held[i]));
          }
        } else {
          text->Add(held);
        }
      },
      value);
}

uint64_t HashTable(const Table& table) {
  Description text;
  for (const auto& file : table.files) {
    const std::string footer = file->tail().footer.SerializeAsString();
    text.Add(file->source().size());
    text.Add(XXH3_64bits(footer.data(), footer.size()));
  }
  return text.Hash();
}

// With a key that was not there before, columns that were null hold something else. Where nothing
// is locked the rows are those of a run that would refuse locked columns.
uint64_t HashLocked(const Table& table, const PipelineSpec& spec) {
  if (!spec.projection.locked_as_null) return 0;
  Description text;
  bool any = false;
  for (const auto& file : table.files) {
    for (const std::string& name : dwrf::TopLevelColumns(spec.projection)) {
      const uint32_t node = *file->schema().FindColumn(name);
      const bool locked = file->keys().FirstLocked(file->schema(), node).has_value();
      text.Add(locked);
      any = any || locked;
    }
  }
  return any ? text.Hash() : 0;
}

uint64_t HashProjection(const Table& table, const PipelineSpec& spec) {
  Description text;
  text.Add(spec.label);
  text.AddList(spec.projection.columns);
  text.Add(spec.projection.features.size());
  for (const dwrf::FeatureRequest& feature : spec.projection.features)
    text.Add(dwrf::FeatureName(feature));
  // Rows that a filter dropped are settled: they count as delivered.
  for (const RowFilter& filter : spec.filters) {
    text.Add(filter.name);
    text.Add(filter.is_column);
    text.Add(filter.min);
    text.Add(filter.max);
    text.Add(filter.in.size());
    for (const long double value : filter.in) text.Add(value);
    text.Add(filter.keep_absent);
  }
  if (const uint64_t locked = HashLocked(table, spec); locked != 0) text.Add(locked);
  for (const StageSpec& stage : spec.stages) {
    for (const OperatorSpec& op : stage.operators) {
      const OperatorEntry& entry = EntryOf(op);
      if (entry.describe != nullptr) entry.describe(op, &text);
    }
  }
  return text.Hash();
}

uint64_t HashTransforms(const PipelineSpec& spec) {
  Description text;
  text.Add(spec.transforms.size());
  for (const TransformSpec& transform : spec.transforms) {
    text.Add(transform.op);
    text.Add(transform.output);
    text.AddList(transform.inputs);
    text.Add(transform.params.size());
    for (const auto& [name, value] : transform.params) {
      text.Add(name);
      AddParam(value, &text);
    }
  }
  text.Add(spec.outputs.has_value());
  if (spec.outputs) text.AddList(*spec.outputs);
  return text.Hash();
}

}  // namespace

uint64_t Description::Hash() const { return XXH3_64bits(text_.data(), text_.size()); }

Fingerprint FingerprintOf(const Table& table, const PipelineSpec& spec) {
  return {HashTable(table), HashProjection(table, spec), HashTransforms(spec), spec.seed};
}

}  // namespace headrace::reader
