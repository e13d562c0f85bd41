#include "collectors/probe_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/registry.h"
#include "probes/bpf/offcpu.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kTickJitterNs = 20'000'000;  // the loop's ticks are not quite even
// A reading takes at most 1/kCostShare of the time between two readings.
constexpr int64_t kCostShare = 5000;
constexpr int64_t kYoungCostShare = 400;  // of those that are read more often in a young run
constexpr int64_t kCostPeriodNs = 1'000'000'000;
constexpr int64_t kMostPeriodNs = 10'000'000'000;  // however slow it is
constexpr int64_t kQuickNs = 5'000'000;            // CPU time for one reading

const char* StateName(probes::Availability::State state) {
  switch (state) {
    case probes::Availability::State::kOk:
      return "active";
    case probes::Availability::State::kDegraded:
      return "degraded";
    case probes::Availability::State::kUnavailable:
      break;
  }
  return "unavailable";
}

}  // namespace

void CheckProbeNames(const std::vector<std::string>& names, const std::string& option) {
  const auto& registry = Registry<probes::ProbeInfo>::Global();
  for (const std::string& name : names) {
    if (registry.Find(name)) continue;
    std::vector<std::string> known;
    for (const auto& [other, info] : registry.entries()) known.push_back(other);
    const std::string nearest = NearestName(name, known);
    throw Error(ExitCode::kUsage, fmt::format("no probe is called '{}'", Printable(name, 100)),
                option,
                nearest.empty() ? "headrace doctor names them" : "did you mean '" + nearest + "'?");
  }
}

struct ProbeRunner::Running {
  std::string name;
  const probes::ProbeInfo* info = nullptr;
  std::unique_ptr<probes::Probe> probe;
  bool active = false;
  bool read_last = false;  // in the run's last reading
  int64_t next_ns = 0, read_ns = 0, recent_ns = 0, reads = 0;
};

ProbeRunner::ProbeRunner(const probes::Host& host, const probes::Target& target,
                         MeasurementSink* sink)
    : host_(host), target_(target), sink_(sink) {}

ProbeRunner::~ProbeRunner() { Stop(); }

void ProbeRunner::SetStatus(Running* running, const std::string& state, const std::string& reason,
                            const std::string& fix) {
  changed_.push_back({running->name, state, Printable(reason, 500), Printable(fix, 500),
                      state == "active" ? "" : running->info->affects});
}

void ProbeRunner::Start(int level, bool deep, const std::vector<std::string>& without,
                        int64_t now_ns) {
  const auto& registered = Registry<probes::ProbeInfo>::Global().entries();
  for (const auto& [name, info] : registered) {
    auto running = std::make_unique<Running>();
    running->name = name;
    running->info = &info;
    running->next_ns = now_ns;
    running_.push_back(std::move(running));
  }
  std::stable_partition(running_.begin(), running_.end(),
                        [](const auto& running) { return !running->info->starts_last; });
  for (const auto& running : running_) {
    const std::string& name = running->name;
    const probes::ProbeInfo& info = *running->info;
    if (std::find(without.begin(), without.end(), name) != without.end()) {
      SetStatus(running.get(), "unavailable", fmt::format("left out by --without '{}'", name), "");
    } else if (info.level > level) {
      SetStatus(running.get(), "unavailable", fmt::format("left out by --level {}", level),
                fmt::format("--level {}", info.level));
    } else if (info.deep_only && !deep) {
      SetStatus(running.get(), "unavailable", "costs more than the others: only with --deep",
                "--deep");
    } else {
      probes::Availability answer;
      try {
        running->probe = info.make();
        answer = running->probe->Start(host_, target_);
      } catch (const std::exception& error) {
        answer = probes::Availability::Unavailable(error.what(), "");
      }
      running->active = answer.usable();
      SetStatus(running.get(), StateName(answer.state), answer.reason, answer.fix);
      if (!running->active) running->probe.reset();
      if (auto* source = dynamic_cast<probes::bpf::SplitSource*>(running->probe.get())) {
        split_source_ = source;
        split_owner_ = running.get();
      }
    }
  }
  // Those of the machine, of the lowest levels, are read at one instant.
  std::stable_sort(running_.begin(), running_.end(),
                   [](const auto& a, const auto& b) { return a->info->level < b->info->level; });
}

void ProbeRunner::ReadAtStart() {
  for (auto running = running_.rbegin(); running != running_.rend(); ++running) {
    if ((*running)->active) ReadOne(running->get(), 0);
  }
}

