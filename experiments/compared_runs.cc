#include "experiments/compared_runs.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "analysis/run/read_run.h"
#include "base/error.h"
#include "base/registry.h"
#include "collectors/store/store.h"

namespace headrace::experiments {
namespace {

// Length of a block of one run: far longer than queues take to fill and drain, so that neighbouring
// blocks are hardly correlated.
constexpr int64_t kBlockNs = 5'000'000'000;

bool IsTag(const std::string& text) { return text.rfind("tag:", 0) == 0; }

// The runs that have the tag, in the order in which they began.
std::vector<int64_t> RunsOfTag(const std::string& database, const std::string& tag) {
  collectors::ReadStore store(database);
  const collectors::SqlResult rows =
      store.Query("SELECT run_id, tags FROM run_summary ORDER BY run_id");
  std::vector<int64_t> runs;
  std::set<std::string> tags;
  for (const auto& row : rows.rows) {
    const auto* text = std::get_if<std::string>(&row[1]);
    std::istringstream words(text ? *text : "");
    bool has = false;
    for (std::string word; words >> word;) {
      tags.insert(word);
      has = has || word == tag;
    }
    const auto* id = std::get_if<int64_t>(&row[0]);
    if (has && id) runs.push_back(*id);
  }
  if (runs.empty()) {
    const std::string nearest = NearestName(tag, {tags.begin(), tags.end()});
    throw Error(ExitCode::kBadData,
                fmt::format("no run has the tag '{}'{}", Printable(tag, 60),
                            nearest.empty() ? "" : fmt::format(". Did you mean '{}'?", nearest)),
                database,
                "'headrace runs' lists runs and tags; 'headrace runs tag RUN TAG' sets one");
  }
  return runs;
}

// The runs that the word names: "tag:NAME" all that have the tag, anything else one run.
std::vector<analysis::RunView> LoadSide(const std::string& database, const std::string& side) {
  std::vector<analysis::RunView> views;
  if (!IsTag(side)) {
    views.push_back(analysis::LoadRun(database, side));
    return views;
  }
  for (const int64_t run_id : RunsOfTag(database, side.substr(4)))
    views.push_back(analysis::LoadRun(database, std::to_string(run_id)));
  return views;
}

}  // namespace

dashboards::ComparedRuns LoadSides(const std::string& database, const std::string& a,
                                   const std::string& b) {
  { collectors::ReadStore ready(database); }
  dashboards::ComparedRuns runs = {LoadSide(database, a), LoadSide(database, b)};
  for (const analysis::RunView& x : runs.a) {
    for (const analysis::RunView& y : runs.b) {
      if (x.run.run_id == y.run.run_id) {
        throw Error(ExitCode::kUsage, fmt::format("run {} is on both sides", x.run.run_id),
                    a + " and " + b, "give two different runs");
      }
    }
  }
  return runs;
}

analysis::ComparedSide ComparedSideOf(const std::string& label, const std::string& said,
                                      const std::vector<analysis::RunView>& views, bool blocks) {
  analysis::ComparedSide side;
  side.label = label;
  side.what = IsTag(said) ? fmt::format("{} ({} runs)", said, views.size())
                          : fmt::format("run {} '{}'", views[0].run.run_id, views[0].run.name);
  for (const analysis::RunView& view : views) {
    if (!blocks) {
      analysis::ComparedSample& sample = side.samples.emplace_back();
      sample.run_id = view.run.run_id;
      sample.figures = analysis::FiguresOf(view);
      if (view.run.state == "recording")
        sample.left_out = fmt::format("run {} is still being recorded", view.run.run_id);
      continue;
    }
    for (const analysis::RunFigures& figures : analysis::BlocksOf(view, kBlockNs))
      side.samples.push_back({view.run.run_id, figures, ""});
    if (side.samples.empty()) continue;
    // What blocks do not have is of the whole run: one value, to be seen and not tested.
    const analysis::RunFigures whole = analysis::FiguresOf(view);
    for (size_t f = 0; f < analysis::kFigures; ++f) {
      if (!side.samples[0].figures.values[f]) {
        side.samples[0].figures.values[f] = whole.values[f];
        side.samples[0].figures.reasons[f] = whole.reasons[f];
      }
    }
  }
  if (side.samples.empty()) {
    side.samples.push_back({views[0].run.run_id, analysis::FiguresOf(views[0]), ""});
  }
  return side;
}

void AddPair(const AbPair& pair, analysis::ComparisonInput* input) {
  input->a.samples.push_back({pair.a.run_id, pair.a.figures, ""});
  input->b.samples.push_back({pair.b.run_id, pair.b.figures, ""});
  input->b_first.push_back(pair.b_first);
}

dashboards::ComparedRuns LoadRuns(const std::string& database,
                                  const analysis::ComparisonInput& input) {
  const auto load = [&](const analysis::ComparedSide& side) {
    std::vector<analysis::RunView> views;
    for (const analysis::ComparedSample& sample : side.samples) {
      if (input.unit == analysis::ComparedUnit::kBlock && !views.empty()) break;
      views.push_back(analysis::LoadRun(database, std::to_string(sample.run_id)));
    }
    return views;
  };
  return {load(input.a), load(input.b)};
}

}  // namespace headrace::experiments
