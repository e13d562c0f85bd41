#include "probes/perf/backend.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

namespace headrace::probes::perf {

int KernelBackend::Open(const OpenRequest& request) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = request.code.type;
  attr.config = request.code.config;
  attr.config1 = request.code.config1;
  attr.config2 = request.code.config2;
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
                     PERF_FORMAT_TOTAL_TIME_RUNNING;
  // Members follow their leader, which alone is switched on and off.
  attr.disabled = request.leader < 0 && request.disabled;
  attr.pinned = request.leader < 0 && request.pinned;
  attr.inherit = request.inherit;
  attr.inherit_thread = request.inherit && request.threads_only;
  if (!request.uncore) {  // PMUs outside the cores refuse these
    attr.exclude_kernel = request.exclude_kernel;
    attr.exclude_hv = 1;
  }
  attr.sample_period = request.sample_period;
  if (request.sample_frequency != 0) {
    attr.freq = 1;
    attr.sample_freq = request.sample_frequency;
  }
  const long fd = syscall(SYS_perf_event_open, &attr, request.tid, request.cpu, request.leader,
                          PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

uint64_t KernelBackend::Id(int handle) {
  uint64_t id = 0;
  return ioctl(handle, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}

int64_t KernelBackend::Read(int handle, uint64_t* words, size_t num_words) {
  const ssize_t size = read(handle, words, num_words * sizeof *words);
  return size < 0 ? -errno : size;
}

int KernelBackend::Enable(int handle) {
  return ioctl(handle, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) == 0 ? 0 : -errno;
}
int KernelBackend::Disable(int handle) {
  return ioctl(handle, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP) == 0 ? 0 : -errno;
}
void KernelBackend::Close(int handle) { close(handle); }

const FakeBackend::Script& FakeBackend::ScriptOf(const EventCode& code) const {
  const auto it = scripts.find(code);
  return it == scripts.end() ? otherwise : it->second;
}

int FakeBackend::Open(const OpenRequest& request) {
  requests_.push_back(request);
  const Script& script = ScriptOf(request.code);
  if (request.leader < 0) {
    if (script.open_errno != 0) return -script.open_errno;
  } else {
    const auto leader = open_.find(request.leader);
    if (leader == open_.end()) return -EBADF;
    if (script.member_errno != 0) return -script.member_errno;
    if (leader->second.members.size() >= most_members) return -EINVAL;
    leader->second.members.push_back(next_);
  }
  Event& event = open_[next_];
  event.code = request.code;
  if (request.leader < 0) event.members = {next_};
  event.enabled = request.leader >= 0 || !request.disabled;
  return next_++;
}

int64_t FakeBackend::Read(int handle, uint64_t* words, size_t num_words) {
  const auto leader = open_.find(handle);
  if (leader == open_.end()) return -EBADF;
  const int64_t number = leader->second.reads++;
  const Script& script = ScriptOf(leader->second.code);
  if (script.short_read_at >= 0 && number >= script.short_read_at) return 0;
  const auto step = [&](const Script& of) {
    if (of.steps.empty()) return Step{};
    const auto last = static_cast<int64_t>(of.steps.size()) - 1;
    return of.steps[static_cast<size_t>(std::min(number, last))];
  };
  const size_t needed = 3 + 2 * leader->second.members.size();
  if (num_words < needed) return -ENOSPC;
  words[0] = leader->second.members.size();
  words[1] = step(script).enabled_ns;
  words[2] = step(script).running_ns;
  for (size_t i = 0; i < leader->second.members.size(); ++i) {
    const int member = leader->second.members[i];
    words[3 + 2 * i] = step(ScriptOf(open_.at(member).code)).value;
    words[4 + 2 * i] = Id(member);
  }
  return static_cast<int64_t>(needed * sizeof(uint64_t));
}

int FakeBackend::Enable(int handle) {
  const auto it = open_.find(handle);
  if (it == open_.end()) return -EBADF;
  it->second.enabled = true;
  return 0;
}
int FakeBackend::Disable(int handle) {
  const auto it = open_.find(handle);
  if (it == open_.end()) return -EBADF;
  it->second.enabled = false;
  return 0;
}
void FakeBackend::Close(int handle) { open_.erase(handle); }

size_t FakeBackend::num_enabled() const {
  return static_cast<size_t>(std::count_if(open_.begin(), open_.end(), [](const auto& e) {
    return e.second.enabled && !e.second.members.empty();
  }));
}

namespace {

std::optional<uint64_t> Number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (words.size() < 8) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
  return words;
}

}  // namespace

RecordedBackend::RecordedBackend(std::string_view text) {
  constexpr size_t kMostEvents = 1000, kMostSteps = 100'000;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto words = Words(line);
    if (words.empty()) continue;
    const auto type = words.size() > 2 ? Number(words[1]) : std::nullopt;
    const auto config = words.size() > 2 ? Number(words[2]) : std::nullopt;
    if (!type || *type > UINT32_MAX || !config || fake_.scripts.size() >= kMostEvents) {
      ++damaged_;
      continue;
    }
    const EventCode code{static_cast<uint32_t>(*type), *config, 0, 0};
    if (words[0] == "event" && words.size() == 4) {
      const auto error = words[3] == "ok" ? std::optional<uint64_t>(0) : Number(words[3]);
      if (error && *error < 4096) {
        auto& script = fake_.scripts[code];
        script.open_errno = script.member_errno = static_cast<int>(*error);
        continue;
      }
    } else if (words[0] == "read" && words.size() == 6 && fake_.scripts.count(code) != 0) {
      const auto value = Number(words[3]), enabled = Number(words[4]), running = Number(words[5]);
      auto& steps = fake_.scripts[code].steps;
      if (value && enabled && running && steps.size() < kMostSteps) {
        steps.push_back({*value, *enabled, *running});
        continue;
      }
    }
    ++damaged_;
  }
}

}  // namespace headrace::probes::perf
