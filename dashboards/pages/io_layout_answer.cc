// The table's file in the order of its bytes: what a pass of the run reads, reads over and skips.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/run/settings.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/pages/card_json.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/report/wording.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostBars = 400, kMostBarsInFile = 120;  // stripes; more are drawn together
constexpr int64_t kMostReadsInFile = 1000;

struct PlannedBytes {
  bool there = false;  // a row of layout_summary
  std::string reason;
  int64_t gap = 0, files = 0, file_bytes = 0, stripes = 0, known = 0, features = 0, columns = 0;
  int64_t stored = 0, wanted = 0, over = 0, reads = 0;
  bool whole = false;
  int64_t read() const { return wanted + over; }
};

PlannedBytes ReadPlanned(const PageRun& page) {
  PlannedBytes plan;
  const collectors::SqlResult found = page.store().Query(
      "SELECT reason, gap_bytes, whole_stripes, files_count, file_bytes, stripes_count, "
      "known_stripes_count, features_count, columns_count, stored_bytes, wanted_bytes, "
      "over_read_bytes, reads_count FROM layout_summary WHERE run_id = ?1",
      {page.id()});
  if (found.rows.empty()) return plan;
  const auto& row = found.rows[0];
  plan.there = true;
  plan.reason = Printable(TextOf(row[0]), 400);
  plan.gap = IntegerOf(row[1]);
  plan.whole = IntegerOf(row[2]) != 0;
  plan.files = IntegerOf(row[3]);
  plan.file_bytes = IntegerOf(row[4]);
  plan.stripes = IntegerOf(row[5]);
  plan.known = IntegerOf(row[6]);
  plan.features = IntegerOf(row[7]);
  plan.columns = IntegerOf(row[8]);
  plan.stored = IntegerOf(row[9]);
  plan.wanted = IntegerOf(row[10]);
  plan.over = IntegerOf(row[11]);
  plan.reads = IntegerOf(row[12]);
  return plan;
}

// What the instrumentation of the fetch operator counted over the run.
struct CountedBytes {
  int64_t stripes = 0;
  double read = 0, wanted = 0;
};

std::optional<CountedBytes> ReadCounted(const PageRun& page) {
  const collectors::SqlResult found = page.store().Query(
      "SELECT SUM(completions_count), SUM(bytes_in_bytes), SUM(bytes_out_bytes) FROM "
      "operator_summary WHERE run_id = ?1 AND kind = 'fetch'",
      {page.id()});
  if (found.rows.empty() || IntegerOf(found.rows[0][0]) <= 0) return std::nullopt;
  return CountedBytes{IntegerOf(found.rows[0][0]), RealOf(found.rows[0][1]),
                      RealOf(found.rows[0][2])};
}

