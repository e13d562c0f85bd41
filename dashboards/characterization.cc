#include "dashboards/characterization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "dashboards/json_number.h"

namespace headrace::dashboards {
namespace {

using analysis::Characterization;
using analysis::FigurePart;
using analysis::Interval;
using analysis::Ladder;
using analysis::LadderStep;
using analysis::LadderTotal;
using analysis::PublishedFigure;
using analysis::Sheet;
using analysis::SheetFigure;
using analysis::StageUse;
using Json = nlohmann::ordered_json;

Quantity None(const std::string& reason, Unit unit = Unit::kNone) {
  return Quantity::Unavailable(reason, unit);
}

Value FigureOf(const Sheet& sheet, const char* key) {
  const SheetFigure* figure = sheet.Find(key);
  return figure != nullptr ? figure->here : None("not on the sheet");
}

Section Overview(const Characterization& study) {
  Section section{"overview", "", {}, {}, {}};
  section.sentences.push_back(
      {"HOST", fmt::format("{}: {:g} cores, {}; kernel {}; headrace {}", study.hostname,
                           study.cores, study.cpu_model, study.kernel, study.version)});
  section.sentences.push_back(
      {"MADE",
       fmt::format("by '{}' in {:.1f} minutes at a load of {:.1f}{}", study.command, study.minutes,
                   study.load,
                   study.quick ? "; --quick: small tables and short runs, wide intervals" : "")});
  Table table{"workloads",
              "",
              {{"workload", "workload"},
               {"limited_by", "limited by"},
               {"published_limit", "published"},
               {"features_used_ratio", "features used"},
               {"bytes_used_ratio", "bytes used"},
               {"worker_rows_per_s", "rows of a worker"},
               {"tensor_bytes_per_s", "tensors out"},
               {"workers_per_trainer_count", "workers a trainer"}},
              {}};
  for (const Sheet& sheet : study.sheets) {
    section.sentences.push_back(
        {"LIMIT", fmt::format("{}: {}: {}", sheet.name, sheet.limit.words, sheet.limit.evidence)});
    table.rows.push_back(
        {sheet.name, sheet.limit.words,
         sheet.published_limit != nullptr ? std::string(sheet.published_limit->words)
                                          : std::string("not published"),
         FigureOf(sheet, "features_used_ratio"), FigureOf(sheet, "bytes_used_ratio"),
         FigureOf(sheet, "worker_rows_per_s"), FigureOf(sheet, "tensor_bytes_per_s"),
         FigureOf(sheet, "workers_per_trainer_count")});
  }
  table.second_block = 3;
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  return section;
}

Section Conditions(const Sheet& sheet) {
  Section section{
      "conditions", fmt::format("{}: limited by {}", sheet.name, sheet.limit.words), {}, {}, {}};
  section.sentences.push_back({"because", sheet.limit.evidence});
  if (sheet.published_limit != nullptr) {
    section.sentences.push_back(
        {"study",
         fmt::format("{} ({}; {})", sheet.published_limit->words, sheet.published_limit->source,
                     analysis::SurenessName(sheet.published_limit->sureness))});
  }
  for (const std::string& words : sheet.conditions.words)
    section.sentences.push_back({"under", words});
  return section;
}

// One row a figure: here, published, the published scaled to what is comparable, who says it.
Section PartSection(const Sheet& sheet, const FigurePart& part) {
  Section section{part.key, fmt::format("{}: {}", sheet.name, part.title), {}, {}, {}};
  const bool one_model = !sheet.model.empty();
  Table table{sheet.name + "." + part.key, "", {{"figure", "figure"}, {"here", "here"}}, {}};
  const bool any_published =
      std::any_of(part.figures.begin(), part.figures.end(),
                  [](const SheetFigure& figure) { return !figure.published.empty(); });
  const bool any_scaled =
      std::any_of(part.figures.begin(), part.figures.end(), [](const SheetFigure& figure) {
        return !figure.published.empty() && !figure.scaled_by.empty();
      });
  if (any_published && one_model) {
    table.columns.push_back({"published", "published"});
    if (any_scaled) table.columns.push_back({"scaled", "scaled to here"});
    table.columns.push_back({"source", "published by"});
  } else if (any_published) {
    for (const char* model : analysis::kPublishedModels) table.columns.push_back({model, model});
    table.columns.push_back({"source", "published by"});
  }
  table.columns.push_back({"told_by", "source"});
  for (const SheetFigure& figure : part.figures) {
    std::vector<Value> row = {figure.name, figure.here};
    const auto source = [](const PublishedFigure& published) {
      return fmt::format("{} ({})", published.source, published.sureness);
    };
    if (any_published && one_model) {
      if (figure.published.empty()) {
        row.push_back(std::string());
        if (any_scaled) row.push_back(std::string());
        row.push_back(std::string());
      } else {
        row.push_back(figure.published[0].value);
        if (any_scaled) {
          row.push_back(figure.scaled_by.empty() ? Value(std::string())
                                                 : Value(figure.published[0].scaled));
        }
        row.push_back(source(figure.published[0]));
      }
    } else if (any_published) {
      std::string by;
      for (const char* model : analysis::kPublishedModels) {
        Value value = std::string();
        for (const PublishedFigure& published : figure.published) {
          if (published.model != model) continue;
          value = published.value;
          by = source(published);
        }
        row.push_back(std::move(value));
      }
      row.push_back(by);
    }
    row.push_back(figure.here.available() ? figure.told_by : std::string());
    table.rows.push_back(std::move(row));
  }
  section.tables.push_back(std::move(table));
  return section;
}

// Below the table, as cells do not wrap; figures that differ for one reason together.
Section Differences(const FigurePart& part) {
  Section section{part.key + "_differences", "", {}, {}, {}};
  std::vector<std::pair<std::string, std::string>> reasons;  // why, which figures
  for (const SheetFigure& figure : part.figures) {
    if (figure.difference.empty()) continue;
    const auto found = std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) {
      return !figure.why.empty() && reason.first == figure.why;
    });
    const std::string which = fmt::format("{}: {}", figure.name, figure.difference);
    if (found != reasons.end()) {
      found->second += "; " + which;
    } else {
      reasons.emplace_back(figure.why, which);
    }
  }
  for (const auto& [why, which] : reasons)
    section.sentences.push_back({"differs", why.empty() ? which : which + ". " + why});
  return section;
}

