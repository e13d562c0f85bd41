#include "probes/perf/operator_counters.h"

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/registry.h"
#include "probes/perf/counters_probe.h"
#include "probes/process.h"

namespace headrace::probes::perf {
namespace {

// As in counters.bpf.c.
constexpr uint32_t kStride = 32, kBase = 2, kSet = 5, kSets = 6;
constexpr int64_t kEndedNs = 1'000'000'000;

using bpf::Record;

double Count(uint64_t count) { return static_cast<double>(count); }

// Of an entry of the kernel's maps: the threads that it is of, and the entry's own key.
std::pair<int64_t, std::string> ThreadsOf(const Record& key) {
  return {static_cast<int64_t>(key.Number("tgid")),
          ThreadGroupLabel(key.Text("comm"), key.Number("first") != 0)};
}
std::tuple<int64_t, std::string, uint64_t, uint64_t, uint64_t, uint64_t> KeyOf(const Record& key,
                                                                               uint64_t set,
                                                                               uint64_t word,
                                                                               uint64_t event) {
  return {static_cast<int64_t>(key.Number("tgid")),
          key.Text("comm"),
          key.Number("first"),
          set,
          word,
          event};
}

}  // namespace

void Shares::Share(const std::function<void(uint32_t, double)>& give) {
  double all = 0;
  for (const auto& [word, events] : samples_) all += events;
  if (waiting_ <= 0 || all <= 0) return;
  for (const auto& [word, events] : samples_) give(word, waiting_ * events / all);
  waiting_ = 0;
  samples_.clear();
}

OperatorCounters::OperatorCounters(Options options) : options_(std::move(options)) {}

Availability OperatorCounters::Check(const Host& host) {
  const CounterSet set = CounterSet::OfThisMachine(host);
  const Availability counted = Summarise(PlanOfThisMachine(host, set), set);
  if (!counted.usable()) return counted;
  OperatorCounters probe;
  const Target nobody;
  return probe.Start(host, nobody);
}

Availability OperatorCounters::Start(const Host& host, const Target& target) {
  target_ = &target;
  if (!options_.set) options_.set = CounterSet::OfThisMachine(host);
  plan_ = options_.plan ? *options_.plan : PlanOfThisMachine(host, *options_.set);
  Availability found = Summarise(plan_, *options_.set);
  if (!found.usable()) return found;
  if (plan_.groups[0].codes.size() != kBase) {
    return Availability::Unavailable("cycles and instructions do not count together here", "");
  }
  // What the program has no place for is left out, whole groups at a time; and what the limit of
  // open files has no room for: a counter of each CPU, and its attachment.
  const auto num_cpus = static_cast<uint32_t>(std::max(1l, sysconf(_SC_NPROCESSORS_CONF)));
  const size_t room = AffordableHandles() / (2 * num_cpus);
  std::erase_if(plan_.groups, [](const EventPlan::Group& g) { return g.codes.size() > kSet; });
  size_t num_events = 0, fitting = 0;
  for (const EventPlan::Group& group : plan_.groups) {
    num_events += group.codes.size();
    if (fitting < 1 + kSets && num_events <= room) ++fitting;
  }
  if (fitting == 0) {
    return Availability::Unavailable(
        fmt::format("the limit of open files leaves no room for the counters of {} CPUs", num_cpus),
        "a higher limit of open files (ulimit -n, LimitNOFILE=)");
  }
  if (fitting < plan_.groups.size()) {
    plan_.groups.resize(fitting);
    found = Availability::Degraded(found.reason + "; not all groups: the limit of open files",
                                   "a higher limit of open files (ulimit -n, LimitNOFILE=)");
  }
  program_ = std::make_unique<bpf::Program>("counters");
  program_->SetMaxEntries("events", num_cpus * kStride);
  uint64_t sizes = 0;
  for (size_t set = 0; set + 1 < plan_.groups.size(); ++set) {
    sizes |= static_cast<uint64_t>(plan_.groups[set + 1].codes.size()) << (8 * set);
  }
  program_->SetConstant("set_sizes", sizes);
  Availability loaded = program_->Load(host, target);
  if (loaded.usable()) loaded = OpenCpus();
  if (!loaded.usable()) {
    Stop();
    return loaded;
  }
  active_ = 0;
  Rotate();
  OperatorCountersActive() = true;
  return found;
}

int OperatorCounters::OpenEvent(int cpu, size_t group, size_t event, int leader,
                                Availability* failure) {
  OpenRequest request;
  request.code = plan_.groups[group].codes[event];
  request.tid = -1;
  request.cpu = cpu;
  request.leader = leader;
  request.pinned = group == 0;
  request.sample_period = group == 0 ? options_.base_period : options_.set_period;
  if (request.sample_period == 0) {
    request.sample_frequency = group == 0 ? options_.base_frequency : options_.set_frequency;
  }
  const int fd = kernel_.Open(request);
  if (fd < 0) return fd;
  handles_.push_back(fd);
  const uint32_t place =
      static_cast<uint32_t>(cpu) * kStride +
      static_cast<uint32_t>(group == 0 ? event : kBase + (group - 1) * kSet + event);
  if (bpf_map_update_elem(events_fd(), &place, &fd, BPF_ANY) != 0) {
    *failure = Availability::Unavailable(
        fmt::format("bpf(BPF_MAP_UPDATE_ELEM) of a counter: {}", std::strerror(errno)),
        "a kernel of 5.8 or later");
    return fd;
  }
  LIBBPF_OPTS(bpf_link_create_opts, attach,
              .perf_event = {.bpf_cookie = group == 0 ? event : kBase + event});
  const int link =
      bpf_link_create(program_->program_fd("counter_overflow"), fd, BPF_PERF_EVENT, &attach);
  if (link < 0) {
    *failure = Availability::Unavailable(
        fmt::format("bpf(BPF_LINK_CREATE) of {}: {}", plan_.groups[group].names[event],
                    std::strerror(errno)),
        "a kernel of 5.15 or later, and a PMU with overflow interrupts");
    return fd;
  }
  handles_.push_back(link);
  return fd;
}

Availability OperatorCounters::OpenCpus() {
  const long num_cpus = std::max(1l, sysconf(_SC_NPROCESSORS_CONF));
  set_leaders_.assign(plan_.groups.size() - 1, {});
  size_t cpus_open = 0;
  int last = ENODEV;
  const auto refused = [&](int error, const std::string& what) {
    const CounterAvailability why =
        ExplainOpen(error, what, Role::kAlone, true, LookAround(Host()));
    return Availability::Unavailable(why.reason,
                                     error == EACCES || error == EPERM
                                         ? "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=0"
                                         : why.fix);
  };
  for (int cpu = 0; cpu < num_cpus; ++cpu) {
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      int leader = -1;
      for (size_t e = 0; e < plan_.groups[g].codes.size(); ++e) {
        Availability failure = Availability::Ok();
        const int fd = OpenEvent(cpu, g, e, leader, &failure);
        if (fd < 0) {
          last = -fd;
          if (g == 0 && e == 0 && (fd == -ENODEV || fd == -ENXIO)) break;  // the CPU is off
          return refused(-fd, fmt::format("{}, CPU {}", plan_.groups[g].names[e], cpu));
        }
        if (!failure.usable()) return failure;
        if (leader < 0) leader = fd;
      }
      if (leader < 0) break;
      if (g > 0) {
        set_leaders_[g - 1].push_back(leader);
        continue;
      }
      if (const int error = kernel_.Enable(leader); error != 0) {
        return refused(-error, fmt::format("switching on, CPU {}", cpu));
      }
      ++cpus_open;
    }
  }
  return cpus_open > 0 ? Availability::Ok() : refused(last, plan_.groups[0].names[0]);
}

