// [dedup]: which sparse features are deduplicated.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/dedup_plan.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {

void ParseDedup(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("dedup");
  table.CheckKeys("[dedup]", {"mode", "scope", "min_factor", "groups"});
  DedupOptions& dedup = spec->dedup;
  const auto choice = [&](const char* key, const std::vector<std::string>& names) {
    const std::string name = table.Text(key, names[0]);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      table[key].Fail(fmt::format("unknown {} '{}'{}; it is one of {}", key, Printable(name, 40),
                                  DidYouMean(name, names), fmt::join(names, ", ")));
    return found - names.begin();
  };
  dedup.mode = static_cast<DedupMode>(choice("mode", {"off", "auto", "on"}));
  dedup.scope = static_cast<DedupScope>(choice("scope", {"neighbours", "batch"}));
  dedup.min_factor = table.Number("min_factor", dedup.min_factor);
  if (!(dedup.min_factor >= 1)) table["min_factor"].Fail("min_factor is at least 1");
  if (const SpecValue groups = table["groups"]) {
    const char* form = "groups is a list of lists of features: [[\"sparse:1\", \"sparse:2\"]]";
    if (!groups.is_list()) groups.Fail(form);
    for (const SpecValue& group : groups.Items()) {
      if (group.Items().empty()) group.Fail(form);
      std::vector<std::string>& names = dedup.groups.emplace_back();
      for (const SpecValue& name : group.Items()) {
        if (!name.AsText()) name.Fail(form);
        names.push_back(*name.AsText());
      }
    }
  }
  if (dedup.mode == DedupMode::kOff) return;
  if (spec->synthetic) table.Fail("a synthetic source has no features to deduplicate");
  if (HasOperator(*spec, "rowmap"))
    table.Fail(
        "rowmap takes rows one by one, which deduplicated features are not: leave out "
        "one of the two");
}

}  // namespace headrace::reader
