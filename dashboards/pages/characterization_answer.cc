// The characterization sheet of one run: the figures that studies of data ingestion print, beside
// the published ones. `headrace characterize` makes the runs that the others need.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/run/settings.h"
#include "analysis/study/characterization.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/json_number.h"
#include "dashboards/pages/card_json.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using analysis::FigurePart;
using analysis::Sheet;
using analysis::SheetFigure;
using Json = nlohmann::ordered_json;

constexpr const char* kOfStudy = "'headrace characterize' counts it";

// What the layout that the run kept says of the table.
struct KeptTable {
  bool there = false;  // files and stripes are counted
  bool whole = false;  // all stripes are known
  std::string reason;  // why not
  std::string sample;  // "the first 17 of 24000 stripes"
  analysis::TableFacts facts;
  std::optional<double> features_used, bytes_used;
  std::string used_reason;  // why these are not known
};

void ReadReadSizes(const PageRun& page, KeptTable* table) {
  std::vector<double> sizes;
  for (const auto& row : page.store()
                             .Query("SELECT read_bytes FROM layout_read WHERE run_id = ?1 ORDER BY "
                                    "stripe_index, offset_bytes LIMIT 20000",
                                    {page.id()})
                             .rows) {
    sizes.push_back(RealOf(row[0]));
  }
  table->facts.reads = analysis::SizesOf(std::move(sizes));
}

// Of the keys of flattened maps. They were counted of the stripes: what the store has of streams
// may have those of many keys in one row.
void ReadUsed(const PageRun& page, KeptTable* table) {
  const collectors::SqlResult found = page.store().Query(
      "SELECT stored_features_count, used_features_count, stored_features_bytes, "
      "used_features_bytes FROM layout_summary WHERE run_id = ?1 AND stored_features_count IS NOT "
      "NULL",
      {page.id()});
  if (found.rows.empty()) {
    table->used_reason = "an earlier version recorded this run: it did not count features";
    return;
  }
  const auto& row = found.rows[0];
  if (IntegerOf(row[0]) <= 0 || IntegerOf(row[2]) <= 0) {
    table->used_reason = "the table has no flattened map";
    return;
  }
  table->features_used = RealOf(row[1]) / RealOf(row[0]);
  table->bytes_used = RealOf(row[3]) / RealOf(row[2]);
}

// Which stripes the figures of reads and features are of.
std::string SampleWords(const PageRun& page, int64_t stripes) {
  const collectors::SqlResult found = page.store().Query(
      "SELECT COUNT(DISTINCT stripe_index) FROM layout_stream WHERE run_id = ?1", {page.id()});
  const int64_t known = found.rows.empty() ? 0 : IntegerOf(found.rows[0][0]);
  if (known >= stripes) return "";
  return known == 1 ? fmt::format("the first of {} stripes", stripes)
                    : fmt::format("the first {} of {} stripes", known, stripes);
}

KeptTable ReadKept(const PageRun& page) {
  KeptTable table;
  table.reason = table.used_reason = "the layout of the table was not kept with this run";
  const collectors::SqlResult found = page.store().Query(
      "SELECT reason, files_count, file_bytes, stripes_count, known_stripes_count, (SELECT "
      "SUM(rows_count) FROM layout_stripe AS s WHERE s.run_id = l.run_id) FROM layout_summary AS l "
      "WHERE run_id = ?1",
      {page.id()});
  if (found.rows.empty()) return table;
  const auto& row = found.rows[0];
  if (!TextOf(row[0]).empty()) {
    table.reason = table.used_reason = Printable(TextOf(row[0]), 300);
    return table;
  }
  table.there = true;
  ReadReadSizes(page, &table);
  ReadUsed(page, &table);
  table.sample = SampleWords(page, IntegerOf(row[3]));
  table.facts.files = static_cast<uint64_t>(std::max<int64_t>(0, IntegerOf(row[1])));
  table.facts.bytes = RealOf(row[2]);
  table.facts.stripes = static_cast<uint64_t>(std::max<int64_t>(0, IntegerOf(row[3])));
  table.whole = IntegerOf(row[3]) == IntegerOf(row[4]) && IntegerOf(row[3]) > 0;
  if (!table.whole) {
    table.reason = fmt::format("{} of {} stripes are known", IntegerOf(row[4]), IntegerOf(row[3]));
    return table;
  }
  table.facts.rows = static_cast<uint64_t>(std::max<int64_t>(0, IntegerOf(row[5])));
  return table;
}

