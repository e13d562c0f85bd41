#include "probes/bpf/ended.h"

#include <signal.h>

#include <cerrno>

#include "base/clock.h"

namespace headrace::probes::bpf {
namespace {

constexpr int64_t kLongGoneNs = 1'000'000'000;  // until then, completions of it may still come
constexpr int64_t kEndedPeriodNs = 500'000'000;

class Keeper final : public Sink {
 public:
  explicit Keeper(std::map<std::pair<std::string_view, Labels>, Measurement>* kept) : kept_(kept) {}
  void Add(const Measurement& m) override {
    auto [it, fresh] = kept_->try_emplace({m.metric, m.labels}, m);
    if (!fresh) it->second.value += m.value;
  }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view, int64_t, std::optional<int64_t>) override {}

 private:
  std::map<std::pair<std::string_view, Labels>, Measurement>* kept_;
};

}  // namespace

bool EndedFigures::LongGone(int64_t pid, int64_t now) {
  if (pid == 0) return false;
  auto [it, fresh] = gone_since_.try_emplace(pid, 0);
  const bool exists = kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
  if (exists) {
    it->second = 0;
    return false;
  }
  if (it->second == 0) it->second = now;
  return now - it->second >= kLongGoneNs;
}

void EndedFigures::ForEach(Program& program, const std::string& map, Sink& sink, const Emit& emit) {
  Kept& kept = maps_[map];
  const int64_t now = MonotonicNs();
  if (now - looked_ns_ > 100 * kLongGoneNs) {  // numbers that no map holds any more
    looked_ns_ = now;
    gone_since_.clear();
  }
  if (now - kept.looked_ns >= kEndedPeriodNs) {
    kept.looked_ns = now;
    std::map<int64_t, bool> gone;
    Keeper keeper(&kept.measurements);
    program.RemoveIf(map, [&](const Record& key, const Record& value) {
      const auto pid = static_cast<int64_t>(key.Number("tgid"));
      auto [it, fresh] = gone.try_emplace(pid, false);
      if (fresh) it->second = LongGone(pid, now);
      if (it->second) emit(key, value, keeper);
      return it->second;
    });
  }
  program.ForEach(map, [&](const Record& key, const Record& value) { emit(key, value, sink); });
  for (const auto& [name, measurement] : kept.measurements) sink.Add(measurement);
}

void EndedFigures::Clear() {
  maps_.clear();
  gone_since_.clear();
}

}  // namespace headrace::probes::bpf
