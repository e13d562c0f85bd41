// Takes every batch apart into a map per row and together again: what readers paid that handed rows
// on as maps. The batch stays as it is.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "reader/batch/row_map_batch.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

class RowMapOperator final : public Operator {
 public:
  RowMapOperator(const OperatorPlan&, const OperatorContext& context) {
    const Schema& schema = context.table->files[0]->schema();
    for (const dwrf::FeatureRequest& feature : context.spec->projection.features) {
      if (feature.key.is_text)
        throw Error(ExitCode::kUsage,
                    fmt::format("the keys of map '{}' are texts; rowmap takes integers",
                                Printable(feature.column)),
                    context.spec->path);
      if (maps_.empty() || maps_.back().name != feature.column) {
        const SchemaNode& map = schema.node(*schema.FindColumn(feature.column));
        const TypeKind value = schema.node(map.children[1]).kind;
        maps_.push_back({feature.column,
                         value == TypeKind::kList  ? FeatureKind::kSparse
                         : value == TypeKind::kMap ? FeatureKind::kWeightedSparse
                                                   : FeatureKind::kDense,
                         {}});
      }
      maps_.back().features.push_back({dwrf::FeatureName(feature), feature.key.integer});
    }
  }
  void Process(Element&& element, const Emit& emit) override {
    FlatMapBatch batch = Take<FlatMapBatch>(&element);
    RowMapBatch rows;
    rows.rows = batch.rows;
    for (const Map& map : maps_)
      rows.maps.push_back(ToRowMaps(batch, map.name, map.kind, map.features));
    FlatMapBatch out;
    out.rows = batch.rows;
    out.split_id = batch.split_id;
    out.first_row = batch.first_row;
    out.row_ids = std::move(batch.row_ids);
    out.spans = std::move(batch.spans);
    out.scalars = std::move(batch.scalars);
    for (size_t i = 0; i < maps_.size(); ++i) ToColumns(rows.maps[i], maps_[i].features, &out);
    element.bytes = out.MemoryBytes();
    element.payload = std::move(out);
    emit(std::move(element));
  }

 private:
  struct Map {
    std::string name;
    FeatureKind kind;
    std::vector<RowMapFeature> features;
  };
  std::vector<Map> maps_;  // runs of features of one map
};

HR_OPERATOR("rowmap", RowMapOperator,
            {.order = 60,
             .takes = ElementForm::kRows,
             .makes = ElementForm::kRows,
             .presence = "optional"});

}  // namespace
}  // namespace headrace::reader