// Figures of which the sheet has a number although a run does not tell it.
void TakeBack(const KeptTable& table, Sheet* sheet) {
  const std::set<std::string> of_files = {"all_partitions_bytes", "partition_bytes",
                                          "used_partitions_bytes", "partitions_count"};
  const std::set<std::string> of_stripes = {"rows_count", "stripe_rows_count"};
  const std::set<std::string> of_features = {"stored_dense_features", "stored_sparse_features",
                                             "used_dense_features", "used_sparse_features",
                                             "derived_features"};
  for (FigurePart& part : sheet->parts) {
    for (SheetFigure& figure : part.figures) {
      const auto unknown = [&](const std::string& why) {
        figure.here = Quantity::Unavailable(why, figure.here.unit());
        figure.difference.clear();
        figure.why.clear();
      };
      if (of_files.contains(figure.key) && !table.there) unknown(table.reason);
      if (of_stripes.contains(figure.key) && !table.whole) unknown(table.reason);
      if (of_features.contains(figure.key) || figure.key.starts_with("io_")) unknown(kOfStudy);
      const std::string of = table.sample.empty() ? "" : ", of " + table.sample;
      if (figure.key.starts_with("coalesced_")) {
        if (table.facts.reads.count == 0) {
          unknown(table.there ? "the projection reads nothing" : table.reason);
        } else {
          figure.told_by += of;
        }
      }
      const auto counted = [&](const std::optional<double>& value) {
        if (!value) return unknown(table.used_reason);
        figure.here = Quantity::Of(*value, Unit::kRatio, Source::kCounter);
        figure.told_by = "stripe directories, keys of flattened maps" + of;
      };
      if (figure.key == "features_used_ratio") counted(table.features_used);
      if (figure.key == "bytes_used_ratio") counted(table.bytes_used);
    }
  }
}

Sheet SheetOf(const PageRun& page, const KeptTable& kept) {
  const analysis::RunView& run = page.loaded().run;
  analysis::SheetInputs inputs;
  inputs.name = run.run.name;
  inputs.table = kept.facts;
  inputs.worker = &run;
  inputs.no_fed = "it needs a run whose trainer has the published demand: headrace characterize";
  inputs.no_ceiling = "it needs a run of the trainer alone: headrace run FILE --ceiling";
  inputs.table.sample_reason = kOfStudy;
  inputs.table.hot_reason = "it needs a log of jobs: headrace characterize --coread";
  inputs.table.duplication_reason = "no sample of its rows was taken";
  inputs.table.duplication_now = run.run.Fact("sample_dedup_ratio");
  inputs.table.duplication_clustered = run.run.Fact("clustered_dedup_ratio");
  inputs.conditions.cores = run.run.cores_count.value_or(0);
  inputs.conditions.memory_bytes = analysis::BytesSettingOf(run.run, "pipeline.memory");
  if (inputs.conditions.memory_bytes == 0) inputs.conditions.memory_bytes.reset();
  const auto nic = analysis::BytesSettingOf(run.run, "source.throttle.bandwidth");
  if (nic && *nic > 0) inputs.conditions.nic_bytes_per_s = nic;
  inputs.prices.core_hour = run.core_hour_price;
  Sheet sheet = analysis::MakeSheet(inputs);
  TakeBack(kept, &sheet);
  return sheet;
}

// ---------------------------------------------------------------- words

const SheetFigure* KnownFigure(const Sheet& sheet, const std::string& key) {
  const SheetFigure* figure = sheet.Find(key);
  return figure != nullptr && figure->here.available() ? figure : nullptr;
}

