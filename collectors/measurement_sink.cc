#include "collectors/measurement_sink.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace headrace::collectors {

using probes::Labels;
using probes::Measurement;
using probes::Metric;

struct MeasurementSink::Key {
  const Metric* metric;
  Source source;
  int probe;  // two probes may measure the same; each has its own total
  Labels labels;
  bool operator==(const Key&) const = default;
};

struct MeasurementSink::KeyHash {
  size_t operator()(const Key& k) const {
    size_t h = reinterpret_cast<size_t>(k.metric) / sizeof(Metric);
    const auto mix = [&h](size_t value) { h = (h ^ value) * 0x9e3779b97f4a7c15u + (h >> 29); };
    mix(static_cast<size_t>(k.labels.pid));
    mix(k.labels.operator_index ? *k.labels.operator_index + 1 : 0);
    mix(std::hash<std::string>()(k.labels.thread));
    mix(std::hash<std::string>()(k.labels.subject));
    mix(std::hash<std::string>()(k.labels.cause));
    mix(k.labels.bucket ? static_cast<size_t>(*k.labels.bucket) + 1 : 0);
    mix(static_cast<size_t>(k.probe) * 4 + static_cast<size_t>(k.source));
    return h;
  }
};

struct MeasurementSink::Series {
  int64_t id = -1;  // -1 until it is stored
  bool course = false, dirty = false, wants_course = true;
  int64_t read = -1;   // number of the Read that touched it last
  double pending = 0;  // sum of this Read
  std::optional<double> running_ratio;
  int64_t last_ns = 0;       // when it was read last
  int64_t told_from_ns = 0;  // since when what was read since the last Take may have happened
  int64_t stored_to_ns = 0;  // gauges: the end of the last interval
  int64_t first_ns = 0;      // gauges: how long its first value stands for
  // Counters: total = base + last - origin.
  double base = 0, last = 0, taken = 0;
  double origin = 0;  // base + last when the run started
  // Gauges: over the run, and since the last Take.
  int64_t weight_ns = 0;
  double weighted_sum = 0, minimum = 0, maximum = 0;
  double recent_sum = 0;
  int64_t recent = 0;
  bool begun = false;
};

struct MeasurementSink::Stack {
  int64_t id = -1;
  int64_t read = -1;
  int64_t pending_samples = 0, pending_ns = 0;
  int64_t base_samples = 0, base_ns = 0, samples = 0, time_ns = 0;
  int64_t origin_samples = 0, origin_ns = 0;  // when the run started
  bool dirty = false;
};

struct MeasurementSink::State {
  struct StackKey {
    std::string kind, thread, folded;
    int64_t pid;
    std::optional<uint32_t> operator_index;
    int probe;
    auto operator<=>(const StackKey&) const = default;
  };
  std::unordered_map<Key, Series, KeyHash> series;
  std::map<StackKey, Stack> stacks;
  std::vector<std::pair<const Key, Series>*> touched;
  std::vector<std::pair<const StackKey, Stack>*> touched_stacks;
  std::set<const Metric*> listed;  // metrics the store has
  std::map<std::string, int> probes;
  // By probe: the end of the last window in which it was read, and whether it was in this one.
  struct ProbeRead {
    int64_t window_end_ns = 0;
    bool now = false;
  };
  std::vector<ProbeRead> reads;
  int64_t before_ns = 0;  // until when the probe that is read now had told of before
  std::map<std::pair<int, std::string>, Loss> losses;  // by probe and what
  std::map<std::string, int64_t> refused;              // by the limits
  size_t stack_bytes = 0, courses = 0, thread_courses = 0;
  int64_t next_id = 0, next_stack_id = 0;
  int64_t read = 0, now_ns = 0, taken_ns = 0;
  int probe = 0;
};

MeasurementSink::MeasurementSink(Names names) : MeasurementSink(std::move(names), Limits()) {}
MeasurementSink::MeasurementSink(Names names, Limits limits)
    : names_(std::move(names)), limits_(limits), state_(std::make_unique<State>()) {}
MeasurementSink::~MeasurementSink() = default;

void MeasurementSink::BeginRead(const std::string& probe, int64_t now_ns) {
  State& s = *state_;
  s.probe = s.probes.emplace(probe, static_cast<int>(s.probes.size())).first->second;
  s.reads.resize(s.probes.size(), {s.taken_ns, false});
  State::ProbeRead& read = s.reads[static_cast<size_t>(s.probe)];
  read.now = true;
  s.before_ns = read.window_end_ns;
  s.now_ns = now_ns;
  s.read++;
  s.touched.clear();
  s.touched_stacks.clear();
}

