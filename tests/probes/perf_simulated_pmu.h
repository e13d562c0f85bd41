// A simulated PMU for tests of counters: what it counts is known.
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "probes/perf/backend.h"

namespace headrace::probes::perf {

inline const EventCode kCycles{0, 0, 0, 0}, kInstructions{0, 1, 0, 0};
inline EventCode Raw(uint64_t config) { return {4, config, 0, 0}; }

// A PMU of `num_counters` that threads run on, a millisecond of one at a time: pinned groups first,
// then the others in rotation, as the kernel does.
class SimulatedPmu final : public PerfBackend {
 public:
  explicit SimulatedPmu(size_t num_counters) : num_counters_(num_counters) {}
  std::map<EventCode, double> rates;  // counts per ns of a running thread
  std::map<EventCode, double> truth;  // what really happened in all threads
  std::set<int64_t> refused_tids;
  int open_limit = 1 << 20;
  bool take_pinned = false;  // another user has all counters

  int Open(const OpenRequest& request) override {
    if (refused_tids.count(request.tid) != 0) return -EACCES;
    if (rates.count(request.code) == 0) return -ENOENT;
    if (static_cast<int>(events_.size()) >= open_limit) return -EMFILE;
    if (request.inherit && !can_inherit) return -EINVAL;
    Event event{request, 0, 0, 0, !request.disabled || request.leader >= 0, false, {}};
    if (request.leader >= 0) {
      Event& leader = events_.at(request.leader);
      if (leader.members.size() >= num_counters_) return -EINVAL;
      leader.members.push_back(next_);
    } else {
      event.members = {next_};
    }
    events_[next_] = event;
    return next_++;
  }
  bool can_inherit = true;
  uint64_t Id(int handle) override { return static_cast<uint64_t>(handle) * 3; }
  int64_t Read(int handle, uint64_t* words, size_t num_words) override {
    const auto it = events_.find(handle);
    if (it == events_.end()) return -EBADF;
    const Event& leader = it->second;
    if (leader.in_error) return 0;
    const size_t needed = 3 + 2 * leader.members.size();
    if (num_words < needed) return -ENOSPC;
    words[0] = leader.members.size();
    words[1] = leader.enabled_ns;
    words[2] = leader.running_ns;
    for (size_t i = 0; i < leader.members.size(); ++i) {
      words[3 + 2 * i] = static_cast<uint64_t>(events_.at(leader.members[i]).value);
      words[4 + 2 * i] = Id(leader.members[i]);
    }
    return static_cast<int64_t>(needed * 8);
  }
  int Enable(int handle) override { return Switch(handle, true); }
  int Disable(int handle) override { return Switch(handle, false); }
  void Close(int handle) override { events_.erase(handle); }
  size_t num_open() const { return events_.size(); }

  // `tid` runs; its events are of `owner`, which differs for a thread that inherited them.
  void Run(int64_t owner, uint64_t ns) {
    for (const auto& [code, rate] : rates) truth[code] += rate * static_cast<double>(ns);
    while (ns > 0) {
      const uint64_t step = std::min<uint64_t>(ns, 1'000'000);
      Step(owner, step);
      ns -= step;
    }
  }

 private:
  struct Event {
    OpenRequest request;
    double value = 0;
    uint64_t enabled_ns = 0, running_ns = 0;
    bool enabled = false, in_error = false;
    std::vector<int> members;
  };
  int Switch(int handle, bool on) {
    const auto it = events_.find(handle);
    if (it == events_.end()) return -EBADF;
    it->second.enabled = on;
    return 0;
  }
  void Step(int64_t tid, uint64_t ns) {
    std::vector<int> order;
    for (const bool pinned : {true, false}) {
      std::vector<int> leaders;
      for (const auto& [handle, e] : events_) {
        if (e.request.tid == tid && e.request.leader < 0 && e.request.pinned == pinned && e.enabled)
          leaders.push_back(handle);
      }
      if (!pinned && !leaders.empty()) {
        std::rotate(leaders.begin(),
                    leaders.begin() + static_cast<std::ptrdiff_t>(turn_++ % leaders.size()),
                    leaders.end());
      }
      order.insert(order.end(), leaders.begin(), leaders.end());
    }
    size_t used = 0;
    for (const int handle : order) {
      Event& leader = events_.at(handle);
      if (leader.in_error) continue;
      leader.enabled_ns += ns;
      const bool fits = used + leader.members.size() <= num_counters_ && !take_pinned;
      if (!fits) {
        leader.in_error |= leader.request.pinned;
        continue;
      }
      used += leader.members.size();
      leader.running_ns += ns;
      for (const int member : leader.members) {
        Event& event = events_.at(member);
        event.value += rates.at(event.request.code) * static_cast<double>(ns);
      }
    }
  }
  size_t num_counters_;
  std::map<int, Event> events_;
  int next_ = 3;
  size_t turn_ = 0;
};

}  // namespace headrace::probes::perf
