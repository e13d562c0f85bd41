#include "tests/validation/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "analysis/tuning/tuner.h"
#include "base/error.h"
#include "tests/validation/exhaustive.h"
#include "tests/validation/generator.h"
#include "tests/validation/recorder.h"

namespace headrace::validation {
namespace {

constexpr double kWindowBatches = 30;  // a window, at the settings of the start
constexpr double kShortestWindow = 0.2;
constexpr int kMostWindows = 1500;
constexpr const char* kOurs = "headrace tune";

// What is resident at the end of a part: elements in queues and in threads that have one.
double ResidentBytes(const World& world, const analysis::RunView& part) {
  double bytes = world.base_bytes;
  if (part.windows.empty()) return bytes;
  const analysis::WindowRow& window = part.windows.back();
  for (size_t s = 0; s < world.stations.size(); ++s) {
    const Station& station = world.stations[s];
    double in_ns = 0;
    for (size_t i = 0; i < part.operators.size(); ++i) {
      if (part.operators[i].stage == station.name)
        in_ns += static_cast<double>(window.operators[i].wait_in_ns);
    }
    const double waiting = in_ns / static_cast<double>(window.duration_ns);
    const double level = window.queues[s].mean_occupancy_ratio.value_or(0) * station.queue;
    bytes += station.element_bytes * (std::max(0.0, station.threads - waiting) + level);
  }
  return bytes;
}

// A World that runs while its settings are turned. After each change it is played anew, empty, as
// far as it is looked at.
class SimulatedTarget : public analysis::TunedTarget {
 public:
  SimulatedTarget(const Planted& planted, uint64_t seed)
      : world_(planted.world), level_(planted.level), seed_(seed) {
    const double rate = std::max(0.5, RateOf(world_, 100, seed + 5));
    window_s_ = std::max(kShortestWindow, kWindowBatches / rate);
  }

  analysis::KnobValues knobs() const override {
    analysis::KnobValues knobs;
    for (const Station& station : world_.stations) {
      if (!station.sequential) knobs[station.name + ".parallelism"] = station.threads;
      knobs[station.name + ".queue"] = station.queue;
    }
    return knobs;
  }
  int64_t Apply(const std::vector<analysis::Change>& changes) override {
    for (const analysis::Change& change : changes) {
      for (Station& station : world_.stations) {
        if (change.knob == station.name + ".parallelism") station.threads = change.to;
        if (change.knob == station.name + ".queue") station.queue = change.to;
      }
    }
    ++turned_;
    over_memory_ = over_memory_ || !Fits(world_);
    Restart(0);
    return now_ns_;
  }
  std::optional<analysis::RunView> Observe(int64_t wait_ns) override {
    const double window_ns = window_s_ * 1e9;
    int left =
        std::max(1, static_cast<int>(std::ceil(static_cast<double>(wait_ns) / window_ns - 0.01)));
    while (left > 0) {
      if (windows_ >= most_windows) return std::nullopt;
      const int until = on_window ? std::min(left, 1) : left;
      Play(until);
      left -= until;
      if (on_window) on_window(this);
    }
    return run_;
  }

  const World& world() const { return world_; }
  int windows() const { return windows_; }
  int turned() const { return turned_; }
  bool over_memory() const { return over_memory_; }
  double window_s() const { return window_s_; }

  // The World changes and goes on; it does not become empty.
  void Become(const World& world) {
    world_ = world;
    constexpr int kWarm = 8;
    Restart(kWarm);
  }
  // Forgets that memory was exceeded, as it was by no decision.
  void Forgive() { over_memory_ = false; }

  int most_windows = kMostWindows;
  std::function<void(SimulatedTarget*)> on_window;  // after each