void MeasurementSink::Add(const Measurement& m) {
  State& s = *state_;
  const Metric* metric = probes::FindMetric(m.metric);
  if (!metric) {
    s.refused["measurements of metrics that are not listed"]++;
    return;
  }
  if (!std::isfinite(m.value)) return;  // a ratio of nothing
  Key key{metric, m.source.value_or(metric->source), s.probe, m.labels};
  auto it = s.series.find(key);
  if (it == s.series.end()) {
    if (s.series.size() >= limits_.measurements) {
      s.refused["measurements beyond the limit of a run"]++;
      return;
    }
    it = s.series.emplace(std::move(key), Series{}).first;
    it->second.wants_course = m.course && !m.labels.bucket;
  }
  Series& series = it->second;
  if (series.read != s.read) {
    series.read = s.read;
    series.pending = 0;
    s.touched.push_back(&*it);
  }
  series.pending += m.value;
  if (!series.begun) series.first_ns = m.mean_of_ns;
  series.running_ratio = m.running_ratio;
}

void MeasurementSink::AddStack(const probes::StackSample& stack) {
  State& s = *state_;
  State::StackKey key{std::string(stack.kind), stack.thread, stack.folded, stack.pid,
                      stack.operator_index,    s.probe};
  auto it = s.stacks.find(key);
  if (it == s.stacks.end()) {
    const size_t bytes = key.folded.size() + key.thread.size() + sizeof(key) + sizeof(Stack);
    if (s.stacks.size() >= limits_.stacks || s.stack_bytes + bytes > limits_.stack_bytes) {
      s.refused["stacks beyond the limit of a run"]++;
      return;
    }
    s.stack_bytes += bytes;
    it = s.stacks.emplace(std::move(key), Stack{}).first;
  }
  Stack& held = it->second;
  if (held.read != s.read) {
    held.read = s.read;
    held.pending_samples = held.pending_ns = 0;
    s.touched_stacks.push_back(&*it);
  }
  held.pending_samples += stack.samples;
  held.pending_ns += stack.time_ns;
}

void MeasurementSink::Lost(std::string_view what, int64_t lost, std::optional<int64_t> total) {
  state_->losses[{state_->probe, std::string(what)}] = {lost, total};
}

void MeasurementSink::EndRead() {
  State& s = *state_;
  for (auto* entry : s.touched) {
    const Metric& metric = *entry->first.metric;
    Series& series = entry->second;
    if (metric.kind == probes::MetricKind::kCounter) {
      if (series.pending < series.last) series.base += series.last;  // it began again
      if (series.pending != series.last || !series.begun) {
        if (!series.dirty) series.told_from_ns = s.before_ns;
        series.dirty = true;
      }
      series.last = series.pending;
    } else {
      if (series.recent == 0) series.told_from_ns = s.before_ns;
      const double value = series.pending;
      const int64_t since =
          series.begun ? std::max<int64_t>(0, s.now_ns - series.last_ns) : series.first_ns;
      series.weight_ns += since;
      series.weighted_sum += value * static_cast<double>(since);
      series.minimum = series.begun ? std::min(series.minimum, value) : value;
      series.maximum = series.begun ? std::max(series.maximum, value) : value;
      series.last = value;
      series.recent_sum += value;
      series.recent++;
      series.dirty = true;
    }
    series.begun = true;
    series.last_ns = s.now_ns;
  }
  for (auto* entry : s.touched_stacks) {
    Stack& held = entry->second;
    if (held.pending_samples < held.samples) {
      held.base_samples += held.samples;
      held.base_ns += held.time_ns;
    }
    held.dirty |= held.pending_samples != held.samples;
    held.samples = held.pending_samples;
    held.time_ns = held.pending_ns;
  }
  s.touched.clear();
  s.touched_stacks.clear();
}

void MeasurementSink::MarkStart() {
  for (State::ProbeRead& read : state_->reads) read.now = false;
  for (auto& [key, series] : state_->series) {
    if (key.metric->kind != probes::MetricKind::kCounter) continue;
    series.origin = series.base + series.last;
    series.dirty = false;
  }
  for (auto& [key, held] : state_->stacks) {
    held.origin_samples = held.base_samples + held.samples;
    held.origin_ns = held.base_ns + held.time_ns;
    held.dirty = false;
  }
}

bool MeasurementSink::Define(const Key& key, bool last, Series* series, MeasurementBatch* batch) {
  State& s = *state_;
  const bool counter = key.metric->kind == probes::MetricKind::kCounter;
  const bool nothing = counter && series->base + series->last == series->origin;
  if (nothing && !(key.labels == Labels())) {
    series->dirty = false;  // of all its labels, this counted nothing
    return false;
  }
  std::optional<int64_t> operator_id;
  if (key.labels.operator_index) {
    operator_id = names_.operator_id(key.labels.pid, *key.labels.operator_index);
    if (!operator_id && !last) return false;
  }
  if (s.listed.insert(key.metric).second) {
    const Metric& m = *key.metric;
    batch->metrics.push_back({std::string(m.name), std::string(m.unit),
                              counter ? "counter" : "gauge", SourceName(m.source),
                              std::string(m.privilege), std::string(m.help)});
  }
  series->id = s.next_id++;
  if (series->wants_course) series->course = MayHaveCourse(!key.labels.thread.empty());
  MeasurementRow row;
  row.id = series->id;
  row.metric = key.metric->name;
  row.source = SourceName(key.source);
  row.operator_id = operator_id;
  if (key.labels.pid > 0) row.process_id = names_.process_id(key.labels.pid);
  row.thread = Printable(key.labels.thread);
  row.subject = Printable(key.labels.subject);
  row.cause = Printable(key.labels.cause);
  row.bucket = key.labels.bucket;
  batch->definitions.push_back(std::move(row));
  return true;
}