// The sentence with the figures {0}, {1} of these keys in it; empty where one is not known.
struct Headline {
  const char* part;
  const char* question;
  const char* keys[2];
  const char* sentence;
};
constexpr Headline kHeadlines[] = {
    {"dataset",
     "How large is the table?",
     {"all_partitions_bytes", "partitions_count"},
     "The table has {0} in {1} files."},
    {"dataset",
     "How large is the table?",
     {"all_partitions_bytes", "rows_count"},
     "The table has {0} in {1} rows."},
    {"features",
     "Which features does it have?",
     {"stored_sparse_features", "used_sparse_features"},
     "It stores {0} sparse features and uses {1}."},
    {"selectivity",
     "How much of the features is used?",
     {"features_used_ratio", "bytes_used_ratio"},
     "{0} of the features are used, and {1} of their bytes."},
    {"reads",
     "How long are its reads?",
     {"coalesced_p50_bytes", "over_read_ratio"},
     "The median read has {0}; {1} of what is read is not wanted."},
    {"bytes",
     "How many bytes does a row have at each boundary?",
     {"storage_bytes_per_row", "tensor_bytes_per_row"},
     "A row is {0} as it is read and {1} as tensors."},
    {"worker",
     "What does one worker deliver?",
     {"worker_rows_per_s", "worker_cores_used"},
     "One worker on this host delivers {0} and uses {1}."},
    {"stall",
     "What if the trainer's host does the preprocessing?",
     {"stall_ratio", "stall_cpu_ratio"},
     "The trainer waits {0} of the time, with {1} of the CPU in use."},
    {"duplication",
     "How often do rows repeat?",
     {"duplication_now_ratio", "duplication_clustered_ratio"},
     "{0} bytes of lists stand for each that differs; clustered by session it would be {1}."},
    {"cost",
     "What do a million rows cost?",
     {"cpu_per_million_rows", "cpu_per_million_rows"},
     "A million rows take {0} of CPU time."}};

std::string Sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (!text.ends_with('.')) text += ".";
  return text;
}

std::string LargestClass(const FigurePart& part) {
  const SheetFigure* most = nullptr;
  for (const SheetFigure& figure : part.figures) {
    if (!figure.here.available()) continue;
    if (most == nullptr || figure.here.value() > most->here.value()) most = &figure;
  }
  return most == nullptr
             ? ""
             : fmt::format("{} of the transforms' CPU is for {}.", Format(most->here), most->name);
}

Card PartCard(const Sheet& sheet, const FigurePart& part, const analysis::RunView& run,
              const std::string& sample) {
  Card card;
  card.question = part.title;
  std::set<std::string> reasons;
  size_t known = 0;
  for (const SheetFigure& figure : part.figures) {
    if (figure.here.available()) {
      ++known;
    } else {
      reasons.insert(figure.here.reason());
    }
  }
  for (const Headline& headline : kHeadlines) {
    if (part.key != headline.part) continue;
    card.question = headline.question;
    const SheetFigure* first = KnownFigure(sheet, headline.keys[0]);
    const SheetFigure* second = KnownFigure(sheet, headline.keys[1]);
    if (first == nullptr || second == nullptr) continue;
    card.answer =
        fmt::format(fmt::runtime(headline.sentence), Format(first->here), Format(second->here));
  }
  if (part.key == "transforms") {
    card.question = "What are the transforms' cycles for?";
    card.answer = LargestClass(part);
  }
  if (known == 0) {
    for (const std::string& reason : reasons)
      card.empty += (card.empty.empty() ? "" : "; ") + Printable(reason, 200);
    card.empty = Sentence(card.empty);
    if (!run.run.pipeline_path.empty())
      card.command = fmt::format("{} characterize TABLE --pipeline {}", run.program,
                                 analysis::PipelineWord(run.run));
    return card;
  }
  if (card.answer.empty()) {
    card.answer =
        fmt::format("{} of {} figures are known of this run.", known, part.figures.size());
  }
  card.read = {
      "Published values are of the models RM1 to RM3 on other hosts, from studies that print them. "
      "In grey is how far this run is from them, and what of it other figures of the run explain."};
  if (!sample.empty() && (part.key == "selectivity" || part.key == "reads")) {
    card.read.push_back(fmt::format(
        "{} figures are of {}.", part.key == "reads" ? "Joined" : "Features' and bytes'", sample));
  }
  std::set<std::string> said;
  for (const SheetFigure& figure : part.figures) {
    if (!figure.scaled_by.empty() && said.insert(figure.scaled_by).second)
      card.read.push_back(fmt::format("Compared values are scaled: {}.", figure.scaled_by));
  }
  return card;
}

Card LimitCard(const Sheet& sheet) {
  Card card;
  card.question = "What limits it as a worker?";
  card.answer = sheet.limit.decided ? fmt::format("It is limited by {}.", sheet.limit.words)
                                    : std::string("What limits it as a worker is not decided.");
  if (!sheet.limit.evidence.empty()) card.read.push_back(Sentence(sheet.limit.evidence));
  for (const char* model : analysis::kPublishedModels) {
    if (const analysis::PublishedLimit* limit = analysis::FindPublishedLimit(model))
      card.read.push_back(fmt::format("Published of {}: {} ({}; {}).", model, limit->words,
                                      limit->source, analysis::SurenessName(limit->sureness)));
  }
  return card;
}