 private:
  void Restart(int skipped) {
    ++segment_;
    played_ = skipped;
  }
  void Play(int windows) {
    Recording how;
    how.level = level_;
    how.period_s = window_s_;
    how.seconds = window_s_ * (played_ + windows + 0.5);
    analysis::RunView part = Record(world_, how, seed_ + 7919 * segment_);
    part.windows.resize(
        std::min<size_t>(part.windows.size(), static_cast<size_t>(played_ + windows)));
    part.windows.erase(
        part.windows.begin(),
        part.windows.begin() + std::min<long>(played_, static_cast<long>(part.windows.size())));
    played_ += windows;
    windows_ += windows;
    if (run_.stages.empty()) {
      run_ = part;
      run_.windows.clear();
      for (analysis::StageRow& stage : run_.stages) stage.on_cpu_ns = 0;
      static_cast<analysis::StepCounters&>(run_.steps) = {};
    }
    for (analysis::WindowRow& window : part.windows) {
      window.start_ns = now_ns_;
      now_ns_ += window.duration_ns;
      for (size_t s = 0; s < run_.stages.size(); ++s) {
        *run_.stages[s].on_cpu_ns += window.stages[s].on_cpu_ns.value_or(0);
        cpu_ns_ += static_cast<double>(window.stages[s].on_cpu_ns.value_or(0));
      }
      run_.steps.steps_count += window.steps.steps_count;
      run_.steps.rows_count += window.steps.rows_count;
    }
    const double resident = ResidentBytes(world_, part);
    run_.windows.insert(run_.windows.end(), part.windows.begin(), part.windows.end());
    run_.run.duration_ns = run_.steps.wall_ns = now_ns_;
    for (analysis::HostRow& host : run_.hosts) {
      const auto set = [&](double value) {
        host.mean_value = host.maximum_value = host.minimum_value = host.last_value = value;
      };
      if (host.metric == "process_cpu_ns") set(cpu_ns_);
      if (host.metric == "host_busy_cores") set(cpu_ns_ / static_cast<double>(now_ns_));
      if (host.metric == "process_rss_bytes") set(resident);
    }
  }

  World world_;
  int level_;
  uint64_t seed_;
  double window_s_ = 1, cpu_ns_ = 0;
  analysis::RunView run_;
  int64_t now_ns_ = 0;
  uint64_t segment_ = 0;
  int played_ = 0, windows_ = 0, turned_ = 0;
  bool over_memory_ = false;
};

analysis::TunerOptions OptionsFor(const World& world) {
  analysis::TunerOptions options;
  options.memory_bytes = static_cast<uint64_t>(world.memory_bytes);
  options.max_threads = 16;
  for (const Station& station : world.stations) {
    options.max_threads = std::max(options.max_threads, station.threads);
  }
  return options;
}

class Heard : public analysis::DecisionSink {
 public:
  void Take(const analysis::Decision& decision) override {
    const auto at = static_cast<size_t>(decision.index);
    if (at >= decisions.size()) decisions.resize(at + 1);
    decisions[at] = decision;
    if (decision.action == analysis::TuneAction::kHold) held = true;
    if (decision.action == analysis::TuneAction::kReplan) replanned = true;
  }
  std::vector<analysis::Decision> decisions;
  bool held = false, replanned = false;
};

// ---- others
// ---------------------------------------------------------------------------------------

constexpr int kTrialWindows = 12;  // of each setting that they try
constexpr int kMostTries = 60;

struct Loop {
  World world;
  int level;
  uint64_t seed;
  double window_s;
  int tries = 0;
  bool over_memory = false;