Section Stages(const Sheet& sheet) {
  Section section{
      "stages",
      fmt::format("{}: CPU, memory traffic and NIC by part of the pipeline", sheet.name),
      {},
      {},
      {}};
  Table table{sheet.name + ".stages",
              "",
              {{"part", "part"},
               {"cpu_ratio", "CPU, of all"},
               {"cores", "cores"},
               {"cpu_seconds_per_row", "CPU a row"},
               {"memory_bytes_per_second", "accounted bytes, in and out"},
               {"nic_bytes_per_second", "NIC"}},
              {}};
  for (const StageUse& use : sheet.stages) {
    table.rows.push_back({use.name, use.cpu_share, use.cores, use.cpu_per_row,
                          use.memory_bytes_per_s, use.nic_bytes_per_s});
  }
  section.tables.push_back(std::move(table));
  return section;
}

Quantity Count(double value) { return Quantity::Of(value, Unit::kCount, Source::kAccount); }

std::string PublishedText(const std::optional<Interval>& published) {
  if (!published) return "";
  return published->low == published->high
             ? FactorText(published->low)
             : fmt::format("{} to {}", FactorText(published->low), FactorText(published->high));
}

Section LadderSection(const Ladder& ladder) {
  Section section{"ladder", "The optimisation ladder: " + ladder.table, {}, {}, {}};
  section.sentences.push_back({"under", ladder.conditions});
  for (const std::string& left : ladder.left_out) section.sentences.push_back({"without", left});
  Table table{"ladder_steps",
              "",
              {{"rung", "rung"},
               {"figure", "tier"},
               {"ratio", "ratio [95 %]"},
               {"published", "published"},
               {"sign", "sign"},
               {"against", "against"},
               {"before", "before"},
               {"after", "after"},
               {"unit", "unit"},
               {"source", "published by"}},
              {}};
  for (const LadderStep& step : ladder.steps) {
    table.rows.push_back(
        {fmt::format("{}, {}", step.rung, step.words), step.figure,
         fmt::format("{} [{}, {}]", FactorText(step.ratio), FactorText(step.interval.low),
                     FactorText(step.interval.high)),
         PublishedText(step.published), step.sign, step.against, Count(step.before),
         Count(step.after), step.unit, step.source});
  }
  table.second_block = 5;
  section.tables.push_back(std::move(table));
  return section;
}

Section LadderWhy(const Ladder& ladder) {
  Section section{"ladder_why", "Why, from the counters of the runs", {}, {}, {}};
  for (const LadderStep& step : ladder.steps) {
    if (step.why.empty()) continue;
    section.sentences.push_back({step.rung, fmt::format("{}: {}", step.figure, step.why)});
  }
  return section;
}

Value Maybe(const std::optional<double>& factor) {
  return factor ? FactorText(*factor) : std::string();
}

