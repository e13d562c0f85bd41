#include "collectors/account_tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "collectors/segment_claims.h"
#include "collectors/store/columns.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

constexpr size_t kMostRanks = 1024, kMostWorkers = 1024;

template <typename T>
T* FindId(std::vector<T>* samples, int64_t id) {
  const auto it =
      std::find_if(samples->begin(), samples->end(), [id](const T& s) { return s.id == id; });
  return it == samples->end() ? nullptr : &*it;
}

void AddSteps(StepSample* sum, const StepSample& s) {
  sum->steps += s.steps;
  sum->rows += s.rows;
  sum->wait_ns += s.wait_ns;
  sum->compute_ns += s.compute_ns;
  if (s.first_ns) sum->first_ns = std::min(sum->first_ns.value_or(*s.first_ns), *s.first_ns);
  if (s.last_ns) sum->last_ns = std::max(sum->last_ns.value_or(*s.last_ns), *s.last_ns);
  sum->durations_ns.insert(sum->durations_ns.end(), s.durations_ns.begin(), s.durations_ns.end());
  sum->records.insert(sum->records.end(), s.records.begin(), s.records.end());
}

// Where `pid` has its segment mapped; 0 if that is not to be seen.
uint64_t MappedAt(int64_t pid, const account::AccountSegment& segment) {
  return probes::ReadMappedAt(pid, segment.descriptor()).value_or(0);
}

}  // namespace

bool AccountTree::TryAttach(int64_t pid, bool alive, int64_t process_began_ns) {
  if (const auto it = samplers_.find(pid); it != samplers_.end()) {
    Attached& attached = it->second;
    if (attached.address == 0) attached.address = MappedAt(pid, attached.sampler->segment());
    return true;
  }
  if (refused_.count(pid)) return false;
  SegmentSearch& search = searches_.try_emplace(pid, pid).first->second;
  const std::string path = search.Find();
  if (path.empty()) return false;
  auto segment = account::AccountSegment::AttachAt(path);
  if (!segment) return false;
  const FileId file = IdOf(segment->descriptor());
  if (const auto old = forgotten_.find(pid); old != forgotten_.end() && old->second == file) {
    return false;
  }
  if (segment->opened_monotonic_ns() - start_ns_ < process_began_ns - kProcessStartErrorNs)
    return false;
  if (const std::string refusal = WhyNotItsWord(segment->descriptor(), pid, search.ids());
      !refusal.empty()) {
    foreign_.insert(file);
    throw Error(ExitCode::kBadData, "not the instrumentation of the process it names: " + refusal,
                segment->path(), "remove the file");
  }
  Attached attached;
  attached.address = MappedAt(pid, *segment);
  attached.mark = RecordedMark(segment->path());
  attached.sampler =
      std::make_unique<Sampler>(pid, start_ns_, std::move(*segment), alive, use_clock_);
  samplers_[pid] = std::move(attached);
  searches_.erase(pid);
  order_.push_back(pid);
  closed_.erase(pid);
  ever_attached_ = true;
  return true;
}