  analysis::RunView Look(const Choice& choice) {
    Recording how;
    how.level = level;
    how.period_s = window_s;
    how.seconds = window_s * kTrialWindows;
    return Record(With(world, choice), how, seed + 104729 * static_cast<uint64_t>(tries));
  }
  double RateAt(const Choice& choice) {
    const analysis::RunView run = Look(choice);
    double steps = 0, ns = 0;
    for (size_t w = 2; w < run.windows.size(); ++w) {  // the first ones fill the queues
      steps += static_cast<double>(run.windows[w].steps.steps_count);
      ns += static_cast<double>(run.windows[w].duration_ns);
    }
    return ns > 0 ? steps / ns * 1e9 : 0;
  }
  void Set(const Choice& choice) {
    ++tries;
    over_memory = over_memory || !Fits(With(world, choice));
  }
};

// Looks, chooses by the strategy, sets it, and looks again until it chooses what there is.
Choice Repeat(const Strategy& strategy, Loop* loop) {
  Choice choice = SettingsOf(loop->world);
  Allowed allowed;
  allowed.cores = loop->world.cores;
  allowed.memory_bytes = loop->world.memory_bytes;
  for (const Station& station : loop->world.stations) {
    allowed.most_threads = std::max(allowed.most_threads, station.threads);
  }
  const Measure measure = [&](const Choice& trial) {
    loop->Set(trial);
    return Fits(With(loop->world, trial)) ? loop->RateAt(trial) : 0.0;
  };
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const Choice next = strategy.choose(loop->Look(choice), allowed, measure);
    if (next == choice) break;
    loop->Set(next);
    choice = next;
  }
  return choice;
}

// A thread more where it helps most, found by trying each stage, until none helps by 2 %: the
// measured hill climb. Every try is a decision.
Choice Climb(Loop* loop) {
  Choice choice = SettingsOf(loop->world);
  double rate = loop->RateAt(choice);
  while (loop->tries < kMostTries) {
    Choice best = choice;
    double most = rate * 1.02;
    for (size_t s = 0; s < choice.threads.size() && loop->tries < kMostTries; ++s) {
      if (loop->world.stations[s].sequential || choice.threads[s] >= 16) continue;
      Choice trial = choice;
      ++trial.threads[s];
      if (!Fits(With(loop->world, trial))) continue;  // it knows the size of an element
      loop->Set(trial);
      const double with = loop->RateAt(trial);
      if (with <= most) continue;
      most = with;
      best = trial;
    }
    if (best == choice) break;
    loop->Set(best);
    choice = best;
    rate = most;
  }
  return choice;
}

// ---- drift
// ----------------------------------------------------------------------------------------

World Drifted(const World& world, uint64_t seed, std::string* what) {
  World changed = world;
  const auto scale = [](Station* station, double factor) {
    for (Part& part : station->parts) {
      part.cpu_s *= factor;
      part.blocked_s *= factor;
      part.held_cpu_s *= factor;
      part.held_blocked_s *= factor;
    }
  };
  const size_t any = (seed / 4) % world.stations.size();
  switch (seed / 8 % 4) {
    case 0:
      *what = "rows twice the size";
      for (Station& station : changed.stations) {
        scale(&station, 2);
        station.element_bytes *= 2;
      }
      break;
    case 1:
      *what = "the source three times slower";
      for (Part& part : changed.stations[0].parts) {
        part.blocked_s = 3 * part.blocked_s + part.cpu_s;
        part.held_blocked_s *= 3;
      }
      break;
    case 2:
      *what = "one stage 2.5 times dearer";
      scale(&changed.stations[any], 2.5);
      break;
    default:
      *what = "one stage at half its cost";
      scale(&changed.stations[any], 0.5);
  }
  return changed;
}

World WithKnobs(World world, const analysis::KnobValues& knobs) {
  for (Station& station : world.stations) {
    if (knobs.contains(station.name + ".parallelism"))
      station.threads = knobs.at(station.name + ".parallelism");
    station.queue = knobs.at(station.name + ".queue");
  }
  return world;
}

}  // namespace

std::vector<TuneTrial> TryTuning(uint64_t seed) {
  const Planted planted = Generate(seed, true);
  const World& world = planted.world;
  Best best = FindBest(world, seed);
  const double before = LongRate(world, seed + kTruthSeed);
  std::vector<TuneTrial> trials;
  const auto add = [&](const std::string& who, const Choice& choice, int decisions, int windows,
                       bool over) {
    TuneTrial trial{seed, planted.kind, who,     before, 0,
                    0,    decisions,    windows, over,   TextOf(choice)};
    const World chosen = With(world, choice);
    if (Fits(chosen)) trial.rate = LongRate(chosen, seed + kTruthSeed);
    best.rate = std::max(best.rate, trial.rate);
    trials.push_back(trial);
  };
  SimulatedTarget target(planted, seed);
  analysis::Tuner tuner(OptionsFor(world), target.knobs());
  Heard heard;
  const analysis::TuneResult result = analysis::Tune(&tuner, &target, {&heard});
  add(kOurs, SettingsOf(WithKnobs(world, result.end)), result.applied, target.windows(),
      target.over_memory());
  const auto loop = [&] { return Loop{world, planted.level, seed, target.window_s()}; };
  for (const Strategy& strategy : {Unchanged(), HillClimb(), Plumber(false), Plumber(true)}) {
    Loop own = loop();
    const Choice choice = Repeat(strategy, &own);
    add(strategy.name, choice, own.tries, kTrialWindows * (own.tries + 1), own.over_memory);
  }
  Loop own = loop();
  const Choice choice = Climb(&own);
  add("hill climb, measured", choice, own.tries, kTrialWindows * (own.tries + 1), own.over_memory);
  for (TuneTrial& trial : trials) trial.best = best.rate;
  return trials;
}

