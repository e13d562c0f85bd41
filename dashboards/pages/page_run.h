// What the web pages show of a run, as JSON: one file for each answer, found by its name. The
// server gives it at /api/runs/ID/NAME, and the report in one file carries it with it.
//
// JSON is in columns, SI base units (seconds, bytes, ratios); null is what was not measured.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "analysis/advice/statements.h"
#include "analysis/run/run_view.h"
#include "base/registry.h"
#include "collectors/store/read_store.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// A run read whole, with what is said about it. `statements` and `report` refer to `run`, so it is
// neither copied nor moved.
struct LoadedRun {
  analysis::RunView run;
  analysis::Statements statements;
  Report report;
  // Held while the model predicts: it remembers what it simulated.
  mutable std::mutex predicting;

  LoadedRun() = default;
  LoadedRun(const LoadedRun&) = delete;
  LoadedRun& operator=(const LoadedRun&) = delete;
};

// What commands on the pages name, and what a report may be told.
struct LoadOptions {
  std::string program = "headrace";
  std::string database_option = "";  // " --db FILE", or empty
  std::optional<double> core_hour_price = {};
};

// Reads a run and makes its report. Throws as analysis::LoadRun.
std::shared_ptr<const LoadedRun> LoadForPages(const std::string& database, const std::string& run,
                                              const LoadOptions& options);

// The run that an answer is about. What most answers need is read by views; the report, which takes
// longer, only where one asks for it.
class PageRun {
 public:
  using Load = std::function<std::shared_ptr<const LoadedRun>()>;
  // `store` must outlive this.
  PageRun(collectors::ReadStore& store, int64_t id, Load load)
      : store_(store), id_(id), load_(std::move(load)) {}

  collectors::ReadStore& store() const { return store_; }
  int64_t id() const { return id_; }
  // Throws what `load` throws.
  const LoadedRun& loaded() const {
    if (!loaded_) loaded_ = load_();
    return *loaded_;
  }

 private:
  collectors::ReadStore& store_;
  int64_t id_;
  Load load_;
  mutable std::shared_ptr<const LoadedRun> loaded_;
};

// What was asked beside the name, and the body of a POST. Numbers that are none are refused.
struct PageQuery {
  std::map<std::string, std::string> values;
  std::string body;

  // The number called `name`, or `otherwise` where it is not given. Throws Error kUsage for what is
  // no finite number of 0 or more.
  double Number(const std::string& name, double otherwise) const;
  std::string Text(const std::string& name, const std::string& otherwise) const;
};

struct PageAnswer {
  // JSON text. Throws Error: kUsage for a question that cannot be, kInconclusive where the run does
  // not tell.
  std::string (*make)(const PageRun& run, const PageQuery& query) = nullptr;
  bool takes_body = false;  // asked by POST
  bool in_file = false;     // the report in one file has it, as it is without a query
  bool of_report = false;   // it needs the report, which takes longer than views do
};

#define HR_PAGE_ANSWER(name, ...)                   \
  [[maybe_unused]] static const bool HR_REGISTRAR = \
      ::headrace::Registry<::headrace::dashboards::PageAnswer>::Global().Add(name, __VA_ARGS__)

// ---------------------------------------------------------------- cards

// What a card of a page says: a question, its answer as a sentence, and how to read the chart
// below. Where there is nothing to draw, `empty` says why, and `command` would fill it.
struct Card {
  std::string question, answer;
  std::vector<std::string> read;
  std::string sql;  // the query that gives what is drawn
  std::string empty, command;
};

struct CardEntry {
  Card (*make)(const LoadedRun& loaded) = nullptr;
};

// A card is one file in dashboards/pages/cards that ends with HR_CARD. In `sql`, {run} is the run's
// id.
#define HR_CARD(key, function)                      \
  [[maybe_unused]] static const bool HR_REGISTRAR = \
      ::headrace::Registry<::headrace::dashboards::CardEntry>::Global().Add(key, {function})

// The fact `key` of the report's section `section`, if it is a number that is known.
std::optional<double> KnownFact(const Report& report, const std::string& section,
                                const std::string& key);
// The table of that key; null where the report has none.
const Table* FindTable(const Report& report, const std::string& key);
// The cell in the column `key`, if it is a number that is known.
std::optional<double> KnownCell(const Table& table, const std::vector<Value>& row,
                                const std::string& key);
// The same as text; empty where it is none.
std::string CellWord(const Table& table, const std::vector<Value>& row, const std::string& key);

}  // namespace headrace::dashboards
