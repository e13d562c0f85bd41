#include "reader/transforms/graph.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace headrace::reader {
namespace {

using Value = uint32_t;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Builder {
 public:
  Builder(const std::vector<GraphInput>& list,
          const std::optional<std::vector<std::string>>& outputs)
      : list_(list), all_(!outputs), alive_(list.size(), true) {
    if (outputs) outputs_.insert(outputs->begin(), outputs->end());
  }

  TransformGraph Build() {
    // The first time finds what no name leads to, so that the step that computes a repeated value
    // is a live one; the second time what only repeating steps would have read.
    NumberValues();
    FindDead(/*repeats_read=*/true);
    NumberValues();
    FindDead(/*repeats_read=*/false);
    PlaceSteps();
    return std::move(graph_);
  }

 private:
  // Gives each live step's result a number, the same as that of an earlier step it repeats.
  void NumberValues() {
    using Key = std::tuple<std::string, ParamMap, uint64_t, std::vector<Value>>;
    std::map<Key, Value> known;
    std::map<std::string, Value> current;
    Value next = 0;
    const auto value_of = [&](const std::string& name) {
      const auto [it, is_new] = current.try_emplace(name, next);
      next += is_new;
      return it->second;
    };
    values_.assign(list_.size(), 0);
    repeats_.assign(list_.size(), false);
    for (size_t i = 0; i < list_.size(); ++i) {
      const GraphInput& step = list_[i];
      if (!alive_[i] || step.drops_rows) continue;
      std::vector<Value> inputs;
      for (const std::string& name : step.inputs) inputs.push_back(value_of(name));
      const auto [it, is_new] =
          known.try_emplace({step.op, step.params, step.seed, std::move(inputs)}, next);
      next += is_new;
      repeats_[i] = !is_new;
      values_[i] = it->second;
      current[step.output] = it->second;
    }
  }

  // From the last step back: which steps make a value that reaches an output, and the last step
  // that reads each column. A name stays the same column from its first step to its last: a new
  // output never takes the name of a column.
  void FindDead(bool repeats_read) {
    std::set<std::string> live = outputs_;
    std::set<Value> wanted;  // by steps that repeat
    last_read_.clear();
    last_repeat_.clear();
    for (const std::string& name : outputs_) last_read_[name] = list_.size();
    const auto read = [&](const std::string& name, size_t i) {
      live.insert(name);
      last_read_.try_emplace(name, i);
    };
    for (size_t i = list_.size(); i-- > 0;) {
      const GraphInput& step = list_[i];
      if (!alive_[i] || step.drops_rows) continue;
      const bool lends = !repeats_read && !repeats_[i] && wanted.count(values_[i]) > 0;
      alive_[i] = all_ || live.count(step.output) > 0 || lends;
      if (!alive_[i]) continue;
      if (repeats_[i]) {
        wanted.insert(values_[i]);
        last_repeat_.try_emplace(values_[i], i);
      }
      live.erase(step.output);
      if (!repeats_[i] || repeats_read)
        for (const std::string& name : step.inputs) read(name, i);
      // What a step replaces has to keep its place among the columns until then.
      if (Contains(step.inputs, step.output)) read(step.output, i);
    }
    if (!all_) graph_.wanted_at_start = live;
  }

  bool ReadAfter(size_t i, const std::string& name) const {
    const auto last = last_read_.find(name);
    return all_ || (last != last_read_.end() && last->second > i);
  }

  // Whether a step behind `i` repeats `value`.
  bool RepeatedAfter(size_t i, Value value) const {
    const auto last = last_repeat_.find(value);
    return last != last_repeat_.end() && last->second > i;
  }

  // A column that holds `value`; null when none but `except` does.
  const std::string* HolderOf(Value value, const std::string& except = {}) const {
    for (const auto& [name, held] : held_)
      if (held == value && name != except) return &name;
    return nullptr;
  }

  // Forward: where each repeated value is at hand, what has to be kept for that, what can go.
  void PlaceSteps() {
    graph_.steps.resize(list_.size());
    std::vector<std::vector<std::string>> ends(list_.size());  // names, by the last step reading
    for (const auto& [name, last] : last_read_)
      if (last < list_.size()) ends[last].push_back(name);
    std::set<std::string> ended;  // not read any more, but holding a value that is
    for (size_t i = 0; i < list_.size(); ++i) {
      const GraphInput& input = list_[i];
      GraphStep& step = graph_.steps[i];
      if (!alive_[i]) {
        step.action = GraphAction::kSkip;
        continue;
      }
      if (input.drops_rows) continue;
      Keep(i, input.output, &step);
      if (repeats_[i]) Repeat(i, &step);
      held_[input.output] = values_[i];
      if (all_) continue;
      ended.insert(ends[i].begin(), ends[i].end());
      if (!ReadAfter(i, input.output)) ended.insert(input.output);
      Release(i, &ended, &step);
    }
  }

  // The column that step `i` overwrites may be the last to hold a value that a later one repeats.
  void Keep(size_t i, const std::string& name, GraphStep* step) {
    const auto old = held_.find(name);
    if (old == held_.end() || !RepeatedAfter(i, old->second)) return;
    if (HolderOf(old->second, name) != nullptr) return;
    step->keep.emplace_back(name, kKept + std::to_string(old->second));
    held_[step->keep.back().second] = old->second;
  }

  // Afterwards the step's own column holds the value for those that follow.
  void Repeat(size_t i, GraphStep* step) {
    step->from = *HolderOf(values_[i]);
    step->action = GraphAction::kCopy;
    const bool kept = step->from.rfind(kKept, 0) == 0;
    if (!kept && ReadAfter(i, step->from)) return;
    step->action = GraphAction::kMove;
    held_.erase(step->from);
  }

  void Release(size_t i, std::set<std::string>* ended, GraphStep* step) {
    for (auto name = ended->begin(); name != ended->end();) {
      const auto held = held_.find(*name);
      if (held != held_.end() && RepeatedAfter(i, held->second) &&
          HolderOf(held->second, *name) == nullptr) {
        ++name;
        continue;
      }
      if (held != held_.end()) held_.erase(held);
      if (*name != step->from) step->release.push_back(*name);
      name = ended->erase(name);
    }
  }

  // No column of a table has such a name: theirs have no space.
  static constexpr const char* kKept = "kept value ";

  const std::vector<GraphInput>& list_;
  const bool all_;
  std::set<std::string> outputs_;
  std::vector<char> alive_;
  std::vector<Value> values_;
  std::vector<char> repeats_;
  std::map<std::string, size_t> last_read_;  // by name; the number of steps: it is an output
  std::map<Value, size_t> last_repeat_;
  std::map<std::string, Value> held_;  // computed values, by the column that holds them
  TransformGraph graph_;
};

}  // namespace

TransformGraph BuildGraph(const std::vector<GraphInput>& list,
                          const std::optional<std::vector<std::string>>& outputs) {
  return Builder(list, outputs).Build();
}

}  // namespace headrace::reader