namespace {

constexpr int kRecovers = 20;  // windows

struct DriftPlay {
  DriftTrial trial;
  std::vector<analysis::Decision> decisions;
  double window_s = 1;
  int drift_at = 0;  // window
  Best best;         // after the change
  World kept, after, last;
};

// Empty where the tuner never watched, or the play ended too soon.
std::optional<DriftPlay> PlayDrift(uint64_t seed) {
  constexpr int kQuiet = 40, kAfter = 200;
  Planted planted = Generate(seed, true);
  // Memory is not what is tried here: what fitted would fit no longer, by no decision.
  planted.world.memory_bytes = 64e9;
  DriftPlay play;
  DriftTrial& trial = play.trial;
  trial.seed = seed;
  trial.kind = planted.kind;
  SimulatedTarget target(planted, seed);
  target.most_windows = kMostWindows + kQuiet + kAfter;
  analysis::TunerOptions options = OptionsFor(planted.world);
  options.continuous = true;
  analysis::Tuner tuner(options, target.knobs());
  Heard heard;
  int quiet_from = -1, drift_at = -1, turned_at_hold = 0;
  std::optional<World> drifted, kept, after;
  target.on_window = [&](SimulatedTarget* t) {
    if (heard.held && quiet_from < 0) {
      quiet_from = t->windows();
      turned_at_hold = t->turned();
    }
    if (quiet_from >= 0 && drift_at < 0 && t->windows() >= quiet_from + kQuiet) {
      trial.quiet_turns = t->turned() - turned_at_hold;
      drifted = Drifted(t->world(), seed, &trial.change);
      kept = drifted;
      t->Become(*drifted);
      drift_at = t->windows();
    }
    if (drift_at >= 0 && !after && t->windows() >= drift_at + kRecovers) after = t->world();
    if (drift_at >= 0 && t->windows() >= drift_at + kAfter) t->most_windows = t->windows();
  };
  const analysis::TuneResult result = analysis::Tune(&tuner, &target, {&heard});
  if (!after) return std::nullopt;
  trial.over_memory = target.over_memory();
  const auto rate = [&](const World& world) { return LongRate(world, seed + kTruthSeed); };
  trial.kept = rate(*kept);
  trial.rate = rate(*after);
  // What is being compared at the end is undone.
  const World last = WithKnobs(target.world(), result.end);
  trial.last = rate(last);
  play.best = FindBest(*drifted, seed);
  trial.best = std::max({play.best.rate, trial.kept, trial.rate, trial.last});
  // After the plan had stopped changing once more.
  bool settled = false, replanned = false;
  std::map<std::string, std::pair<int, int>> turns;  // last direction, reversals
  for (const analysis::Decision& decision : heard.decisions) {
    replanned = replanned || decision.action == analysis::TuneAction::kReplan;
    if (replanned && decision.action == analysis::TuneAction::kHold) settled = true;
    for (const analysis::Change& change : decision.changes) {
      auto& [direction, reversals] = turns[change.knob];
      const int now = change.to > change.from ? 1 : -1;
      if (settled && direction != 0 && now != direction) ++reversals;
      direction = now;
      trial.reversals = std::max(trial.reversals, reversals);
    }
  }
  play.decisions = std::move(heard.decisions);
  play.window_s = target.window_s();
  play.drift_at = drift_at;
  play.kept = *kept;
  play.after = *after;
  play.last = last;
  return play;
}

// Every decision, with what it promised and what was seen.
std::string TextOf(const std::vector<analysis::Decision>& decisions, double window_s) {
  std::string text;
  for (const analysis::Decision& d : decisions) {
    text += fmt::format(
        "  {} window {:.0f} {} {}: {}\n", d.index, static_cast<double>(d.at_ns) * 1e-9 / window_s,
        analysis::TuneActionName(d.action), analysis::Describe(d.changes), d.reason);
    if (d.predicted) {
      text += fmt::format("    now {:.1f} predicted {:.1f} [{:.1f}, {:.1f}]", d.now.value_or(0),
                          *d.predicted, d.predicted_interval.low, d.predicted_interval.high);
    }
    if (d.effect) {
      text +=
          fmt::format(" observed {:.1f} {:+.1f} % [{:.1f}, {:.1f}] {} pairs {}",
                      d.observed.value_or(0), 100 * *d.effect, 100 * d.effect_interval.low,
                      100 * d.effect_interval.high, d.pairs, analysis::TuneVerdictName(d.verdict));
    }
    if (d.predicted || d.effect) text += "\n";
  }
  return text;
}

}  // namespace

std::vector<DriftTrial> TryDrift(uint64_t seed) {
  const std::optional<DriftPlay> play = PlayDrift(seed);
  if (!play) return {};
  return {play->trial};
}

