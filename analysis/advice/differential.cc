#include "analysis/advice/differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/phases.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr size_t kDifferentialDraws = 400;
constexpr uint64_t kDifferentialSeed = 20261123;

using Window = SiblingRow::Window;

ReadState StateOf(const Count& device_bytes, const Count& fetched_bytes) {
  if (!device_bytes || !fetched_bytes) return ReadState::kUnknown;
  const double share = static_cast<double>(*device_bytes) / static_cast<double>(*fetched_bytes);
  return share <= kWarmFromDevice     ? ReadState::kWarm
         : share >= kMostlyFromDevice ? ReadState::kCold
                                      : ReadState::kMixed;
}

std::vector<Window> Steady(const std::vector<Window>& windows) {
  std::vector<double> rates;
  for (const Window& window : windows) {
    rates.push_back(window.duration_ns > 0 ? static_cast<double>(window.steps_count) * 1e9 /
                                                 static_cast<double>(window.duration_ns)
                                           : 0);
  }
  const auto [first, last] = SteadyRange(rates);
  return {windows.begin() + static_cast<long>(first), windows.begin() + static_cast<long>(last)};
}

double RateOf(const std::vector<Window>& windows, const std::vector<size_t>& chosen) {
  double steps = 0, seconds = 0;
  for (const size_t w : chosen) {
    steps += static_cast<double>(windows[w].steps_count);
    seconds += static_cast<double>(windows[w].duration_ns) * 1e-9;
  }
  return seconds > 0 ? steps / seconds : 0;
}

// A run with the rates of its bootstrap draws.
struct Measured {
  DifferentialRun run;
  std::vector<double> draws;
};

