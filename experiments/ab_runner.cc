#include "experiments/ab_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "collectors/store/store.h"
#include "dashboards/terminal/progress.h"
#include "experiments/child_run.h"
#include "experiments/interrupt.h"
#include "experiments/recorded_run.h"

namespace headrace::experiments {
namespace {

// Throws the Error for a side's command that did not end well.
[[noreturn]] void Failed(const AbSide& side, const ChildEnd& end) {
  const std::string where = "side " + side.label, line = end.last();
  if (line.starts_with("headrace profile: ")) throw ErrorOfChild(end, "headrace profile", where);
  // As sh: the command was not found, or cannot be executed.
  const bool missing = end.code == 126 || end.code == 127;
  throw Error(missing ? static_cast<ExitCode>(end.code) : ExitCode::kFailure,
              fmt::format("'{}' ended with exit code {}{}", Printable(side.command, 60), end.code,
                          line.empty() ? "" : ": " + Printable(line)),
              where, "a side has to end well to be compared");
}

class Runner {
 public:
  explicit Runner(const AbOptions& options) : options_(options) {}

  AbResult RunPairs() {
    InstallInterruptHandler();
    const int64_t start = MonotonicNs();
    if (!options_.quiet) progress_.emplace("comparing");
    for (size_t i = 0; i < options_.warmup && !Interrupted(); ++i) {
      WarmUp(options_.a);
      if (!Interrupted()) WarmUp(options_.b);
    }
    AbResult result;
    const std::vector<bool> orders = AbOrders(options_.pairs, options_.seed);
    const int64_t first_pair = MonotonicNs();
    for (size_t i = 0; i < options_.pairs && !Interrupted(); ++i) {
      const int64_t now = MonotonicNs();
      const int64_t each = i > 0 ? (now - first_pair) / static_cast<int64_t>(i) : 0;
      if (options_.budget_ns > 0 && i > 0 && now - start + each > options_.budget_ns) {
        result.end = AbEnd::kBudget;
        break;
      }
      AbPair pair;
      pair.index = i;
      pair.b_first = orders[i];
      const bool first_done = RunSide(pair, pair.b_first);
      if (!first_done || !RunSide(pair, !pair.b_first)) break;
      result.pairs.push_back(pair);
      last_ = pair;
      if (options_.finished && !options_.finished(pair)) {
        result.end = AbEnd::kStopped;
        break;
      }
    }
    if (Interrupted()) result.end = AbEnd::kInterrupted;
    result.wall_ns = MonotonicNs() - start;
    if (progress_) {
      progress_->Finish(fmt::format("{}{} pair{} in {}", Interrupted() ? "stopped; " : "",
                                    result.pairs.size(), result.pairs.size() == 1 ? "" : "s",
                                    FormatDuration(static_cast<double>(result.wall_ns))));
    }
    return result;
  }

 private:
  // A run of a side's pipeline; recorded under `name`, or without a name not recorded. Returns its
  // id.
  int64_t RunPipeline(const AbSide& side, const std::string& name) const {
    RecordedRun run{side.pipeline, options_.database, name, side.settings, {}};
    run.recorded = !name.empty();
    if (options_.duration_ns > 0)
      run.arguments = {"--duration", fmt::format("{}ns", options_.duration_ns)};
    run.arguments.insert(run.arguments.end(), side.arguments.begin(), side.arguments.end());
    run.where = "side " + side.label;
    return RecordRun(run).run_id;
  }

  // The same of its command.
  int64_t RunCommand(const AbSide& side, const std::string& name) const {
    std::vector<std::string> words = {"/bin/sh", "-c", side.command};
    if (!name.empty()) {
      words = {SelfPath(), "profile", "--db", options_.database, "--name", name, "--quiet"};
      words.insert(words.end(), side.arguments.begin(), side.arguments.end());
      words.insert(words.end(), {"--", "sh", "-c", side.command});
    }
    const ChildEnd end = RunChild(words);
    if (Interrupted()) throw Error(ExitCode::kInterrupted, "interrupted");
    if (end.code != 0) Failed(side, end);
    return name.empty() ? 0 : collectors::ReadStore(options_.database).FindRun(name);
  }

  // Nothing: interrupted.
  std::optional<int64_t> Run(const AbSide& side, const std::string& name) const {
    Prepare(side);
    if (Interrupted()) return std::nullopt;
    try {
      return side.command.empty() ? RunPipeline(side, name) : RunCommand(side, name);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kInterrupted) throw;
      return std::nullopt;
    }
  }

  void Prepare(const AbSide& side) const {
    if (options_.prepare.empty()) return;
    const ChildEnd end = RunChild({"/bin/sh", "-c", options_.prepare});
    if (end.code == 0 || Interrupted()) return;
    const std::string line = end.last();
    throw Error(ExitCode::kFailure,
                fmt::format("'{}' ended with exit code {}{}", Printable(options_.prepare, 60),
                            end.code, line.empty() ? "" : ": " + Printable(line)),
                "--prepare before side " + side.label);
  }

  void WarmUp(const AbSide& side) {
    if (progress_) progress_->Update(0, "warming up side " + side.label);
    Run(side, "");
  }

  // False: interrupted.
  bool RunSide(AbPair& pair, bool is_b) {
    const AbSide& side = is_b ? options_.b : options_.a;
    if (progress_) {
      progress_->Update(static_cast<double>(2 * pair.index + (is_b == pair.b_first ? 0 : 1)) /
                            static_cast<double>(2 * options_.pairs),
                        fmt::format("pair {} of {}: side {}{}", pair.index + 1, options_.pairs,
                                    side.label, SoFar()));
    }
    const auto run_id =
        Run(side, fmt::format("{}-{}-{}", options_.name, side.label, pair.index + 1));
    if (!run_id) return false;
    AbRun& run = is_b ? pair.b : pair.a;
    run.run_id = *run_id;
    collectors::RunStore(options_.database)
        .SetTags(run.run_id, fmt::format("compare {0} {0}-{1}", options_.name, side.label));
    run.figures =
        analysis::FiguresOf(analysis::LoadRun(options_.database, std::to_string(run.run_id)));
    return true;
  }

  // What the last pair gave, for the progress line.
  std::string SoFar() const {
    if (!last_) return "";
    for (const analysis::Figure figure :
         {analysis::Figure::kRowsPerSecond, analysis::Figure::kElapsed}) {
      const analysis::Real a = last_->a.figures.Of(figure), b = last_->b.figures.Of(figure);
      if (!a || !b) continue;
      if (figure == analysis::Figure::kElapsed) {
        return fmt::format("; last A {}, B {}", FormatDuration(*a * 1e9), FormatDuration(*b * 1e9));
      }
      return fmt::format("; last A {}, B {}", FormatRate(*a, "rows"), FormatRate(*b, "rows"));
    }
    return "";
  }

  const AbOptions& options_;
  std::optional<dashboards::Progress> progress_;
  std::optional<AbPair> last_;
};

}  // namespace

std::vector<bool> AbOrders(size_t pairs, uint64_t seed) {
  analysis::Random random(seed);
  std::vector<bool> orders(pairs);
  for (size_t i = 0; i < pairs; ++i) orders[i] = i % 2 == 0 ? random.Below(2) == 1 : !orders[i - 1];
  return orders;
}

AbResult RunPairs(const AbOptions& options) { return Runner(options).RunPairs(); }

}  // namespace headrace::experiments