std::string ShowDrift(uint64_t seed) {
  const std::optional<DriftPlay> play = PlayDrift(seed);
  if (!play) return fmt::format("seed {}: no drift was played\n", seed);
  const DriftTrial& t = play->trial;
  return fmt::format(
      "seed {}: {}, {} at window {}\n{}  {:.1f} with {}; after {} windows {:.1f} "
      "with {}; last {:.1f} with {}; best {:.1f} with {}\n",
      seed, t.kind, t.change, play->drift_at, TextOf(play->decisions, play->window_s), t.kept,
      TextOf(SettingsOf(play->kept)), kRecovers, t.rate, TextOf(SettingsOf(play->after)), t.last,
      TextOf(SettingsOf(play->last)), t.best, TextOf(play->best.choice));
}

std::string ShowTuning(uint64_t seed) {
  const Planted planted = Generate(seed, true);
  SimulatedTarget target(planted, seed);
  analysis::Tuner tuner(OptionsFor(planted.world), target.knobs());
  Heard heard;
  const analysis::TuneResult result = analysis::Tune(&tuner, &target, {&heard});
  std::string text = fmt::format("seed {}: {} from {}, {:.1f} batches/s, {} cores\n", seed,
                                 planted.kind, TextOf(SettingsOf(planted.world)),
                                 LongRate(planted.world, seed + kTruthSeed), planted.world.cores);
  text += TextOf(heard.decisions, target.window_s());
  const Best best = FindBest(planted.world, seed);
  return text +
         fmt::format("  ends with {} after {} windows; best {:.1f} with {}\n",
                     LongRate(target.world(), seed + kTruthSeed), target.windows(), best.rate,
                     TextOf(best.choice)) +
         "  " + result.why + "\n";
}

std::string Line(const TuneTrial& t) {
  return fmt::format("tune\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{:.6g}\t{}\t{}\t{}\t{}", t.seed, t.kind,
                     t.strategy, t.before, t.rate, t.best, t.decisions, t.windows,
                     int{t.over_memory}, t.chosen);
}

std::string Line(const DriftTrial& t) {
  return fmt::format("drift\t{}\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{:.6g}\t{:.6g}\t{}\t{}", t.seed,
                     t.kind, t.change, t.quiet_turns, t.kept, t.rate, t.last, t.best, t.reversals,
                     int{t.over_memory});
}

bool Parse(const std::string& line, Tunings* tunings) {
  std::vector<std::string> f;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) f.push_back(field);
  if (f.size() != 11) return false;
  const auto number = [&](size_t i) { return std::strtod(f[i].c_str(), nullptr); };
  const auto count = [&](size_t i) { return static_cast<int>(number(i)); };
  const uint64_t seed = std::strtoull(f[1].c_str(), nullptr, 10);
  if (f[0] == "tune") {
    tunings->tunes.push_back({seed, f[2], f[3], number(4), number(5), number(6), count(7), count(8),
                              f[9] == "1", f[10]});
  } else if (f[0] == "drift") {
    tunings->drifts.push_back({seed, f[2], f[3], count(4), number(5), number(6), number(7),
                               number(8), count(9), f[10] == "1"});
  } else {
    return false;
  }
  return true;
}

namespace {

double RegretOf(const TuneTrial& t) { return 1 - t.rate / t.best; }

std::vector<TuneTrial> Of(const std::vector<TuneTrial>& trials, const std::string& who) {
  std::vector<TuneTrial> own;
  for (const TuneTrial& trial : trials) {
    if (trial.strategy == who) own.push_back(trial);
  }
  return own;
}

std::vector<std::string> Names(const std::vector<TuneTrial>& trials) {
  std::vector<std::string> names;
  for (const TuneTrial& trial : trials) {
    if (std::find(names.begin(), names.end(), trial.strategy) == names.end())
      names.push_back(trial.strategy);
  }
  return names;
}

template <typename T, typename Use>
double MeanOf(const std::vector<T>& trials, Use use) {
  double sum = 0;
  for (const T& trial : trials) sum += use(trial);
  return trials.empty() ? 0 : sum / static_cast<double>(trials.size());
}

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

Gate Share(std::string what, double value, double limit, bool at_least, size_t trials) {
  return {"G12",          std::move(what), (at_least ? ">= " : "<= ") + Percent(limit),
          value,          limit,           at_least,
          Percent(value), trials};
}

std::string TuningTable(const std::vector<TuneTrial>& trials) {
  std::string text =
      "| strategy | mean regret | p90 regret | within 5 % of the best | decisions, mean | p90 | "
      "windows, mean | tried over memory |\n|---|---|---|---|---|---|---|---|\n";
  for (const std::string& name : Names(trials)) {
    const std::vector<TuneTrial> own = Of(trials, name);
    std::vector<double> regrets, decisions;
    for (const TuneTrial& trial : own) {
      regrets.push_back(RegretOf(trial));
      decisions.push_back(trial.decisions);
    }
    text += fmt::format(
        "| {} | {} | {} | {} | {:.1f} | {:.0f} | {:.0f} | {} |\n", name,
        Percent(MeanOf(own, RegretOf)), Percent(QuantileOf(regrets, 0.9)),
        Percent(MeanOf(own, [](const TuneTrial& t) { return RegretOf(t) <= 0.05; })),
        MeanOf(own, [](const TuneTrial& t) { return t.decisions; }), QuantileOf(decisions, 0.9),
        MeanOf(own, [](const TuneTrial& t) { return t.windows; }),
        Percent(MeanOf(own, [](const TuneTrial& t) { return t.over_memory; })));
  }
  return text;
}

}  // namespace

