// accuracy: makes trials and the page of them.
//   accuracy predict|load|name|worth|choose|cache|solve|attribute FIRST LAST
//                                                  lines of the trials of those seeds, to stdout
//   accuracy parts DATABASE A,A,... B,B,...        what carries the change from runs A to runs B: a
//                                                  line of the whole change, then one a part
//   accuracy render FILE... > docs/accuracy.md     the page of the simulated trials in those files
//   accuracy render-real FILE...                   the page of pipelines that really ran
//     $HEADRACE_VALIDATED: when and of which commit, for both
//   accuracy gates [--strict] FILE...              the gates alone, as text; --strict: exit 1 where
//                                                  one is missed, or a family has no trial
//   accuracy rules                                the rules that can be off, a line each
//   accuracy ablate RULE|none|all COUNT [BASE]     what that rule of analysis/thresholds.def is
//                                                  worth, over COUNT pipelines of a kind, their
//                                                  seeds behind BASE
//   accuracy tune|drift FIRST LAST                 likewise, of the tuner
//   accuracy show-tune|show-drift FIRST LAST       every decision of the tuner, for people
//   accuracy show|show-small FIRST LAST            those pipelines, beside what analysis makes of
//                                                  them
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/comparison/attribution.h"
#include "analysis/run/read_run.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "tests/validation/ablation.h"
#include "tests/validation/bench.h"
#include "tests/validation/gates.h"
#include "tests/validation/tuning.h"

