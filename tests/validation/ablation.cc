#include "tests/validation/ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "analysis/thresholds.h"
#include "base/error.h"
#include "tests/validation/bench.h"
#include "tests/validation/gates.h"

namespace headrace::validation {
namespace {

// Behind the base, as those of the report (scripts/validate.sh).
constexpr uint64_t kPredictSeed = 10000, kLoadSeed = 15000, kNameSeed = 20000, kWorthSeed = 25000;
constexpr double kClearGain = 0.10;  // of a bottleneck, as the report's
// A change of an error or a width that is shown; of a share, so many cases must turn.
constexpr double kShownChange = 0.005;
constexpr double kShownCases = 2.5;

const analysis::Threshold* Find(const std::string& rule) {
  for (const analysis::Threshold& threshold : analysis::Thresholds()) {
    if (rule == threshold.name) return &threshold;
  }
  return nullptr;
}

using Figures = std::vector<AblationFigure>;

void AddPredictions(const std::vector<PredictTrial>& trials, const std::string& of,
                    Figures* figures) {
  std::vector<double> errors;
  double covered = 0, width = 0;
  for (const PredictTrial& t : trials) {
    errors.push_back(std::abs(t.predicted / t.observed - 1));
    covered += t.low <= t.observed && t.observed <= t.high;
    width += (t.high - t.low) / 2 / t.predicted;
  }
  const double n = std::max<double>(1, static_cast<double>(trials.size()));
  figures->push_back({of + "median error", errors.empty() ? 0 : QuantileOf(errors, 0.5), 0});
  figures->push_back({of + "90th percentile", errors.empty() ? 0 : QuantileOf(errors, 0.9), 0});
  figures->push_back({of + "covered", covered / n, trials.size()});
  figures->push_back({of + "half width", width / n, 0});
}

Figures Try(uint64_t count, uint64_t base) {
  Figures figures;
  std::vector<PredictTrial> predictions, contended;
  for (uint64_t i = 0; i < count; ++i) {
    for (PredictTrial& trial : TryPredictions(base + kPredictSeed + i)) {
      predictions.push_back(std::move(trial));
    }
    for (PredictTrial& trial : TryContention(base + kLoadSeed + i))
      contended.push_back(std::move(trial));
  }
  AddPredictions(predictions, "", &figures);
  AddPredictions(contended, "busy cores: ", &figures);
  size_t clear = 0, right = 0, sure = 0, wrong = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const NameTrial trial = TryNaming(base + kNameSeed + i);
    if (trial.gap < kClearGain) continue;
    ++clear;
    right += trial.first_right;
    if (trial.probability < kSure || trial.verdict == "undecided") continue;
    ++sure;
    wrong += !trial.first_right;
  }
  const auto share = [](size_t part, size_t all) {
    return static_cast<double>(part) / static_cast<double>(std::max<size_t>(1, all));
  };
  figures.push_back({"named right", share(right, clear), clear});
  figures.push_back({"wrong when sure", share(wrong, sure), sure});
  size_t gains = 0, best = 0, held = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const WorthTrial trial = TryWorths(base + kWorthSeed + i);
    if (trial.observed < kClearGain) continue;
    ++gains;
    best += trial.first_right;
    held += trial.low <= trial.observed && trial.observed <= trial.high;
  }
  figures.push_back({"best limit found", share(best, gains), gains});
  figures.push_back({"its gain covered", share(held, gains), gains});
  return figures;
}

}  // namespace

Ablation Ablate(const std::string& rule, uint64_t count, uint64_t base) {
  if (rule.empty()) return {rule, Try(count, base)};
  const analysis::Threshold* threshold = Find(rule);
  if (threshold == nullptr || !threshold->can_be_off()) {
    throw Error(ExitCode::kUsage,
                fmt::format("'{}' is no rule that can be switched off", Printable(rule)), "",
                "analysis/thresholds.def lists them");
  }
  const analysis::RuleOff off(*threshold);
  return {rule, Try(count, base)};
}

std::string Lines(const Ablation& ablation) {
  std::string lines;
  for (const AblationFigure& figure : ablation.figures) {
    lines += fmt::format("ablate\t{}\t{}\t{:.9g}\t{}\n", ablation.rule, figure.what, figure.value,
                         figure.cases);
  }
  return lines;
}

bool Parse(const std::string& line, std::vector<Ablation>* ablations) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  if (fields.size() != 5 || fields[0] != "ablate") return false;
  auto at = std::find_if(ablations->begin(), ablations->end(),
                         [&](const Ablation& one) { return one.rule == fields[1]; });
  if (at == ablations->end()) at = ablations->insert(at, {fields[1], {}});
  at->figures.push_back({fields[2], std::strtod(fields[3].c_str(), nullptr),
                         std::strtoull(fields[4].c_str(), nullptr, 10)});
  return true;
}

std::string RenderAblations(const std::vector<Ablation>& ablations) {
  const auto whole = std::find_if(ablations.begin(), ablations.end(),
                                  [](const Ablation& one) { return one.rule.empty(); });
  if (whole == ablations.end()) return "";
  std::string page =
      "\n## What each rule is worth\n\nPipelines of the same kinds, on seeds that nothing was "
      "fitted to, "
      "with one rule of `analysis/thresholds.def` off at a time (`accuracy ablate RULE COUNT`). "
      "Changes in points; shown are those by half a point or more of an error or a width, and of "
      "a share where three cases or more turned. A rule without any changes nothing that these "
      "trials judge: it is for pipelines that they do not have, decides what people are told, or "
      "is of plans, which these trials do not make.\n\n| rule | value | off | source |";
  for (const AblationFigure& figure : whole->figures) {
    page += figure.cases > 0 ? fmt::format(" {} (of {}) |", figure.what, figure.cases)
                             : fmt::format(" {} |", figure.what);
  }
  page += "\n|---|---|---|---|";
  for (size_t i = 0; i < whole->figures.size(); ++i) page += "---|";
  page += "\n| all as they are | | | |";
  for (const AblationFigure& figure : whole->figures) {
    page += fmt::format(" {:.1f} % |", 100 * figure.value);
  }
  page += "\n";
  for (const analysis::Threshold& threshold : analysis::Thresholds()) {
    const auto one =
        std::find_if(ablations.begin(), ablations.end(),
                     [&](const Ablation& ablation) { return ablation.rule == threshold.name; });
    page += fmt::format(
        "| `{}`: {} | {:g} {} | {} | {} |", threshold.name, threshold.what, threshold.value,
        threshold.unit,
        threshold.can_be_off() ? fmt::format("{:g}", threshold.off) : std::string("never"),
        threshold.source);
    for (size_t i = 0; i < whole->figures.size(); ++i) {
      if (one == ablations.end() || i >= one->figures.size()) {
        page += i == 0 && threshold.can_be_off() ? " not tried |" : " |";
        continue;
      }
      const AblationFigure& before = whole->figures[i];
      const double change = one->figures[i].value - before.value;
      const double least =
          before.cases > 0 ? kShownCases / static_cast<double>(before.cases) : kShownChange;
      page += std::abs(change) < least ? " |" : fmt::format(" {:+.1f} |", 100 * change);
    }
    page += "\n";
  }
  return page;
}

}  // namespace headrace::validation