Card UseCard(const Sheet& sheet) {
  Card card;
  card.question = "Which part of the pipeline takes what?";
  const analysis::StageUse* most = nullptr;
  for (const analysis::StageUse& use : sheet.stages) {
    if (!use.cpu_share.available()) continue;
    if (most == nullptr || use.cpu_share.value() > most->cpu_share.value()) most = &use;
  }
  if (most == nullptr) {
    card.empty = sheet.stages.empty()
                     ? "This run has no instrumented part."
                     : "CPU time by part is not known: " + sheet.stages[0].cpu_share.reason() + ".";
  } else {
    card.answer = fmt::format("{} takes {} of the CPU time.", Printable(most->name, 60),
                              Format(most->cpu_share));
  }
  card.read = {
      "Accounted bytes are those that operators take and give; caches answer a part of them."};
  return card;
}

// ---------------------------------------------------------------- JSON

double SiOf(const Quantity& quantity) {
  return quantity.value() * (quantity.unit() == Unit::kNanoseconds ? 1e-9 : 1);
}

Json QuantityJson(const Quantity& quantity) {
  if (!quantity.available()) return {{"reason", Printable(quantity.reason(), 300)}};
  return {{"text", Format(quantity)}, {"value", NumberOrNull(SiOf(quantity))}};
}

// `in_file`: without the published values as numbers, so that the file can be mailed.
Json SheetFigureJson(const SheetFigure& figure, bool in_file) {
  Json json = {{"key", figure.key}, {"name", figure.name}, {"here", QuantityJson(figure.here)}};
  if (figure.here.available()) json["told_by"] = Printable(figure.told_by, 200);
  Json published = Json::object();
  std::string source;
  for (const analysis::PublishedFigure& of : figure.published) {
    const Quantity& value = figure.scaled_by.empty() ? of.value : of.scaled;
    // Beside which study it is from, how it was measured says nothing.
    published[of.model] = QuantityJson(Quantity::Of(value.value(), value.unit(), Source::kAccount));
    source = fmt::format("{} ({})", of.source, of.sureness);
  }
  if (in_file) {
    for (Json& value : published) value.erase("value");
  }
  json["published"] = std::move(published);
  if (!source.empty()) json["source"] = source;
  if (!figure.difference.empty()) json["difference"] = figure.difference;
  if (!figure.why.empty()) json["why"] = figure.why;
  return json;
}

std::string CharacterizationAnswer(const PageRun& page, const PageQuery& query) {
  const bool in_file = query.values.contains("file");
  const analysis::RunView& run = page.loaded().run;
  Json root = {{"schema", "headrace.run_characterization/1"}};
  if (run.operators.empty()) {
    Card none;
    none.question = "What is characteristic of this workload?";
    none.empty = "The sheet needs a program with operators: this one is not instrumented.";
    none.command = "headrace characterize rm1 --quick";
    root["card"] = CardJson(none, page.id());
    return root.dump();
  }
  const KeptTable kept = ReadKept(page);
  const Sheet sheet = SheetOf(page, kept);
  root["card"] = CardJson(LimitCard(sheet), page.id());
  Json parts = Json::array();
  for (const FigurePart& part : sheet.parts) {
    Json figures = Json::array();
    for (const SheetFigure& figure : part.figures)
      figures.push_back(SheetFigureJson(figure, in_file));
    parts.push_back({{"key", part.key},
                     {"card", CardJson(PartCard(sheet, part, run, kept.sample), page.id())},
                     {"figures", std::move(figures)}});
  }
  root["parts"] = std::move(parts);
  Json stages = Json::array();
  for (const analysis::StageUse& use : sheet.stages) {
    stages.push_back({{"part", Printable(use.name, 100)},
                      {"cpu", QuantityJson(use.cpu_share)},
                      {"cores", QuantityJson(use.cores)},
                      {"cpu_per_row", QuantityJson(use.cpu_per_row)},
                      {"bytes", QuantityJson(use.memory_bytes_per_s)},
                      {"nic", QuantityJson(use.nic_bytes_per_s)}});
  }
  root["stages_card"] = CardJson(UseCard(sheet), page.id());
  root["stages"] = std::move(stages);
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("characterization",
               {.make = CharacterizationAnswer, .in_file = true, .of_report = true});

}  // namespace
}  // namespace headrace::dashboards