bool MeasurementSink::MayHaveCourse(bool of_thread) {
  State& s = *state_;
  size_t& courses = of_thread ? s.thread_courses : s.courses;
  if (courses < (of_thread ? limits_.thread_courses : limits_.courses)) {
    courses++;
    return true;
  }
  s.refused[of_thread ? "courses of threads beyond the limit of a run"
                      : "courses of measurements beyond the limit of a run"]++;
  return false;
}

void MeasurementSink::TakeSeries(const Key& key, int64_t now_ns, Series* series,
                                 MeasurementBatch* batch) {
  const bool counter = key.metric->kind == probes::MetricKind::kCounter;
  MeasurementTotal total;
  total.id = series->id;
  total.last = series->base + series->last - series->origin;
  total.running_ratio = series->running_ratio;
  if (!counter) {
    total.weight_ns = series->weight_ns;
    total.weighted_sum = series->weighted_sum;
    total.minimum = series->minimum;
    total.maximum = series->maximum;
  }
  const int64_t taken_ns = state_->taken_ns;
  if (series->course && now_ns > taken_ns) {
    const double value =
        counter ? total.last - series->taken
                : series->recent_sum / static_cast<double>(std::max<int64_t>(1, series->recent));
    // A probe that is read seldom tells of all that was since it was read before.
    const int64_t from_ns =
        std::max(series->stored_to_ns, std::min(taken_ns, series->told_from_ns));
    if (!counter || value != 0) {
      batch->intervals.push_back({series->id, from_ns, now_ns - from_ns, value});
      if (!counter) series->stored_to_ns = now_ns;
    }
  }
  batch->totals.push_back(total);
  series->taken = total.last;
  series->recent_sum = 0;
  series->recent = 0;
  series->dirty = false;
}

void MeasurementSink::TakeStacks(bool last, MeasurementBatch* batch) {
  for (auto& [key, held] : state_->stacks) {
    if (!held.dirty) continue;
    std::optional<int64_t> operator_id;
    if (key.operator_index) {
      operator_id = names_.operator_id(key.pid, *key.operator_index);
      if (!operator_id && !last) continue;
    }
    if (held.id < 0) held.id = state_->next_stack_id++;
    StackRow row;
    row.id = held.id;
    row.kind = key.kind;
    row.operator_id = operator_id;
    if (key.pid > 0) row.process_id = names_.process_id(key.pid);
    row.thread = Printable(key.thread);
    row.folded = Printable(key.folded, 16 << 10);
    row.samples = held.base_samples + held.samples - held.origin_samples;
    row.time_ns = held.base_ns + held.time_ns - held.origin_ns;
    held.dirty = false;
    batch->stacks.push_back(std::move(row));
  }
}

MeasurementBatch MeasurementSink::Take(int64_t now_ns, bool fine, bool last) {
  State& s = *state_;
  MeasurementBatch batch;
  for (auto& [key, series] : s.series) {
    if (!series.dirty || !series.begun) continue;
    if (!series.wants_course && !fine) continue;
    if (series.id < 0 && !Define(key, last, &series, &batch)) continue;
    TakeSeries(key, now_ns, &series, &batch);
  }
  if (fine) TakeStacks(last, &batch);
  for (State::ProbeRead& read : s.reads) {
    if (read.now) read = {now_ns, false};
  }
  s.taken_ns = now_ns;
  return batch;
}

std::map<std::string, double> MeasurementSink::TotalByProbe(std::string_view metric) const {
  std::map<int, double> totals;
  for (const auto& [key, series] : state_->series) {
    if (key.metric->name != metric) continue;
    totals[key.probe] += series.base + series.last - series.origin;
  }
  std::map<std::string, double> by_name;
  for (const auto& [name, number] : state_->probes) {
    if (totals.contains(number)) by_name[name] = totals[number];
  }
  return by_name;
}

std::map<std::string, MeasurementSink::Loss> MeasurementSink::losses() const {
  std::map<std::string, Loss> all;
  for (const auto& [key, loss] : state_->losses) {
    Loss& sum = all[key.second];
    sum.lost += loss.lost;
    if (loss.total) sum.total = sum.total.value_or(0) + *loss.total;
  }
  for (const auto& [what, count] : state_->refused) all[what].lost += count;
  return all;
}

size_t MeasurementSink::num_measurements() const { return state_->series.size(); }

}  // namespace headrace::collectors