void ProbeRunner::Fail(Running* running, const std::string& why) {
  running->active = false;
  if (running == split_owner_) split_source_ = nullptr;
  try {
    running->probe->Stop();
  } catch (const std::exception&) {
    // Its descriptors are closed with it.
  }
  running->probe.reset();
  SetStatus(running, "degraded", "stopped while recording: " + why, "");
}

void ProbeRunner::ReadOne(Running* running, int64_t now_ns) {
  const int64_t begin = ThreadCpuNs();
  sink_->BeginRead(running->name, now_ns);
  std::string failure;
  try {
    running->probe->Read(*sink_);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  sink_->EndRead();
  const int64_t cost = ThreadCpuNs() - begin;
  running->recent_ns = running->reads == 0 ? cost : (3 * running->recent_ns + cost) / 4;
  running->read_ns += cost;
  running->reads++;
  const bool often = running->info->young_period_ns > 0 && now_ns < kYoungRunNs;
  const int64_t period_ns = often ? running->info->young_period_ns : running->info->period_ns;
  const int64_t cost_share = often ? kYoungCostShare : kCostShare;
  running->next_ns = now_ns +
                     std::max(period_ns, std::min(running->recent_ns * cost_share, kMostPeriodNs)) -
                     kTickJitterNs;
  if (!failure.empty()) Fail(running, failure);
}

void ProbeRunner::Read(int64_t now_ns, bool last) {
  for (const auto& running : running_) {
    const bool wanted = last ? running->recent_ns < kQuickNs : now_ns >= running->next_ns;
    if (!running->active || !wanted) continue;
    ReadOne(running.get(), now_ns);
    running->read_last = last;
  }
  if (!last && now_ns >= next_cost_ns_) ReadOwnCost(now_ns);
}

void ProbeRunner::ReadRest(int64_t now_ns) {
  for (const auto& running : running_) {
    if (running->active && !running->read_last) ReadOne(running.get(), now_ns);
  }
  ReadOwnCost(now_ns);
}

void ProbeRunner::ReadOwnCost(int64_t now_ns) {
  next_cost_ns_ = now_ns + kCostPeriodNs;
  sink_->BeginRead("collector", now_ns);
  for (const auto& running : running_) {
    if (running->reads == 0) continue;
    probes::Measurement m;
    m.labels.subject = running->name;
    m.course = false;
    m.metric = "probe_read_ns";
    m.value = static_cast<double>(running->read_ns);
    sink_->Add(m);
    m.metric = "probe_reads_count";
    m.value = static_cast<double>(running->reads);
    sink_->Add(m);
  }
  sink_->EndRead();
}

bool ProbeRunner::GiveUp(const std::string& name, int64_t now_ns, const std::string& why) {
  const auto running = std::find_if(running_.begin(), running_.end(), [&](const auto& each) {
    return each->name == name && each->active && each->info->level >= 2 &&
           each.get() != split_owner_;
  });
  if (running == running_.end()) return false;
  ReadOne(running->get(), now_ns);
  if ((*running)->active) Fail(running->get(), why);
  return true;
}

int ProbeRunner::StepDown(int64_t now_ns, const std::string& why) {
  const int level = level_reached();
  if (level < 2) return 0;
  for (const auto& running : running_) {
    if (!running->active || running->info->level != level) continue;
    ReadOne(running.get(), now_ns);
    if (running->active) Fail(running.get(), why);
  }
  return level_reached();
}

void ProbeRunner::Stop() {
  split_source_ = nullptr;
  for (const auto& running : running_) {
    if (!running->active) continue;
    try {
      running->probe->Stop();
    } catch (const std::exception&) {
      // Its descriptors are closed with it.
    }
    running->probe.reset();
    running->active = false;
  }
}

std::vector<ProbeStatus> ProbeRunner::TakeChanged() { return std::exchange(changed_, {}); }

int ProbeRunner::level_reached() const {
  int level = 0;
  for (const auto& running : running_) {
    if (running->active) level = std::max(level, running->info->level);
  }
  return level;
}

int64_t ProbeRunner::num_active() const {
  return std::count_if(running_.begin(), running_.end(), [](const auto& r) { return r->active; });
}

bool ProbeRunner::has_splits() const { return split_source_ != nullptr; }

const std::map<int64_t, KernelSplits>* ProbeRunner::ReadSplits() {
  if (!split_source_) return nullptr;
  const int64_t begin = ThreadCpuNs();
  for (const probes::bpf::OperatorSplit& split : split_source_->Splits()) {
    splits_[split.pid][split.operator_index] = {split.blocked_ns, split.runnable_ns};
  }
  split_owner_->read_ns += ThreadCpuNs() - begin;
  return &splits_;
}

}  // namespace headrace::collectors