namespace headrace::validation {
namespace {

int Usage() {
  fmt::print(stderr,
             "usage: accuracy predict|load|name|worth|choose|cache|solve|attribute|tune|drift|show|"
             "show-small|show-tune|show-drift FIRST LAST\n"
             "       accuracy rules\n"
             "       accuracy ablate RULE|none|all COUNT [BASE]\n"
             "       accuracy parts DATABASE A,A,... B,B,...\n"
             "       accuracy render|gates [--strict] FILE...\n");
  return 2;
}

void Make(const std::string& part, uint64_t seed) {
  if (part == "predict") {
    for (const PredictTrial& trial : TryPredictions(seed)) fmt::print("{}\n", Line(trial));
  } else if (part == "load") {
    for (const PredictTrial& trial : TryContention(seed)) {
      fmt::print("load{}\n", Line(trial).substr(std::strlen("predict")));
    }
  } else if (part == "solve") {
    for (const SolveTrial& trial : TrySolving(seed)) fmt::print("{}\n", Line(trial));
  } else if (part == "show" || part == "show-small") {
    fmt::print("{}", Show(seed, part == "show-small"));
  } else if (part == "attribute") {
    for (const AttributeTrial& trial : TryAttributing(seed)) fmt::print("{}\n", Line(trial));
  } else if (part == "cache") {
    for (const CacheTrial& trial : TryCaching(seed)) fmt::print("{}\n", Line(trial));
  } else if (part == "tune") {
    for (const TuneTrial& trial : TryTuning(seed)) fmt::print("{}\n", Line(trial));
  } else if (part == "drift") {
    for (const DriftTrial& trial : TryDrift(seed)) fmt::print("{}\n", Line(trial));
  } else if (part == "show-tune") {
    fmt::print("{}", ShowTuning(seed));
  } else if (part == "show-drift") {
    fmt::print("{}", ShowDrift(seed));
  } else if (part == "name") {
    fmt::print("{}\n", Line(TryNaming(seed)));
  } else if (part == "worth") {
    fmt::print("{}\n", Line(TryWorths(seed)));
  } else {
    for (const ChooseTrial& trial : TryChoosing(seed)) fmt::print("{}\n", Line(trial));
  }
  std::fflush(stdout);
}

std::vector<analysis::RunView> Load(const std::string& database, const std::string& names) {
  std::vector<analysis::RunView> runs;
  std::istringstream stream(names);
  for (std::string name; std::getline(stream, name, ',');) {
    runs.push_back(analysis::LoadRun(database, name));
  }
  return runs;
}

// kind, name, stage, part of the logarithm of the rate, its interval, whether it is told, CPU and
// blocked seconds of a unit on side A and on side B (0: none).
int PrintParts(char** argv) {
  const analysis::Attribution found =
      analysis::Attribute(Load(argv[2], argv[3]), Load(argv[2], argv[4]));
  if (!found.unavailable.empty()) {
    fmt::print(stderr, "{}\n", found.unavailable);
    return 5;
  }
  fmt::print("change\t{:.9g}\n", found.log_ratio.value);
  for (const analysis::AttributionRow& row : found.rows) {
    const analysis::CostFigures a = row.a.value_or(analysis::CostFigures{});
    const analysis::CostFigures b = row.b.value_or(analysis::CostFigures{});
    fmt::print("{}\t{}\t{}\t{:.9g}\t{:.9g}\t{:.9g}\t{}\t{:.9g}\t{:.9g}\t{:.9g}\t{:.9g}\n",
               analysis::AttributedToName(row.to), row.name, row.stage, row.throughput.value,
               row.throughput.interval.low, row.throughput.interval.high, int{row.told}, a.cpu_s,
               b.cpu_s, a.blocked_s, b.blocked_s);
  }
  return 0;
}

int PrintAblations(const std::string& rule, uint64_t count, uint64_t base) {
  if (rule != "all") {
    fmt::print("{}", Lines(Ablate(rule == "none" ? "" : rule, count, base)));
    return 0;
  }
  fmt::print("{}", Lines(Ablate("", count, base)));
  for (const analysis::Threshold& threshold : analysis::Thresholds()) {
    if (!threshold.can_be_off()) continue;
    fmt::print("{}", Lines(Ablate(threshold.name, count, base)));
    std::fflush(stdout);
  }
  return 0;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "rules") == 0) {
    for (const analysis::Threshold& threshold : analysis::Thresholds()) {
      if (threshold.can_be_off()) fmt::print("{}\n", threshold.name);
    }
    return 0;
  }
  if (argc < 3) return Usage();
  const std::string part = argv[1];
  if (part == "parts") {
    if (argc != 5) return Usage();
    try {
      return PrintParts(argv);
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
      return static_cast<int>(error.code());
    }
  }
  if (part == "ablate") {
    const uint64_t count = argc == 4 || argc == 5 ? std::strtoull(argv[3], nullptr, 10) : 0;
    if (count == 0) return Usage();
    const uint64_t base = argc == 5 ? std::strtoull(argv[4], nullptr, 10) : 0;
    try {
      return PrintAblations(argv[2], count, base);
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
      return static_cast<int>(error.code());
    }
  }
  if (part == "render" || part == "render-real" || part == "gates") {
    std::vector<Ablation> ablations;
    Trials trials;
    Tunings tunings;
    const bool strict = std::strcmp(argv[2], "--strict") == 0;
    if (strict && part != "gates") return Usage();
    for (int i = strict ? 3 : 2; i < argc; ++i) {
      std::ifstream file(argv[i]);
      if (!file) {
        fmt::print(stderr, "{}: cannot be read\n", argv[i]);
        return 5;
      }
      for (std::string line; std::getline(file, line);) {
        if (!Parse(line, &trials) && !Parse(line, &tunings) && !Parse(line, &ablations))
          fmt::print(stderr, "{}: not a trial: {}\n", argv[i], line);
      }
    }
    const char* made = std::getenv("HEADRACE_VALIDATED");
    if (part == "render") {
      fmt::print("{}{}{}", RenderSimulated(trials, made ? made : ""), RenderTuning(tunings),
                 RenderAblations(ablations));
      return 0;
    }
    if (part == "render-real") {
      fmt::print("{}", RenderReal(trials, made ? made : ""));
      return 0;
    }
    bool missed = false;
    std::vector<Gate> gates = Judge(trials);
    for (const Gate& gate : Judge(tunings)) gates.push_back(gate);
    for (const Gate& gate : gates) {
      fmt::print("{:<4} {:<64} {:>10}  {:>9} {:>5}  {}\n", gate.id, gate.what, gate.line,
                 gate.figure, gate.trials, gate.holds() ? "holds" : "MISSED");
      missed = missed || !gate.holds();
    }
    for (const std::string& family : MissingFamilies(trials)) {
      fmt::print("-    {:<64} {:>10}  {:>9} {:>5}  MISSED\n", "all of " + family, "tried",
                 "not tried", 0);
      missed = true;
    }
    return strict && missed ? 1 : 0;
  }
  const bool known = part == "predict" || part == "load" || part == "name" || part == "worth" ||
                     part == "cache" || part == "choose" || part == "solve" || part == "show" ||
                     part == "show-small" || part == "attribute" || part == "tune" ||
                     part == "drift" || part == "show-tune" || part == "show-drift";
  if (argc != 4 || !known) return Usage();
  const uint64_t last = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t seed = std::strtoull(argv[2], nullptr, 10); seed <= last; ++seed) {
    try {
      Make(part, seed);
    } catch (const Error& error) {
      fmt::print(stderr, "seed {}: {}\n", seed, error.fact());
    }
  }
  return 0;
}

}  // namespace
}  // namespace headrace::validation

int main(int argc, char** argv) { return headrace::validation::Main(argc, argv); }
