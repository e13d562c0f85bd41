// The byte waterfall, from what is stored to what is sent, and what deduplication found alike.
#include <fmt/format.h>

#include "analysis/run/byte_flow.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {
namespace {

using analysis::ByteBorder;
using analysis::RunView;

std::optional<Section> BytesSection(const RunView& run, const analysis::Statements& statements) {
  const std::vector<ByteBorder> borders = analysis::ByteFlow(run, statements.doubts);
  if (borders.empty()) return std::nullopt;
  Section section{"byte_waterfall",
                  "Bytes at each stage boundary (counted by the instrumentation)",
                  {},
                  {},
                  {}};
  Table table{"bytes",
              "",
              {{"border", "boundary"},
               {"bytes_per_row", "a row"},
               {"ratio", "ratio"},
               {"against", "to"},
               {"bytes_per_second", "rate"},
               {"told_by", "source"},
               {"bytes", "bytes"}},
              {}};
  for (const ByteBorder& border : borders) {
    const ByteBorder* against = analysis::FindBorder(borders, border.against);
    table.rows.push_back({border.name, border.per_row, border.ratio,
                          against != nullptr ? against->name : std::string(), border.per_second,
                          border.told_by, border.bytes});
  }
  section.tables.push_back(std::move(table));
  return section;
}

std::optional<Section> Duplicates(const RunView& run, const analysis::Statements& statements) {
  if (run.operators.empty()) return std::nullopt;
  Section section{"duplication_summary", "", {}, {}, {}};
  const std::vector<analysis::Duplication> groups = analysis::DuplicationOf(run, statements.doubts);
  if (groups.empty()) {
    section.facts.push_back(
        {"unavailable",
         "this run deduplicates nothing, so nothing compared its rows; 'headrace layout TABLE "
         "--pipeline FILE --dedup' says how often they repeat"});
    return section;
  }
  section.title = "Duplication (bytes of lists before / after, by group of features)";
  Table table{"duplication",
              "",
              {{"group", "group"},
               {"factor_count", "factor"},
               {"bytes_in", "lists"},
               {"bytes_out", "unique lists"}},
              {}};
  table.text_rows = 8;
  double in = 0, out = 0;
  for (const analysis::Duplication& group : groups) {
    table.rows.push_back({group.group, group.factor, group.bytes_in, group.bytes_out});
    if (!group.factor.available()) continue;
    in += group.bytes_in.value();
    out += group.bytes_out.value();
  }
  const Quantity all = out > 0 ? Quantity::Of(in / out, Unit::kCount, Source::kAccount)
                               : Quantity::Unavailable("no group had bytes", Unit::kCount);
  section.facts.push_back({"factor_count", all});
  if (all.available()) {
    section.sentences.push_back(
        {"all", fmt::format("{:.3g} bytes of lists for each byte kept", all.value())});
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("bytes", 8, BytesSection);
HR_SECTION("duplication", 16, Duplicates);

}  // namespace
}  // namespace headrace::dashboards