std::vector<Gate> Judge(const Tunings& tunings) {
  std::vector<Gate> gates;
  const std::vector<TuneTrial> ours = Of(tunings.tunes, kOurs);
  if (!ours.empty()) {
    const size_t n = ours.size();
    constexpr int kDecisions = 10;
    gates.push_back(Share(
        "tuned within 5 % of the best, in at most 10 decisions",
        MeanOf(ours,
               [](const TuneTrial& t) { return RegretOf(t) <= 0.05 && t.decisions <= kDecisions; }),
        0.9, true, n));
    gates.push_back(Share("tuned slower than it was (by over 3 %)",
                          MeanOf(ours, [](const TuneTrial& t) { return t.rate < 0.97 * t.before; }),
                          0, false, n));
    gates.push_back(Share("settings tried over memory",
                          MeanOf(ours, [](const TuneTrial& t) { return t.over_memory; }), 0, false,
                          n));
    // Those that tune: against each, no worse a result.
    for (const std::string& name : Names(tunings.tunes)) {
      if (name == kOurs || name == "as it is") continue;
      const std::vector<TuneTrial> own = Of(tunings.tunes, name);
      Gate gate = Share(fmt::format("mean regret of tuning, against {}", name),
                        MeanOf(ours, RegretOf), MeanOf(own, RegretOf), false, n);
      gate.id = "G13";
      gates.push_back(gate);
    }
  }
  if (!tunings.drifts.empty()) {
    const std::vector<DriftTrial>& drifts = tunings.drifts;
    const size_t n = drifts.size();
    gates.push_back(Share(
        "recovered (95 % of the best) 20 windows after a lasting change",
        MeanOf(drifts, [](const DriftTrial& t) { return t.rate >= 0.95 * t.best; }), 0.9, true, n));
    gates.push_back(Share(
        "within 5 % of the best 200 windows after a lasting change",
        MeanOf(drifts, [](const DriftTrial& t) { return t.last >= 0.95 * t.best; }), 0.9, true, n));
    gates.push_back(Share("knobs turned while nothing changed",
                          MeanOf(drifts, [](const DriftTrial& t) { return t.quiet_turns > 0; }),
                          0.05, false, n));
    gates.push_back(Share("a knob turned back more than once, converged",
                          MeanOf(drifts, [](const DriftTrial& t) { return t.reversals > 1; }), 0,
                          false, n));
  }
  return gates;
}

std::string RenderTuning(const Tunings& tunings) {
  if (tunings.tunes.empty() && tunings.drifts.empty()) return "";
  std::string text =
      "\n## Tuning a running pipeline\n\nThe pipelines of two and three stages again, tuned while "
      "they run (`headrace tune`, `tests/validation/tuning.cc`): windows of 30 batches, settings "
      "turned between them; after each change the simulated pipeline begins empty. A decision is "
      "settings that were tried, ways back included. Others look at 12 windows for each.\n\n"
      "| gate | what | must be | is | trials | |\n|---|---|---|---|---|---|\n";
  for (const Gate& gate : Judge(tunings)) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", gate.id, gate.what, gate.line,
                        gate.figure, gate.trials, gate.holds() ? "holds" : "**missed**");
  }
  return text + "\n" + TuningTable(tunings.tunes);
}

}  // namespace headrace::validation