std::optional<Measured> Measure(int64_t run_id, bool own, const std::vector<Window>& windows,
                                uint64_t seed) {
  if (static_cast<double>(windows.size()) < kWindowsForDifferential) return std::nullopt;
  std::vector<size_t> all(windows.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  Measured measured;
  measured.run.run_id = run_id;
  measured.run.own = own;
  measured.run.rate = RateOf(windows, all);
  if (measured.run.rate <= 0) return std::nullopt;
  Random random(seed);
  const size_t block = windows.size() >= 12 ? 2 : 1;
  while (measured.draws.size() < kDifferentialDraws) {
    const double drawn = RateOf(windows, BlockResample(windows.size(), block, random));
    if (drawn <= 0) return std::nullopt;
    // Two runs of one pipeline minutes apart differ by more than their windows do.
    measured.draws.push_back(drawn * std::exp(kSameSettingsError * random.Normal()));
  }
  measured.run.rate_interval = IntervalAround(measured.run.rate, measured.draws, 0.9);
  return measured;
}

// (1/slow - 1/fast) of 1/of, with its interval; a share below 0 or above 1 is noise.
Share ShareOf(const Measured& slow, const Measured* fast, const Measured& of) {
  const auto share = [](double s, double f, double o) {
    return std::clamp(o / s - (f > 0 ? o / f : 0), 0.0, 1.0);
  };
  std::vector<double> draws;
  for (size_t i = 0; i < kDifferentialDraws; ++i) {
    // A run's own error counts once where it is in two places.
    draws.push_back(share(slow.draws[i], fast != nullptr ? fast->draws[i] : 0, of.draws[i]));
  }
  const double estimate = share(slow.run.rate, fast != nullptr ? fast->run.rate : 0, of.run.rate);
  return {estimate, IntervalAround(estimate, draws, 0.9)};
}

// Whether a run from memory was slower than one from the device by more than two runs alike are.
bool Contrary(const Measured& warm, const Measured& cold) {
  std::vector<double> ratios;
  for (size_t i = 0; i < kDifferentialDraws; ++i) ratios.push_back(cold.draws[i] / warm.draws[i]);
  return CentralInterval(ratios, 0.9).low > 1;
}

// The command that would make a run that differs from this one in `option` alone.
std::string RunCommand(const RunView& run, const std::string& option) {
  std::string text = fmt::format("{} run {}{}{}", run.program, PipelineWord(run.run), option,
                                 RecordedOptions(run.run));
  if (run.run.accounting_level == 1) text += " --level 1";
  if (run.run.deep != 0) text += " --deep";
  return text + " --duration 10s" + run.database_option;
}

std::string Named(const DifferentialRun& run) {
  return run.own ? "this run" : fmt::format("run {}", run.run_id);
}

// Whether the row works on bytes from the storage: a device, or the stage that fetches.
bool IsStorage(const PipelineModel& model, const Limit& limit) {
  const std::string resource = limit.kind->ResourceClass(model, limit);
  if (resource == "storage" || resource == "nic_ingress") return true;
  const std::optional<size_t> stage = limit.kind->StageOf(limit);
  if (!stage) return false;
  for (const size_t i : model.stages()[*stage].operators) {
    const std::string& kind = model.operators()[i].kind;
    if (kind == "fetch" || kind == "read" || kind == "io") return true;
  }
  return false;
}

bool Contradicts(const PipelineModel& model, const Differential& found, const Limit& limit) {
  const bool consumer = limit.Is(kConsumerLimit) || limit.Is(kAcceleratorLimit);
  switch (*found.opinion) {
    case InputOpinion::kConsumer:
      return !consumer;
    case InputOpinion::kFetching:
      return !IsStorage(model, limit);
    case InputOpinion::kPreparing:
      // What a warm run spends on fetching is a copy from memory: work like any other.
      return consumer || (found.state == ReadState::kCold && IsStorage(model, limit));
  }
  return false;
}

// Commands that would be refused, or make no run of the kind that is missing, are left out.
void AddMissing(const RunView& run, Differential* found) {
  if (run.run.pipeline_path.empty() || !run.run.settings_text) return;
  const bool direct = SettingOf(run.run, "source.direct") == "true";
  const std::string to = SettingOf(run.run, "delivery.to").value_or("");
  const std::string& work = run.added_work;
  const bool writes = !work.empty() && work != "--checksum";
  const auto add = [&](const std::string& what, const std::string& none,
                       const std::string& option) {
    found->missing.push_back(
        none.empty()
            ? Differential::Missing{what, RunCommand(run, option)}
            : Differential::Missing{what + " (none can be made: " + none + ")", std::string()});
  };
  if (!found->ceiling) {
    add("a run without input, for the ceiling",
        !to.empty() && to != "inline" ? "the batches are consumed in another process"
        : !work.empty()               ? "this one was made with " + work + ", which needs rows"
                                      : "",
        " --ceiling");
  }
  if (found->state == ReadState::kNone) return;
  const std::string option = work.empty() ? "" : " " + work;
  const std::string file =
      writes ? "its " + work + " would need other files, which a command here cannot name" : "";
  constexpr const char* kDirect = "reads go past the page cache, source.direct";
  if (!found->warm) {
    add("a run with the table in memory, for the prep stall", direct ? kDirect : file,
        option + (SettingOf(run.run, "source.cold") == "true" ? " --set source.cold=false" : ""));
  }
  if (!found->cold) {
    add("a run that reads from the device, for the fetch stall", direct ? kDirect : file,
        option + " --cold");
  }
}

std::string Percent(const Share& share) {
  return fmt::format("{} [{:.0f}, {:.0f}]", FormatPercent(share.value), 100 * share.interval.low,
                     100 * share.interval.high);
}

// What the shares say of this run.
void Conclude(Differential* found) {
  const bool bound = found->input_bound && found->input_bound->interval.low > kSmallStall;
  if (found->input_bound && found->input_bound->interval.high < kSmallStall) {
    found->opinion = InputOpinion::kConsumer;
    found->because = fmt::format("without input the trainer is barely faster: {} of its time",
                                 Percent(*found->input_bound));
  } else if (found->input_bound && !bound) {
    found->because = fmt::format("{} of the time goes into input: about as much as runs differ by",
                                 Percent(*found->input_bound));
  } else if (found->state == ReadState::kCold && found->fetch && found->prep) {
    if (found->fetch->interval.low > found->prep->interval.high) {
      found->opinion = InputOpinion::kFetching;
    } else if (found->prep->interval.low > found->fetch->interval.high) {
      found->opinion = InputOpinion::kPreparing;
    }
    found->because = fmt::format("fetching takes {} of a batch's time, preparing {}",
                                 Percent(*found->fetch), Percent(*found->prep));
  } else if (bound && (found->state == ReadState::kWarm || found->state == ReadState::kNone)) {
    found->opinion = InputOpinion::kPreparing;
    found->because =
        fmt::format("{} of the time goes into input, and {}", Percent(*found->input_bound),
                    found->state == ReadState::kWarm ? "the table lay in memory"
                                                     : "there is no table to fetch");
  } else if (found->input_bound) {
    found->because = fmt::format(
        "{} of the time goes into input; into which part of it is unknown without {}",
        Percent(*found->input_bound),
        found->state == ReadState::kCold ? "a warm run" : "knowing where the bytes came from");
  } else if (found->fetch) {
    found->because = fmt::format(
        "fetching takes {} of a batch's time from the device; without a "
        "ceiling nothing tells what input takes in all",
        Percent(*found->fetch));
  }
}

}  // namespace

const char* ReadStateName(ReadState state) {
  constexpr const char* kNames[] = {"unknown", "no table", "warm", "mixed", "cold"};
  return kNames[static_cast<int>(state)];
}

