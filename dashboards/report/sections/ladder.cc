// The resource ladder: the rate that each resource alone would allow, the binding one marked.
#include "analysis/model/resource_ladder.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {
namespace {

std::optional<Section> Ladder(const analysis::RunView&, const analysis::Statements& statements) {
  if (!statements.model || !statements.bottleneck) return std::nullopt;
  Section section{"ladder",
                  "Resource ladder (the rate that each alone would allow, 90 % interval)",
                  {},
                  {},
                  {}};
  Table table{"resource_ladder",
              "",
              {{"resource", "resource"},
               {"attainable_batches_per_second", "allows"},
               {"used_ratio", "used"},
               {"binding", "binds"},
               {"kind", "kind"},
               {"note", "source"}},
              {}};
  for (const analysis::Rung& rung :
       analysis::ResourceLadder(*statements.model, *statements.bottleneck)) {
    table.rows.push_back({rung.name, rung.attainable, rung.used_ratio,
                          std::string(rung.binding ? "<- binds" : ""), rung.kind, rung.note});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("ladder", 7, Ladder);

}  // namespace
}  // namespace headrace::dashboards