Section LadderTotals(const Ladder& ladder) {
  Section section{"ladder_totals", "Against the first rung, in every tier", {}, {}, {}};
  Table table{"ladder_totals",
              "",
              {{"rung", "rung"},
               {"reader", "reader"},
               {"published_reader", "published"},
               {"storage", "storage"},
               {"published_storage", "published"},
               {"trainer_rows_per_cpu_second", "trainer rows per CPU s"},
               {"storage_rows_per_second", "rows behind the disk"},
               {"read_bytes_per_row", "read a row"},
               {"requests_per_1000_rows", "requests per 1000 rows"},
               {"over_read_ratio", "over-read"},
               {"peak_bytes", "peak memory"}},
              {}};
  for (const LadderTotal& total : ladder.totals) {
    const Quantity trainer = total.trainer_rows_per_cpu_s
                                 ? Count(*total.trainer_rows_per_cpu_s)
                                 : None("measured from RB on", Unit::kCount);
    const Quantity peak = total.peak_bytes
                              ? Quantity::Of(*total.peak_bytes, Unit::kBytes, Source::kCounter)
                              : None("the process's memory was not recorded", Unit::kBytes);
    table.rows.push_back(
        {total.rung, Maybe(total.reader), Maybe(total.published_reader), Maybe(total.storage),
         Maybe(total.published_storage), trainer,
         Quantity::Of(total.storage_rows_per_s, Unit::kRowsPerSecond, Source::kAccount),
         Quantity::Of(total.read_bytes_per_row, Unit::kBytes, Source::kAccount),
         Count(1e3 * total.requests_per_row),
         Quantity::Of(total.over_read_ratio, Unit::kRatio, Source::kAccount), peak});
  }
  table.second_block = 6;
  section.tables.push_back(std::move(table));
  return section;
}

// --- JSON ----------------------------------------------------------------------------------------

double Scale(const Quantity& quantity) { return quantity.unit() == Unit::kNanoseconds ? 1e-9 : 1; }

std::string JsonUnit(Unit unit) { return unit == Unit::kNanoseconds ? "s" : UnitName(unit); }

void Put(Json* object, const std::string& key, const Quantity& quantity) {
  if (!quantity.available()) {
    (*object)[key] = nullptr;
    (*object)[key + "_unavailable"] = quantity.reason();
    return;
  }
  (*object)[key] = NumberOrNull(quantity.value() * Scale(quantity));
  if (!quantity.has_interval()) return;
  (*object)[key + "_low"] = NumberOrNull(quantity.low() * Scale(quantity));
  (*object)[key + "_high"] = NumberOrNull(quantity.high() * Scale(quantity));
}

Json FigureJson(const SheetFigure& figure) {
  Json json = {{"key", figure.key}, {"name", figure.name}, {"unit", JsonUnit(figure.here.unit())}};
  Put(&json, "value", figure.here);
  if (figure.here.available()) {
    json["source"] = SourceName(figure.here.source());
    json["told_by"] = figure.told_by;
  }
  json["published"] = Json::array();
  for (const PublishedFigure& published : figure.published) {
    json["published"].push_back(
        {{"model", published.model},
         {"value", NumberOrNull(published.value.value() * Scale(published.value))},
         {"unit", JsonUnit(published.value.unit())},
         {"scaled", NumberOrNull(published.scaled.value() * Scale(published.scaled))},
         {"source", published.source},
         {"sureness", published.sureness}});
  }
  if (!figure.scaled_by.empty()) json["scaled_by"] = figure.scaled_by;
  if (!figure.difference.empty()) json["difference"] = figure.difference;
  if (!figure.why.empty()) json["why"] = figure.why;
  return json;
}

Json SheetJson(const Sheet& sheet) {
  Json json = {{"name", sheet.name},
               {"model", sheet.model.empty() ? Json() : Json(sheet.model)},
               {"run_id", sheet.worker_run > 0 ? Json(sheet.worker_run) : Json()}};
  json["limit"] = {
      {"resource", sheet.limit.resource},
      {"words", sheet.limit.words},
      {"evidence", sheet.limit.evidence},
      {"decided", sheet.limit.decided},
      {"probability", sheet.limit.probability > 0 ? Json(sheet.limit.probability) : Json()}};
  if (sheet.published_limit != nullptr) {
    json["published_limit"] = {
        {"resource", sheet.published_limit->resource},
        {"words", sheet.published_limit->words},
        {"source", sheet.published_limit->source},
        {"sureness", analysis::SurenessName(sheet.published_limit->sureness)}};
  }
  json["conditions"] = {{"cores", sheet.conditions.cores},
                        {"nic_bytes_per_s", NumberOrNull(sheet.conditions.nic_bytes_per_s)},
                        {"memory_bytes", NumberOrNull(sheet.conditions.memory_bytes)},
                        {"words", sheet.conditions.words}};
  json["parts"] = Json::array();
  for (const FigurePart& part : sheet.parts) {
    Json figures = Json::array();
    for (const SheetFigure& figure : part.figures) figures.push_back(FigureJson(figure));
    json["parts"].push_back({{"key", part.key}, {"title", part.title}, {"figures", figures}});
  }
  json["stages"] = Json::array();
  for (const StageUse& use : sheet.stages) {
    Json stage = {{"part", use.name}};
    Put(&stage, "cpu_ratio", use.cpu_share);
    Put(&stage, "cores", use.cores);
    Put(&stage, "cpu_s_per_row", use.cpu_per_row);
    Put(&stage, "accounted_bytes_per_s", use.memory_bytes_per_s);
    Put(&stage, "nic_bytes_per_s", use.nic_bytes_per_s);
    json["stages"].push_back(std::move(stage));
  }
  return json;
}