double PartOf(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string PlanAnswer(const PlannedBytes& plan) {
  const double per_stripe = PartOf(plan.reads, plan.known);
  std::string text = fmt::format(
      "A pass reads {} of {} in {} a stripe", FormatPercent(PartOf(plan.read(), plan.stored)),
      plan.known < plan.stripes
          ? fmt::format("the bytes of the first {} of {} stripes", plan.known, plan.stripes)
          : std::string("the stripes' bytes"),
      per_stripe == 1 ? std::string("one read") : fmt::format("{:.3g} reads", per_stripe));
  if (plan.over == 0) return text + ", and wants all of it.";
  const std::string over = FormatPercent(PartOf(plan.over, plan.read()));
  if (plan.whole) return text + fmt::format(", for their checksums; {} of it is not wanted.", over);
  return text + fmt::format("; {} of what it reads is not wanted.", over);
}

// How what was counted stands to what the layout says.
std::string CountedWords(const PlannedBytes& plan, const CountedBytes& counted) {
  constexpr double kAlike = 0.02;
  const double expected = PartOf(plan.read(), plan.known) * static_cast<double>(counted.stripes);
  std::string text =
      fmt::format("The run fetched {} stripes and counted {} read, {} of it wanted.",
                  counted.stripes, FormatBytes(counted.read), FormatBytes(counted.wanted));
  if (expected <= 0 || std::abs(counted.read - expected) <= kAlike * expected) return text;
  return text + fmt::format(
                    " By this layout it is {}. Only the count has reads of a part of a stripe, "
                    "bytes of alignment, and what a cache answered.",
                    FormatBytes(expected));
}

Card PlanCard(const LoadedRun& loaded, const PlannedBytes& plan,
              const std::optional<CountedBytes>& counted) {
  Card card;
  card.question = "What of the file is read?";
  card.sql =
      "SELECT stripe_index, offset_bytes, stored_bytes, area, column_name, feature_key, "
      "wanted_bytes, over_read_bytes, skipped_bytes FROM layout_stream WHERE run_id = {run} ORDER "
      "BY stripe_index, offset_bytes";
  if (!plan.there || !plan.reason.empty()) {
    card.empty = plan.there ? plan.reason
                            : "The layout of a table is kept by 'headrace run', of this version or "
                              "later. This run has none.";
    if (!loaded.run.run.pipeline_path.empty()) {
      card.command =
          fmt::format("{} run {}{}", loaded.run.program, analysis::PipelineWord(loaded.run.run),
                      loaded.run.database_option);
    }
    return card;
  }
  card.answer = PlanAnswer(plan);
  card.read = {
      "The bytes of a stripe from its first to its last, line after line. Blue is wanted. Grey is "
      "read because it lies in a hole between wanted bytes. Pale is skipped. A line below the "
      "bytes is one read.",
      fmt::format("Reads are joined over holes up to {}. 'headrace layout TABLE --pipeline FILE' "
                  "says what other limits would read.",
                  FormatBytes(static_cast<double>(plan.gap)))};
  if (counted) card.read.push_back(CountedWords(plan, *counted));
  if (plan.known < plan.stripes) {
    card.read.push_back(
        fmt::format("Shown are the first {} of {} stripes.", plan.known, plan.stripes));
  }
  return card;
}

Card ColumnsCard(const PageRun& page, int64_t stripe) {
  Card card;
  card.question = "Which columns does it read over?";
  card.sql =
      "SELECT column_name, SUM(stored_bytes) AS stored_bytes, SUM(wanted_bytes) AS wanted_bytes, "
      "SUM(over_read_bytes) AS over_read_bytes FROM layout_stream WHERE run_id = {run} AND "
      "stripe_index = " +
      std::to_string(stripe) + " GROUP BY column_name ORDER BY stored_bytes DESC";
  card.read = {
      "A bar is what a column takes of the stripe. Features that are wanted cost least where they "
      "lie side by side: 'headrace layout TABLE --pipeline FILE --features' prints their order."};
  const collectors::SqlResult rows = page.store().Query(
      "SELECT CASE WHEN area = 'index' THEN 'the row index' ELSE column_name END, "
      "SUM(over_read_bytes) FROM layout_stream WHERE run_id = ?1 AND stripe_index = ?2 GROUP BY 1 "
      "ORDER BY 2 DESC",
      {page.id(), stripe});
  int64_t all = 0;
  for (const auto& row : rows.rows) all += IntegerOf(row[1]);
  if (all == 0) {
    card.answer = "None: all that it reads is wanted.";
    return card;
  }
  const std::string name = Printable(TextOf(rows.rows[0][0]), 60);
  card.answer = fmt::format("{} of what it reads over lies in {}.",
                            FormatPercent(PartOf(IntegerOf(rows.rows[0][1]), all)),
                            name.empty() ? "several columns" : name);
  return card;
}

// All stripes, neighbours together where there are more than bars.
Json BarsJson(const PageRun& page, int64_t known, int64_t most) {
  const int64_t together = std::max<int64_t>(1, (known + most - 1) / most);
  const collectors::SqlResult rows = page.store().Query(
      "SELECT MIN(stripe_index), COUNT(*), SUM(stored_bytes), SUM(rows_count), SUM(wanted_bytes), "
      "SUM(over_read_bytes), SUM(reads_count), MIN(file), MIN(offset_bytes) FROM layout_stripe "
      "WHERE run_id = ?1 GROUP BY stripe_index / ?2 ORDER BY 1",
      {page.id(), together});
  Json first = Json::array(), count = Json::array(), stored = Json::array(),
       of_rows = Json::array(), wanted = Json::array(), over = Json::array(), reads = Json::array(),
       file = Json::array();
  for (const auto& row : rows.rows) {
    first.push_back(IntegerOf(row[0]));
    count.push_back(IntegerOf(row[1]));
    stored.push_back(IntegerOf(row[2]));
    of_rows.push_back(IntegerOf(row[3]));
    wanted.push_back(IntegerOf(row[4]));
    over.push_back(IntegerOf(row[5]));
    reads.push_back(IntegerOf(row[6]));
    file.push_back(Printable(TextOf(row[7]), 200));
  }
  return {{"first", std::move(first)},   {"count", std::move(count)},
          {"stored", std::move(stored)}, {"rows", std::move(of_rows)},
          {"wanted", std::move(wanted)}, {"over", std::move(over)},
          {"reads", std::move(reads)},   {"file", std::move(file)}};
}

struct LayoutPiece {
  int64_t offset = 0, stored = 0, streams = 0, wanted = 0, over = 0;
  std::string area, column, key;

  // Whether both lie in one column and become the same.
  bool Like(const LayoutPiece& other) const {
    const auto fate = [](const LayoutPiece& piece) {
      return std::pair(piece.wanted == piece.stored, piece.over == piece.stored);
    };
    return area == other.area && column == other.column && fate(*this) == fate(other);
  }
};

// `together`: neighbours of one column that become the same are one piece without a key.
std::vector<LayoutPiece> ReadPieces(const PageRun& page, int64_t stripe, bool together) {
  std::vector<LayoutPiece> pieces;
  for (const auto& row : page.store()
                             .Query("SELECT offset_bytes, stored_bytes, streams_count, "
                                    "wanted_bytes, over_read_bytes, area, column_name, feature_key "
                                    "FROM layout_stream WHERE run_id = ?1 AND stripe_index = ?2 "
                                    "ORDER BY offset_bytes",
                                    {page.id(), stripe})
                             .rows) {
    LayoutPiece piece{IntegerOf(row[0]),
                      IntegerOf(row[1]),
                      IntegerOf(row[2]),
                      IntegerOf(row[3]),
                      IntegerOf(row[4]),
                      Printable(TextOf(row[5]), 20),
                      Printable(TextOf(row[6]), 100),
                      Printable(TextOf(row[7]), 100)};
    if (!together || pieces.empty() || !pieces.back().Like(piece)) {
      pieces.push_back(std::move(piece));
      continue;
    }
    LayoutPiece& last = pieces.back();
    last.stored += piece.stored;
    last.streams += piece.streams;
    last.wanted += piece.wanted;
    last.over += piece.over;
    if (last.key != piece.key) last.key.clear();
  }
  return pieces;
}

Json PiecesJson(const std::vector<LayoutPiece>& pieces) {
  std::map<std::string, size_t> index;
  Json names = Json::array();
  const auto name_of = [&](const std::string& name) {
    const auto [at, fresh] = index.try_emplace(name, index.size());
    if (fresh) names.push_back(name);
    return at->second;
  };
  Json offset = Json::array(), stored = Json::array(), area = Json::array(), column = Json::array(),
       key = Json::array(), streams = Json::array(), wanted = Json::array(), over = Json::array();
  for (const LayoutPiece& piece : pieces) {
    offset.push_back(piece.offset);
    stored.push_back(piece.stored);
    area.push_back(name_of(piece.area));
    column.push_back(name_of(piece.column));
    key.push_back(name_of(piece.key));
    streams.push_back(piece.streams);
    wanted.push_back(piece.wanted);
    over.push_back(piece.over);
  }
  return {
      {"names", std::move(names)},     {"offset", std::move(offset)}, {"stored", std::move(stored)},
      {"area", std::move(area)},       {"column", std::move(column)}, {"key", std::move(key)},
      {"streams", std::move(streams)}, {"wanted", std::move(wanted)}, {"over", std::move(over)}};
}

Json ReadsJson(const PageRun& page, int64_t stripe, int64_t most) {
  Json offset = Json::array(), bytes = Json::array(), wanted = Json::array();
  for (const auto& row :
       page.store()
           .Query("SELECT offset_bytes, read_bytes, wanted_bytes FROM layout_read WHERE run_id = "
                  "?1 AND stripe_index = ?2 ORDER BY offset_bytes LIMIT ?3",
                  {page.id(), stripe, most})
           .rows) {
    offset.push_back(IntegerOf(row[0]));
    bytes.push_back(IntegerOf(row[1]));
    wanted.push_back(IntegerOf(row[2]));
  }
  return {
      {"offset", std::move(offset)}, {"bytes", std::move(bytes)}, {"wanted", std::move(wanted)}};
}

std::string IoLayoutAnswer(const PageRun& page, const PageQuery& query) {
  const PlannedBytes plan = ReadPlanned(page);
  const std::optional<CountedBytes> counted = ReadCounted(page);
  const bool in_file = query.values.contains("file");
  Json root = {{"schema", "headrace.io_layout/1"},
               {"card", CardJson(PlanCard(page.loaded(), plan, counted), page.id())}};
  if (!plan.there || !plan.reason.empty()) return root.dump();
  const double asked = std::min(query.Number("stripe", 0), 1e15);
  Json detailed = Json::array();
  int64_t stripe = 0;
  for (const auto& row : page.store()
                             .Query("SELECT DISTINCT stripe_index FROM layout_stream WHERE run_id "
                                    "= ?1 ORDER BY stripe_index LIMIT 200",
                                    {page.id()})
                             .rows) {
    const int64_t index = IntegerOf(row[0]);
    if (in_file && index > 0) break;
    detailed.push_back(index);
    if (static_cast<double>(index) <= asked) stripe = index;
  }
  root["columns_card"] = CardJson(ColumnsCard(page, stripe), page.id());
  root["plan"] = {{"gap_bytes", plan.gap},         {"files_count", plan.files},
                  {"file_bytes", plan.file_bytes}, {"stripes_count", plan.stripes},
                  {"known_count", plan.known},     {"features_count", plan.features},
                  {"columns_count", plan.columns}, {"stored_bytes", plan.stored},
                  {"wanted_bytes", plan.wanted},   {"over_read_bytes", plan.over},
                  {"reads_count", plan.reads}};
  root["stripes"] = BarsJson(page, plan.known, in_file ? kMostBarsInFile : kMostBars);
  root["detailed"] = std::move(detailed);
  root["stripe"] = stripe;
  root["streams"] = PiecesJson(ReadPieces(page, stripe, in_file));
  root["reads"] = ReadsJson(page, stripe, in_file ? kMostReadsInFile : INT32_MAX);
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("io_layout", {.make = IoLayoutAnswer, .in_file = true, .of_report = true});

}  // namespace
}  // namespace headrace::dashboards
