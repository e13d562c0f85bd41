// What a row costs in bytes.
#include <fmt/format.h>

#include "base/units.h"
#include "dashboards/pages/page_run.h"

namespace headrace::dashboards {
namespace {

Card BytesCard(const LoadedRun& loaded) {
  Card card;
  card.question = "What does a row cost in bytes?";
  card.sql =
      "SELECT operator, rows_count, bytes_in_bytes, bytes_out_bytes FROM operator_summary WHERE "
      "run_id = {run} ORDER BY stage_index, position_index";
  const Table* table = FindTable(loaded.report, "bytes");
  if (table == nullptr || table->rows.empty()) {
    card.empty = "No operator of this run counts bytes.";
    return card;
  }
  card.read = {"A bar is the mean size of a row where it leaves that part of the pipeline."};
  if (const auto over = KnownFact(loaded.report, "reads", "over_read_ratio");
      over && *over > 0.01) {
    card.answer = fmt::format("{} of what is read is not wanted.", FormatPercent(*over));
    return card;
  }
  const auto first = KnownCell(*table, table->rows.front(), "bytes_per_row");
  const auto last = KnownCell(*table, table->rows.back(), "bytes_per_row");
  if (first && last) {
    card.answer = fmt::format("{} a row at '{}', {} at '{}'.", FormatBytes(*first),
                              CellWord(*table, table->rows.front(), "border"), FormatBytes(*last),
                              CellWord(*table, table->rows.back(), "border"));
  } else {
    card.answer = "Not all of its parts count bytes.";
  }
  return card;
}

HR_CARD("bytes", BytesCard);

}  // namespace
}  // namespace headrace::dashboards
