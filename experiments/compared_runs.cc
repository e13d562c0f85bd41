#include "experiments/compared_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <sstream>

#include "analysis/run/phases.h"
#include "analysis/run/read_run.h"
#include "analysis/run/run_slice.h"
#include "base/error.h"
#include "base/registry.h"
#include "base/units.h"
#include "collectors/store/store.h"

namespace headrace::experiments {
namespace {

// Length of a block of one run. The longest is far longer than queues take to fill and drain, so
// that neighbouring blocks are hardly correlated. Blocks of parts of one run, which cannot be made
// longer by running them again, may be shorter, so that there are enough for an answer. Few long
// blocks raise fewer false alarms than many short ones (docs/statistics.md).
constexpr int64_t kLongestBlockNs = 5'000'000'000, kShortestBlockNs = 2'000'000'000;
constexpr int64_t kBlocksOfPart = 4;

// What a word names: "3", "3@10s-20s", "tag:NAME".
struct SideWord {
  std::string runs;
  std::optional<analysis::RunTimes> times;
};

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

bool NamesARun(const std::string& database, const std::string& name) {
  collectors::ReadStore store(database);
  return !store.Query("SELECT 1 FROM run_summary WHERE name = ?1 LIMIT 1", {name}).rows.empty();
}

SideWord ParseSide(const std::string& database, const std::string& side) {
  const size_t at = side.rfind('@');
  const size_t dash = at == std::string::npos ? at : side.find('-', at);
  // Names of runs may have an @, too.
  if (IsTag(side) || dash == std::string::npos ||
      (dash > at + 1 && std::isdigit(static_cast<unsigned char>(side[at + 1])) == 0) ||
      NamesARun(database, side))
    return {side, std::nullopt};
  analysis::RunTimes times;
  const std::string from = side.substr(at + 1, dash - at - 1), to = side.substr(dash + 1);
  if (!from.empty()) times.start_ns = ParseDuration(from, side);
  if (!to.empty()) times.end_ns = ParseDuration(to, side);
  if (at == 0 || times.start_ns >= times.end_ns)
    throw Error(ExitCode::kUsage, at == 0 ? "names no run" : "is empty, or ends before it begins",
                side, "a part of a run is RUN@FROM-TO, as in 3@10s-20s");
  return {side.substr(0, at), times};
}

// The runs that the word names: "tag:NAME" all that have the tag, anything else one run.
std::vector<analysis::RunView> LoadSide(const std::string& database, const SideWord& side) {
  std::vector<analysis::RunView> views;
  if (!IsTag(side.runs)) {
    const analysis::RunTimes detail = side.times.value_or(analysis::RunTimes{0, 0});
    views.push_back(analysis::LoadRun(database, side.runs, detail));
    return views;
  }
  for (const int64_t run_id : RunsOfTag(database, side.runs.substr(4)))
    views.push_back(analysis::LoadRun(database, std::to_string(run_id)));
  return views;
}

// Of a run that is on both sides: that it is not the same part of it.
void CheckParts(const SideWord& a, const SideWord& b, int64_t run_id) {
  if (!a.times || !b.times)
    throw Error(
        ExitCode::kUsage, fmt::format("run {} is on both sides", run_id), a.runs + " and " + b.runs,
        fmt::format("give two different runs, or two parts of it: {0}@0s-10s {0}@10s-20s", run_id));
  if (a.times->start_ns < b.times->end_ns && b.times->start_ns < a.times->end_ns)
    throw Error(ExitCode::kUsage, "these parts of it overlap", fmt::format("run {}", run_id),
                "give parts that do not overlap");
}

int64_t SteadyNs(const analysis::RunView& view) {
  int64_t steady_ns = 0;
  for (const size_t w : analysis::FindPhases(view).steady) steady_ns += view.windows[w].duration_ns;
  return steady_ns;
}

std::string PartWords(const analysis::RunTimes& times) {
  const auto words = [](int64_t ns) {
    return ns == 0 ? std::string("0 s") : FormatDuration(static_cast<double>(ns));
  };
  return fmt::format("{} to {}", words(times.start_ns), words(times.end_ns));
}

}  // namespace

dashboards::ComparedRuns LoadSides(const std::string& database, const std::string& a,
                                   const std::string& b) {
  { collectors::ReadStore ready(database); }
  const SideWord of_a = ParseSide(database, a), of_b = ParseSide(database, b);
  dashboards::ComparedRuns runs = {LoadSide(database, of_a), LoadSide(database, of_b), of_a.times,
                                   of_b.times};
  for (const analysis::RunView& x : runs.a) {
    for (const analysis::RunView& y : runs.b) {
      if (x.run.run_id == y.run.run_id) CheckParts(of_a, of_b, x.run.run_id);
    }
  }
  if (runs.a_times) runs.a[0] = analysis::PartOf(runs.a[0], &*runs.a_times);
  if (runs.b_times) runs.b[0] = analysis::PartOf(runs.b[0], &*runs.b_times);
  return runs;
}

int64_t BlockLength(const dashboards::ComparedRuns& runs) {
  if (!runs.of_one_run()) return kLongestBlockNs;
  const int64_t shorter_ns = std::min(SteadyNs(runs.a[0]), SteadyNs(runs.b[0]));
  return std::clamp(shorter_ns / kBlocksOfPart, kShortestBlockNs, kLongestBlockNs);
}

analysis::ComparedSide ComparedSideOf(const std::string& label, const std::string& said,
                                      const std::vector<analysis::RunView>& views,
                                      const std::optional<analysis::RunTimes>& times,
                                      int64_t block_ns) {
  analysis::ComparedSide side;
  side.label = label;
  side.what = IsTag(said) ? fmt::format("{} ({} runs)", said, views.size())
                          : fmt::format("run {} '{}'", views[0].run.run_id, views[0].run.name);
  if (times) side.what += ", " + PartWords(*times);
  for (const analysis::RunView& view : views) {
    if (block_ns == 0) {
      analysis::ComparedSample& sample = side.samples.emplace_back();
      sample.run_id = view.run.run_id;
      sample.figures = analysis::FiguresOf(view);
      if (view.run.state == "recording")
        sample.left_out = fmt::format("run {} is still being recorded", view.run.run_id);
      continue;
    }
    for (analysis::RunFigures& figures : analysis::BlocksOf(view, block_ns)) {
      figures.steady_first_ns += times ? times->start_ns : 0;
      figures.steady_last_ns += times ? times->start_ns : 0;
      side.samples.push_back({view.run.run_id, figures, ""});
    }
    if (side.samples.empty() || times) continue;
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