// In the order that lets no count go to another set: off, turn, on.
void OperatorCounters::Rotate() {
  const size_t num_sets = set_leaders_.size();
  if (num_sets == 0 || (num_sets == 1 && active_ == 1)) return;
  if (active_ != 0) {
    for (const int leader : set_leaders_[active_ - 1]) kernel_.Disable(leader);
  }
  active_ = active_ % num_sets + 1;
  const uint32_t zero = 0;
  const auto value = static_cast<uint32_t>(active_);
  bpf_map_update_elem(program_->map_fd("active_set"), &zero, &value, BPF_ANY);
  for (const int leader : set_leaders_[active_ - 1]) kernel_.Enable(leader);
}

OperatorCounters::Entry OperatorCounters::Grown(std::map<EntryKey, Entry>* last,
                                                const EntryKey& key, Entry now) {
  Entry& before = (*last)[key];
  before.resize(now.size(), 0);
  Entry delta(now.size());
  bool any = false;
  for (size_t i = 0; i < now.size(); ++i) {
    delta[i] = now[i] >= before[i] ? now[i] - before[i] : now[i];  // made anew
    any |= delta[i] != 0;
  }
  before = std::move(now);
  return any ? delta : Entry();
}

OperatorCounters::Sums& OperatorCounters::SumsOf(const Group& group) {
  const auto [it, fresh] = sums_.try_emplace(group);
  Sums& sums = it->second;
  if (!fresh) return sums;
  sums.totals = MakeTotals(plan_);
  const size_t num_groups = plan_.groups.size();
  sums.shared.resize(num_groups);
  sums.shared_enabled.resize(num_groups);
  sums.shared_running.resize(num_groups);
  sums.counts.resize(num_groups);
  sums.turn.resize(num_groups);
  sums.turn_base.resize(num_groups);
  sums.enabled.resize(num_groups);
  sums.running.resize(num_groups);
  for (size_t g = 0; g < num_groups; ++g) {
    const size_t num_events = plan_.groups[g].codes.size();
    sums.pending.emplace_back(num_events, g == 0 ? 0 : kBase);
    sums.shared[g].resize(num_events);
    sums.counts[g].resize(num_events);
    sums.turn[g].resize(num_events);
    sums.turn_base[g].resize(g == 0 ? 0 : kBase);
  }
  return sums;
}