const char* InputOpinionName(InputOpinion opinion) {
  constexpr const char* kNames[] = {"the trainer", "preparing", "fetching"};
  return kNames[static_cast<int>(opinion)];
}

ReadState ReadStateOf(const RunView& run) {
  const bool reads = std::any_of(run.operators.begin(), run.operators.end(),
                                 [](const OperatorRow& op) { return op.kind == "io"; });
  // `headrace run` says of tables that no page cache here holds why it does not know.
  if (!reads || (!run.run.resident_ratio && run.run.table_text.empty() && run.run.settings_text)) {
    return ReadState::kNone;
  }
  return StateOf(run.device_bytes, run.fetched_bytes);
}

namespace {

struct MeasuredRuns {
  std::optional<Measured> self, ceiling, warm, cold;
};

// This run and its siblings. `state`: of this run's reads.
MeasuredRuns MeasureSiblings(const PipelineModel& model, ReadState state) {
  const RunView& run = model.run();
  std::vector<Window> own;
  for (const size_t w : model.steady_windows()) {
    own.push_back({run.windows[w].duration_ns, run.windows[w].steps.steps_count});
  }
  MeasuredRuns runs;
  runs.self = Measure(run.run.run_id, true, own, kDifferentialSeed);
  if (runs.self && state == ReadState::kCold) runs.cold = runs.self;
  // Where there is no table there is no cold run, and this one stands in the warm one's place.
  if (runs.self && (state == ReadState::kWarm || state == ReadState::kNone)) runs.warm = runs.self;
  for (const SiblingRow& sibling : run.siblings) {
    const ReadState read = StateOf(sibling.device_bytes, sibling.fetched_bytes);
    std::optional<Measured>* place = nullptr;
    if (sibling.kind == "ceiling") {
      place = &runs.ceiling;
    } else if (sibling.kind == "pipeline" && state != ReadState::kNone) {
      if (read == ReadState::kWarm) place = &runs.warm;
      if (read == ReadState::kCold) place = &runs.cold;
    }
    if (place == nullptr || place->has_value()) continue;
    *place = Measure(sibling.run_id, false, Steady(sibling.windows),
                     kDifferentialSeed + static_cast<uint64_t>(sibling.run_id));
  }
  return runs;
}

}  // namespace

Differential CompareSiblings(const PipelineModel& model, const Bottleneck& bottleneck) {
  const RunView& run = model.run();
  Differential found;
  found.state = ReadStateOf(run);
  if (found.state != ReadState::kNone && run.device_bytes && run.fetched_bytes) {
    found.device_ratio =
        static_cast<double>(*run.device_bytes) / static_cast<double>(*run.fetched_bytes);
  }
  // A cold first pass is a phase of its own: the steady one is what statements are of.
  if (found.state == ReadState::kMixed && model.phases().warm_device_ratio) {
    found.state = ReadState::kWarm;
    found.device_ratio = model.phases().warm_device_ratio;
  }
  const auto [self, ceiling, warm, cold] = MeasureSiblings(model, found.state);
  if (ceiling) found.ceiling = ceiling->run;
  if (warm) found.warm = warm->run;
  if (cold) found.cold = cold->run;
  AddMissing(run, &found);
  if (warm && cold && Contrary(*warm, *cold)) {
    found.because = fmt::format(
        "{}, from memory, was slower than {}, from the device: they differ in more than where "
        "bytes came from; record both again",
        Named(warm->run), Named(cold->run));
    return found;
  }
  const Measured* const slowest = cold ? &*cold : warm ? &*warm : nullptr;
  if (slowest != nullptr && ceiling) found.consumer = ShareOf(*ceiling, nullptr, *slowest);
  if (warm && ceiling) found.prep = ShareOf(*warm, &*ceiling, *slowest);
  if (warm && cold) found.fetch = ShareOf(*cold, &*warm, *slowest);
  if (self && ceiling) found.input_bound = ShareOf(*self, &*ceiling, *self);
  const double compute_s = model.demands().consumer_s;
  if (self && ceiling && compute_s * self->run.rate > kSmallStall) {
    found.step_slowdown = compute_s * ceiling->run.rate;
  }
  Conclude(&found);
  if (!found.opinion || bottleneck.findings.empty()) return found;
  if (bottleneck.verdict == Verdict::kUndecided) return found;
  const Limit& blamed = bottleneck.findings[0].limit;
  if (Contradicts(model, found, blamed)) {
    found.disagreement =
        fmt::format("runs with and without input point at {} ({}), the demands at {}",
                    InputOpinionName(*found.opinion), found.because, Describe(blamed));
    found.against_witness =
        bottleneck.witness.has_value() && Contradicts(model, found, *bottleneck.witness);
  }
  return found;
}

}  // namespace headrace::analysis
