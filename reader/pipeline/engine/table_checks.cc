#include "reader/pipeline/engine/table_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/queue.h"

namespace headrace::reader {
namespace {

// The label, and what rows are chosen by, mean nothing where they are null for want of a key.
bool MustBeRead(const PipelineSpec& spec, const std::string& column) {
  return column == spec.label ||
         std::any_of(spec.filters.begin(), spec.filters.end(), [&](const RowFilter& filter) {
           return filter.name == column ||
                  (!filter.is_column && filter.name.starts_with(column + ":"));
         });
}

}  // namespace

std::vector<AvailableColumn> ProjectedColumns(const Schema& schema,
                                              const dwrf::Projection& projection) {
  std::vector<AvailableColumn> columns;
  for (const dwrf::FeatureRequest& request : projection.features) {
    const SchemaNode& map = schema.node(*schema.FindColumn(request.column));
    const TypeKind value = schema.node(map.children[1]).kind;
    const ColumnKind kind = value == TypeKind::kList  ? ColumnKind::kSparse
                            : value == TypeKind::kMap ? ColumnKind::kWeightedSparse
                                                      : ColumnKind::kDense;
    columns.push_back({dwrf::FeatureName(request), kind});
  }
  for (const std::string& name : projection.columns) {
    const TypeKind kind = schema.node(*schema.FindColumn(name)).kind;
    columns.push_back({name, kind == TypeKind::kFloat || kind == TypeKind::kDouble
                                 ? ColumnKind::kFloat
                                 : ColumnKind::kInteger});
  }
  return columns;
}

TransformPlan PlanTransforms(const PipelineSpec& spec) {
  std::vector<TransformSpec> transforms = spec.transforms;
  for (TransformSpec& transform : transforms) transform.file = spec.path;
  return TransformPlan(std::move(transforms), spec.seed, spec.outputs);
}

std::vector<AvailableColumn> FinalColumns(const Schema& schema, const PipelineSpec& spec) {
  std::vector<AvailableColumn> columns = ProjectedColumns(schema, spec.projection);
  if (spec.transforms.empty()) return columns;
  return PlanTransforms(spec).ValidateAgainst(std::move(columns));
}

LockedColumns CheckEncryption(const Table& table, const PipelineSpec& spec) {
  LockedColumns locked;
  const bool decrypts = HasOperator(spec, "decrypt");
  const std::vector<std::string> names = dwrf::TopLevelColumns(spec.projection);
  for (const auto& file : table.files) {
    for (const std::string& name : names) {
      const uint32_t node = *file->schema().FindColumn(name);
      try {
        file->keys().CheckReadable(file->schema(), node, file->source().name());
      } catch (const Error& error) {
        if (!spec.projection.locked_as_null) throw;
        if (MustBeRead(spec, name))
          throw Error(error.code(), error.fact(), error.where(),
                      "source.on_locked = \"null\" is not for the label nor for what [[filter]] "
                      "looks at: give its key, or leave it out");
        if (locked.names.empty()) locked.why = fmt::format("{}: {}", error.where(), error.fact());
        if (std::find(locked.names.begin(), locked.names.end(), name) == locked.names.end())
          locked.names.push_back(name);
        continue;
      }
      if (file->keys().GroupOf(node) == 0 || decrypts) continue;
      throw Error(
          ExitCode::kUsage,
          fmt::format("column '{}' of the table is encrypted, and no stage has the operator "
                      "decrypt",
                      Printable(name)),
          spec.path, "put decrypt between fetch and decompress");
    }
  }
  return locked;
}

void CheckFilters(const Schema& schema, const PipelineSpec& spec) {
  const std::vector<AvailableColumn> columns = ProjectedColumns(schema, spec.projection);
  for (const RowFilter& filter : spec.filters) {
    for (const AvailableColumn& column : columns) {
      if (filter.is_column || column.name != filter.name || column.kind == ColumnKind::kDense)
        continue;
      throw Error(ExitCode::kUsage,
                  fmt::format("filter: feature '{}' is {} and must be dense",
                              Printable(filter.name), ColumnKindName(column.kind)),
                  filter.where, "filters are on dense features and plain columns");
    }
  }
}

void CheckSlices(const Table& table, const PipelineSpec& spec) {
  constexpr uint64_t kMostSlices = uint64_t{1} << 18;
  for (const Split& split : table.splits) {
    if (dwrf::NumSlices(split.rows, SliceRows(spec)) <= kMostSlices) continue;
    throw Error(
        ExitCode::kUsage,
        fmt::format("batches of {} rows would cut a stripe of {} rows into more than {}",
                    SliceRows(spec), split.rows, kMostSlices),
        fmt::format("{}, stripe {}", table.files[split.file_index]->source().name(), split.stripe),
        "set pipeline.layout to flatmap, or larger batches");
  }
  for (const StageSpec& stage : spec.stages) CheckPlaces(table, spec, stage, stage.parallelism);
}

void CheckPlaces(const Table& table, const PipelineSpec& spec, const StageSpec& stage,
                 uint32_t parallelism) {
  if (!spec.file_order || SliceRows(spec) == 0) return;
  const bool has_extract = std::any_of(stage.operators.begin(), stage.operators.end(),
                                       [](const OperatorSpec& op) { return op.kind == "extract"; });
  if (!has_extract) return;
  // In file order every slice of a split that a thread holds is a place in the queue behind it,
  // which has no more than kMostAhead of them.
  uint64_t most = 0;
  for (const Split& split : table.splits)
    most = std::max(most, dwrf::NumSlices(split.rows, SliceRows(spec)));
  const uint64_t room = Queue<Element>::kMostAhead - kMaxQueue;
  if (most * parallelism <= room) return;
  throw Error(ExitCode::kUsage,
              fmt::format("with order = \"file\" {} threads would hold {} batches each, more than "
                          "{} in all",
                          parallelism, most, room),
              "stage " + stage.name,
              fmt::format("at most {} threads, or larger batches", room / most));
}

}  // namespace headrace::reader
