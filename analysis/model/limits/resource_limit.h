// ResourceLimit: rows of the model's resources of one kind: locks, devices, links, memory
// bandwidth.
#pragma once
#include <string>
#include <vector>

#include "analysis/model/limits/limit_kind.h"

namespace headrace::analysis {

class ResourceLimit : public LimitKind {
 public:
  // `resource_kind`: ResourceModel::kind of its rows.
  ResourceLimit(std::string_view name, int place, std::string_view resource_kind)
      : LimitKind(std::string(name), place), resource_kind_(resource_kind) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override;
  std::optional<size_t> ResourceOf(const Limit& limit) const override { return limit.index; }
  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& limit) const override;
  void AddLoads(const PipelineModel& model, const Demands& demands,
                std::vector<SharedLoad>* loads) const override;
  Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& limit,
                 Step step) const override;
  bool Explains(const PipelineModel& model, const Demands& demands, const Limit& limit,
                const Limit& other) const override;
  bool ShowsAt(const PipelineModel& model, const Limit& limit, size_t stage) const override;

 private:
  std::string resource_kind_;
};

}  // namespace headrace::analysis