OperatorCounters::OwnerSums& OperatorCounters::OwnerOf(const Group& group, uint32_t word) {
  const auto [it, fresh] = owners_.try_emplace({group.first, word, word != 0 ? "" : group.second});
  if (fresh) it->second.totals = MakeTotals(plan_);
  return it->second;
}

bool OperatorCounters::HasAccounts(int64_t pid) const {
  return std::any_of(target_->accounts.begin(), target_->accounts.end(),
                     [&](const AccountedProcess& process) { return process.pid == pid; });
}

void OperatorCounters::ReadSamples() {
  program_->ForEach("samples", [&](const Record& key, const Record& value) {
    const uint64_t set = key.Number("set"), event = key.Number("event");
    const auto word = static_cast<uint32_t>(key.Number("word"));
    const Entry grown = Grown(&last_samples_, KeyOf(key, set, word, event),
                              {value.Number("events_count"), value.Number("samples_count")});
    if (grown.empty()) return;
    const Group group = ThreadsOf(key);
    Sums& sums = SumsOf(group);
    const double events = Count(grown[0]);
    if (event == 0) OwnerOf(group, word).samples += Count(grown[1]);
    if (event < kBase) {
      sums.counts[0][event].Sample(word, events);
      if (set > 0 && set < plan_.groups.size()) sums.turn_base[set][event].Sample(word, events);
      if (event != 0) return;
      for (size_t g = 0; g < plan_.groups.size(); ++g) {
        sums.enabled[g].Sample(word, events);
        sums.running[g].Sample(word, events);
      }
    } else if (set > 0 && set < plan_.groups.size() &&
               event - kBase < plan_.groups[set].codes.size()) {
      sums.counts[set][event - kBase].Sample(word, events);
      sums.turn[set][event - kBase].Sample(word, events);
    }
  });
}

void OperatorCounters::ReadKernel() {
  // Samples first: what they are of is counted by the time the counts are read.
  ReadSamples();
  program_->ForEach("base_counters", [&](const Record& key, const Record& value) {
    const Entry grown = Grown(&last_base_, KeyOf(key, 0, 0, 0),
                              {value.Number("first_count"), value.Number("second_count"),
                               value.Number("enabled_ns"), value.Number("running_ns")});
    if (grown.empty()) return;
    Sums& sums = SumsOf(ThreadsOf(key));
    const double counts[] = {Count(grown[0]), Count(grown[1])};
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      sums.totals[g].enabled_ns += Count(grown[2]);
      sums.pending[g].Elapsed(Count(grown[2]));
    }
    sums.pending[0].Counted(counts, Count(grown[3]), {}, Count(grown[3]));
  });
  program_->ForEach("set_counters", [&](const Record& key, const Record& value) {
    const uint64_t set = key.Number("set");
    if (set + 1 >= plan_.groups.size()) return;
    const Entry grown =
        Grown(&last_sets_, KeyOf(key, set, 0, 0),
              {value.Number("count_0"), value.Number("count_1"), value.Number("count_2"),
               value.Number("count_3"), value.Number("count_4"), value.Number("running_ns"),
               value.Number("first_count"), value.Number("second_count"),
               value.Number("base_running_ns")});
    if (grown.empty()) return;
    std::vector<double> counts(grown.begin(), grown.begin() + kSet);
    counts.resize(plan_.groups[set + 1].codes.size());
    const double base[] = {Count(grown[6]), Count(grown[7])};
    SumsOf(ThreadsOf(key)).pending[set + 1].Counted(counts, Count(grown[5]), base, Count(grown[8]));
  });
}