std::optional<NamedFile> AccountTree::Overlooked(int64_t pid,
                                                 std::optional<int64_t> process_began_ns) {
  if (samplers_.count(pid) || closed_.count(pid) || left_behind_.count(pid) ||
      refused_.count(pid) || forgotten_.count(pid)) {
    return std::nullopt;
  }
  SegmentSearch& search = searches_.try_emplace(pid, pid).first->second;
  const std::string path = search.FindWhole();
  try {
    auto segment = path.empty() ? std::nullopt : account::AccountSegment::AttachAt(path);
    if (!segment) return std::nullopt;
    const NamedFile file{path, IdOf(segment->descriptor())};
    const int64_t opened_ns = segment->opened_monotonic_ns() - start_ns_;
    const bool older = opened_ns < process_began_ns.value_or(opened_ns) - kProcessStartErrorNs;
    if (older || foreign_.count(file.id) || segment->Read(false, nullptr).closed ||
        !WhyNotItsWord(segment->descriptor(), pid, search.ids()).empty()) {
      return std::nullopt;
    }
    return file;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void AccountTree::KeepSearches(const std::vector<int64_t>& pids) {
  if (searches_.size() <= 2 * pids.size() + 64) return;
  std::erase_if(searches_, [&](const auto& search) {
    return std::find(pids.begin(), pids.end(), search.first) == pids.end();
  });
}

void AccountTree::ImageChanged(int64_t pid) {
  searches_.erase(pid);
  const auto it = samplers_.find(pid);
  if (it == samplers_.end() || access(fmt::format("/proc/{}/maps", pid).c_str(), R_OK) != 0) return;
  const account::AccountSegment& segment = it->second.sampler->segment();
  if (MappedAt(pid, segment) != 0) return;  // the new image's own
  forgotten_[pid] = IdOf(segment.descriptor());
  Drop(pid);
}

void AccountTree::AddRank(int64_t pid, const StepSample& steps) {
  if (steps.steps <= 0) return;
  if (ranks_.size() >= kMostRanks && ranks_.count(pid) == 0) return;
  RankSteps& rank = ranks_[pid];
  if (rank.begun) {
    rank.steps += steps.steps;
    rank.wait_ns += steps.wait_ns;
    rank.compute_ns += steps.compute_ns;
  }
  rank.begun = true;
}

int64_t WorkerSums::batches() const {
  const Made* last = nullptr;
  for (const auto& [id, each] : made) {
    if (each.completions <= 0) continue;
    const auto place = [](const Made& one) {
      return std::tuple(one.is_batch, one.stage_id, one.position);
    };
    if (last == nullptr || place(each) > place(*last)) last = &each;
  }
  return last == nullptr ? 0 : last->completions;
}

void AccountTree::AddWorker(int64_t pid, const IntervalSample& own) {
  if (ranks_.count(pid) != 0) {  // it takes batches
    workers_.erase(pid);
    return;
  }
  const bool made = std::any_of(own.operators.begin(), own.operators.end(),
                                [](const OperatorSample& op) { return op.completions > 0; });
  if (workers_.count(pid) == 0 && (!made || workers_.size() >= kMostWorkers)) return;
  WorkerSums& worker = workers_[pid];
  if (worker.begun) {
    for (const OperatorSample& op : own.operators) {
      WorkerSums::Made& of = worker.made[op.id];
      of = {op.stage_id, op.position, of.completions + op.completions, op.kind == "batch"};
      worker.work_ns += std::max(int64_t{0}, op.busy_ns - op.runnable_ns.value_or(0));
      worker.wait_ns += op.wait_in_ns + op.wait_out_ns;
    }
  }
  worker.begun = true;
}

void AccountTree::Drop(int64_t pid) {
  const auto it = samplers_.find(pid);
  if (it == samplers_.end()) return;
  const Sampler::Losses& lost = it->second.sampler->losses();
  for (const auto& [what, count] : lost.over_limit) ended_losses_.over_limit[what] += count;
  ended_losses_.step_details += lost.step_details;
  ended_losses_.steps += lost.steps;
  samplers_.erase(it);
  std::erase(order_, pid);
}

const account::AccountSegment* AccountTree::first() const {
  return order_.empty() ? nullptr : &samplers_.at(order_.front()).sampler->segment();
}

Sampler::Losses AccountTree::losses() const {
  Sampler::Losses all = ended_losses_;
  for (const auto& [pid, attached] : samplers_) {
    const Sampler::Losses& lost = attached.sampler->losses();
    for (const auto& [what, count] : lost.over_limit) all.over_limit[what] += count;
    all.step_details += lost.step_details;
    all.steps += lost.steps;
  }
  return all;
}

std::vector<probes::AccountedProcess> AccountTree::Accounted() const {
  std::vector<probes::AccountedProcess> all;
  for (const auto& [pid, attached] : samplers_) all.push_back({pid, attached.address});
  return all;
}

std::optional<int64_t> AccountTree::OperatorId(int64_t pid, uint32_t operator_index) const {
  const auto it = operator_ids_.find({pid, operator_index});
  if (it == operator_ids_.end()) return std::nullopt;
  return it->second;
}

IntervalSample AccountTree::Take(const std::function<bool(int64_t pid)>& alive,
                                 const std::map<int64_t, KernelSplits>* splits) {
  static const KernelSplits kNone;
  IntervalSample all;
  moment_ = {};
  std::vector<int64_t> ended;
  for (auto& [pid, attached] : samplers_) {
    const bool lives = alive(pid);
    Sampler& sampler = *attached.sampler;
    try {
      const KernelSplits* own = nullptr;
      if (splits) {
        const auto found = splits->find(pid);
        own = found == splits->end() ? &kNone : &found->second;
      }
      const IntervalSample sample = sampler.Take(lives, own);
      Merge(pid, sample, &all);
      AddRank(pid, sample.steps);
      AddWorker(pid, sample);
    } catch (const Error& error) {
      refused_[pid] = error.what();
      ended.push_back(pid);
      continue;
    }
    schedstat_readable_ |= sampler.schedstat_readable();
    for (const auto& step : sampler.last_steps()) {
      moment_.longest_wait_ns = std::max(moment_.longest_wait_ns, step.wait_ns);
      moment_.longest_step_ns = std::max(moment_.longest_step_ns, step.wait_ns + step.compute_ns);
    }
    for (const auto& q : sampler.last_queues()) {
      if (q.capacity == 0) continue;
      const double fill = static_cast<double>(q.occupancy) / static_cast<double>(q.capacity);
      const auto [it, inserted] = moment_.queue_fill.emplace(q.name, fill);
      if (!inserted) it->second = (it->second + fill) / 2;
    }
    if (sampler.closed()) closed_[pid] = true;
    if (!lives) {
      const account::AccountSegment& segment = sampler.segment();
      if (!sampler.closed()) left_behind_[pid] = {segment.path(), IdOf(segment.descriptor())};
      ended.push_back(pid);
    }
  }
  moment_.steps = all.steps.steps;
  moment_.wait_ns = all.steps.wait_ns;
  moment_.compute_ns = all.steps.compute_ns;
  moment_.has_steps = losses().steps > 0;
  for (const int64_t pid : ended) Drop(pid);
  return all;
}

int64_t AccountTree::Number(std::map<std::string, int64_t>* numbers,
                            const std::string& name) const {
  return numbers->emplace(name, static_cast<int64_t>(numbers->size())).first->second;
}

void AccountTree::Merge(int64_t pid, const IntervalSample& own, IntervalSample* all) {
  std::map<int64_t, int64_t> stage_ids;
  for (const StageSample& s : own.stages) {
    // The stage of threads that joined none has a number of its own, behind all others.
    int64_t id = int64_t{1} << 20;
    if (s.id != HR_MAX_STAGES) id = Number(&stages_, s.name);
    stage_ids[s.id] = id;
    if (StageSample* sum = FindId(&all->stages, id)) {
      // Each process looks at its own threads, all of them for as long.
      const int64_t observed_ns = std::max(sum->observed_ns, s.observed_ns);
      AddUp(kStages, s, sum);
      sum->observed_ns = observed_ns;
      sum->parallelism += s.parallelism;
      sum->max_parallelism = sum->max_parallelism == 0 || s.max_parallelism == 0
                                 ? 0
                                 : sum->max_parallelism + s.max_parallelism;
    } else {
      all->stages.push_back(s);
      all->stages.back().id = all->stages.back().index = id;
    }
  }
  const auto stage_of = [&](int64_t local) {
    const auto it = stage_ids.find(local);
    return it == stage_ids.end() ? int64_t{1} << 20 : it->second;
  };
  for (const OperatorSample& o : own.operators) {
    const int64_t stage = stage_of(o.stage_id);
    const int64_t id =
        operators_.emplace(std::pair(stage, o.name), static_cast<int64_t>(operators_.size()))
            .first->second;
    operator_ids_[{pid, static_cast<uint32_t>(o.id)}] = id;
    if (OperatorSample* sum = FindId(&all->operators, id)) {
      AddUp(kOperators, o, sum);
    } else {
      all->operators.push_back(o);
      all->operators.back().id = id;
      all->operators.back().stage_id = stage;
    }
  }
  for (const QueueSample& q : own.queues) {
    const int64_t id = Number(&queues_, q.name);
    if (QueueSample* sum = FindId(&all->queues, id)) {
      AddUp(kQueues, q, sum);
      sum->capacity += q.capacity;
    } else {
      all->queues.push_back(q);
      QueueSample& sample = all->queues.back();
      sample.id = id;
      if (q.producer_stage_id) sample.producer_stage_id = stage_of(*q.producer_stage_id);
      if (q.consumer_stage_id) sample.consumer_stage_id = stage_of(*q.consumer_stage_id);
    }
  }
  for (const ResourceSample& r : own.resources) {
    const int64_t id = Number(&resources_, r.name);
    if (ResourceSample* sum = FindId(&all->resources, id)) {
      AddUp(kResources, r, sum);
      sum->servers += r.servers;
    } else {
      all->resources.push_back(r);
      all->resources.back().id = id;
    }
  }
  AddSteps(&all->steps, own.steps);
}

void Extend(IntervalSample* interval, const IntervalSample& next) {
  interval->duration_ns = next.start_ns + next.duration_ns - interval->start_ns;
  for (const StageSample& s : next.stages) {
    if (StageSample* sum = FindId(&interval->stages, s.id)) {
      AddUp(kStages, s, sum);
      sum->parallelism = s.parallelism;
      sum->max_parallelism = s.max_parallelism;
    } else {
      interval->stages.push_back(s);
    }
  }
  for (const OperatorSample& o : next.operators) {
    if (OperatorSample* sum = FindId(&interval->operators, o.id)) {
      AddUp(kOperators, o, sum);
    } else {
      interval->operators.push_back(o);
    }
  }
  for (const QueueSample& q : next.queues) {
    if (QueueSample* sum = FindId(&interval->queues, q.id)) {
      AddUp(kQueues, q, sum);
      sum->capacity = q.capacity;
    } else {
      interval->queues.push_back(q);
    }
  }
  for (const ResourceSample& r : next.resources) {
    if (ResourceSample* sum = FindId(&interval->resources, r.id)) {
      AddUp(kResources, r, sum);
      sum->servers = r.servers;
    } else {
      interval->resources.push_back(r);
    }
  }
  AddSteps(&interval->steps, next.steps);
}

}  // namespace headrace::collectors