Json LadderJson(const Ladder& ladder) {
  Json json = {{"table", ladder.table},
               {"conditions", ladder.conditions},
               {"left_out", ladder.left_out},
               {"opposite", ladder.opposite}};
  json["steps"] = Json::array();
  for (const LadderStep& step : ladder.steps) {
    json["steps"].push_back(
        {{"rung", step.rung},
         {"words", step.words},
         {"tier", step.figure},
         {"unit", step.unit},
         {"against", step.against},
         {"before", NumberOrNull(step.before)},
         {"after", NumberOrNull(step.after)},
         {"ratio", NumberOrNull(step.ratio)},
         {"ratio_low", NumberOrNull(step.interval.low)},
         {"ratio_high", NumberOrNull(step.interval.high)},
         {"pairs_count", step.pairs},
         {"published_low", step.published ? NumberOrNull(step.published->low) : Json()},
         {"published_high", step.published ? NumberOrNull(step.published->high) : Json()},
         {"source", step.source},
         {"sign", step.sign},
         {"why", step.why}});
  }
  json["totals"] = Json::array();
  for (const LadderTotal& total : ladder.totals) {
    json["totals"].push_back(
        {{"rung", total.rung},
         {"reader", NumberOrNull(total.reader)},
         {"published_reader", NumberOrNull(total.published_reader)},
         {"storage", NumberOrNull(total.storage)},
         {"published_storage", NumberOrNull(total.published_storage)},
         {"trainer_rows_per_cpu_s", NumberOrNull(total.trainer_rows_per_cpu_s)},
         {"storage_rows_per_s", NumberOrNull(total.storage_rows_per_s)},
         {"read_bytes_per_row", NumberOrNull(total.read_bytes_per_row)},
         {"requests_per_row", NumberOrNull(total.requests_per_row)},
         {"over_read_ratio", NumberOrNull(total.over_read_ratio)},
         {"peak_bytes", NumberOrNull(total.peak_bytes)}});
  }
  return json;
}

}  // namespace

std::string FactorText(double factor) {
  return factor >= 20    ? fmt::format("{:.0f}", factor)
         : factor >= 0.1 ? fmt::format("{:.2f}", factor)
                         : fmt::format("{:.3f}", factor);
}

Report MakeCharacterizationReport(const Characterization& study) {
  Report report;
  report.title = "Characterization of data ingestion";
  for (const Sheet& sheet : study.sheets) report.decided = report.decided && sheet.limit.decided;
  report.sections.push_back(Overview(study));
  for (const Sheet& sheet : study.sheets) {
    report.sections.push_back(Conditions(sheet));
    for (const FigurePart& part : sheet.parts) {
      report.sections.push_back(PartSection(sheet, part));
      report.sections.push_back(Differences(part));
    }
    if (!sheet.stages.empty()) report.sections.push_back(Stages(sheet));
  }
  if (study.ladder) {
    report.sections.push_back(LadderSection(*study.ladder));
    report.sections.push_back(LadderTotals(*study.ladder));
    report.sections.push_back(LadderWhy(*study.ladder));
  } else if (!study.no_ladder.empty()) {
    report.sections.push_back(
        {"ladder", "The optimisation ladder", {{"none", study.no_ladder}}, {}, {}});
  }
  return report;
}

std::string CharacterizationJson(const Characterization& study) {
  Json root;
  root["schema"] = "headrace.characterization/1";
  root["headrace_version"] = study.version;
  root["command"] = study.command;
  root["host"] = {{"hostname", study.hostname},
                  {"cpu_model", study.cpu_model},
                  {"kernel", study.kernel},
                  {"cores", study.cores}};
  root["quick"] = study.quick;
  root["duration_s"] = NumberOrNull(60 * study.minutes);
  root["workloads"] = Json::array();
  for (const Sheet& sheet : study.sheets) root["workloads"].push_back(SheetJson(sheet));
  root["ladder"] = study.ladder ? LadderJson(*study.ladder) : Json();
  if (!study.ladder && !study.no_ladder.empty()) root["ladder_unavailable"] = study.no_ladder;
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::dashboards