// A group's new counts to its operators, as the samples of each counter fell.
void OperatorCounters::ShareOut(const Group& group, Sums* sums) {
  const bool has_operators = HasAccounts(group.first);
  // Without operators there is nothing to be sampled.
  const auto share = [&](Shares* shares, const std::function<void(Totals*, double)>& give) {
    if (!has_operators && shares->waiting() > 0) shares->Sample(0, 1);
    shares->Share([&](uint32_t word, double part) { give(&OwnerOf(group, word).totals, part); });
  };
  for (size_t g = 0; g < plan_.groups.size(); ++g) {
    GroupTotals& totals = sums->totals[g];
    sums->enabled[g].Add(totals.enabled_ns -
                         std::exchange(sums->shared_enabled[g], totals.enabled_ns));
    sums->running[g].Add(totals.running_ns -
                         std::exchange(sums->shared_running[g], totals.running_ns));
    share(&sums->enabled[g], [&](Totals* to, double part) { (*to)[g].enabled_ns += part; });
    share(&sums->running[g], [&](Totals* to, double part) { (*to)[g].running_ns += part; });
    for (size_t e = 0; e < totals.scaled.size(); ++e) {
      sums->counts[g][e].Add(totals.scaled[e] -
                             std::exchange(sums->shared[g][e], totals.scaled[e]));
      share(&sums->counts[g][e], [&](Totals* to, double part) { (*to)[g].scaled[e] += part; });
      if (totals.fresh) sums->turn[g][e].Add(totals.turn[e]);
      if (g == 0) {  // the base is its own turn: the same samples
        continue;
      }
      share(&sums->turn[g][e], [&](Totals* to, double part) {
        (*to)[g].turn[e] += part;
        (*to)[g].fresh = true;
      });
    }
    for (size_t b = 0; b < totals.turn_base.size(); ++b) {
      if (totals.fresh) sums->turn_base[g][b].Add(totals.turn_base[b]);
      share(&sums->turn_base[g][b],
            [&](Totals* to, double part) { (*to)[g].turn_base[b] += part; });
    }
  }
}

void OperatorCounters::ForgetEnded() {
  const int64_t now = MonotonicNs();
  if (now - looked_ns_ < kEndedNs) return;
  looked_ns_ = now;
  std::set<int64_t> gone, over;
  for (const auto& [key, entry] : last_base_) {
    const int64_t pid = std::get<0>(key);
    if (kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    (gone_before_.count(pid) != 0 ? over : gone).insert(pid);
  }
  gone_before_ = std::move(gone);
  if (over.empty()) return;
  const auto is_over = [&](const Record& key, const Record&) {
    return over.count(static_cast<int64_t>(key.Number("tgid"))) != 0;
  };
  program_->RemoveIf("base_counters", is_over);
  program_->RemoveIf("set_counters", is_over);
  program_->RemoveIf("samples", is_over);
  for (auto* last : {&last_base_, &last_sets_, &last_samples_}) {
    std::erase_if(*last, [&](const auto& e) { return over.count(std::get<0>(e.first)) != 0; });
  }
  // The sink has what they counted.
  std::erase_if(sums_, [&](const auto& e) { return over.count(e.first.first) != 0; });
  std::erase_if(owners_, [&](const auto& e) { return over.count(e.first.pid) != 0; });
}

void OperatorCounters::Read(Sink& sink) {
  if (!program_) return;
  program_->Follow(*target_);
  for (auto& [group, sums] : sums_) BeginInterval(&sums.totals);
  for (auto& [owner, sums] : owners_) BeginInterval(&sums.totals);
  ReadKernel();
  for (auto& [group, sums] : sums_) {
    for (size_t g = 0; g < plan_.groups.size(); ++g) {
      sums.pending[g].Settle(static_cast<double>(options_.counting.least_running_ns),
                             &sums.totals[g]);
    }
    ShareOut(group, &sums);
  }
  for (auto& [owner, sums] : owners_) {
    // An operator's ratios are since the start: those of an interval rest on few samples.
    if (sums.totals[0].scaled != sums.totals[0].turn) {
      sums.totals[0].turn = sums.totals[0].scaled;
      sums.totals[0].fresh = true;
    }
    Labels labels;
    labels.pid = owner.pid;
    labels.operator_index = bpf::TakeApart(owner.word).operator_index;
    labels.thread = owner.thread;
    EmitCounters(plan_, *options_.set, sums.totals, labels, sink);
    Measurement m;
    m.labels = labels;
    m.metric = "counter_samples_count";
    m.value = sums.samples;
    m.course = false;
    if (sums.samples > 0) sink.Add(m);
  }
  program_->ReportLosses(sink);
  Rotate();
  ForgetEnded();
}

void OperatorCounters::Stop() {
  if (!program_) return;
  OperatorCountersActive() = false;
  for (size_t i = handles_.size(); i-- > 0;) kernel_.Close(handles_[i]);
  handles_.clear();
  set_leaders_.clear();
  program_.reset();
  last_base_.clear();
  last_sets_.clear();
  last_samples_.clear();
  sums_.clear();
  owners_.clear();
}

HR_PROBE("counters by operator",
         {.summary = "cycles, instructions, cache, TLB and branch misses, stalls and top-down by "
                     "operator or thread group (perf_event and eBPF)",
          .affects = "instructions per cycle and cache misses of each operator",
          .level = 4,
          .period_ns = 200'000'000,
          .check = [](const Host& host) { return OperatorCounters::Check(host); },
          .make = [] { return std::make_unique<OperatorCounters>(); }});

}  // namespace headrace::probes::perf
