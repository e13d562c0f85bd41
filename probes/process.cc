#include "probes/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace headrace::probes {
namespace {

std::optional<std::string> ReadSmallFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 && text.size() < (1u << 20)) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  if (n < 0) return std::nullopt;
  return text;
}

int64_t TickNs() {
  static const int64_t ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  return ns;
}

std::optional<TaskTime> ParseTaskTime(const char* text) {
  long long on_cpu, runnable;
  if (std::sscanf(text, "%lld %lld", &on_cpu, &runnable) != 2) return std::nullopt;
  return TaskTime{on_cpu, runnable};
}

std::optional<TaskTime> ReadTaskTimeAt(const std::string& path) {
  const auto text = ReadSmallFile(path);
  return text ? ParseTaskTime(text->c_str()) : std::nullopt;
}

}  // namespace

std::optional<TaskTime> ReadTaskTime(int64_t pid, int64_t tid, const std::string& root) {
  return ReadTaskTimeAt(fmt::format("{}/{}/task/{}/schedstat", root, pid, tid));
}

namespace {
constexpr int kMostOpenInAll = 256;
std::atomic<int> open_in_all = 0;
}  // namespace

TaskTimeReader::TaskTimeReader(int64_t pid, size_t most_open) : pid_(pid), most_open_(most_open) {}

TaskTimeReader::TaskTimeReader(TaskTimeReader&& other) noexcept
    : pid_(other.pid_), most_open_(other.most_open_), files_(std::exchange(other.files_, {})) {}

TaskTimeReader::~TaskTimeReader() {
  for (const auto& [tid, fd] : files_) close(fd);
  open_in_all -= static_cast<int>(files_.size());
}

std::optional<TaskTime> TaskTimeReader::Read(int64_t tid) {
  auto file = files_.find(tid);
  if (file == files_.end()) {
    if (files_.size() >= most_open_ || open_in_all >= kMostOpenInAll) {
      return ReadTaskTime(pid_, tid);
    }
    const int fd =
        open(fmt::format("/proc/{}/task/{}/schedstat", pid_, tid).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    file = files_.emplace(tid, fd).first;
    ++open_in_all;
  }
  char text[96];
  const ssize_t n = pread(file->second, text, sizeof text - 1, 0);
  if (n > 0) {
    text[n] = 0;
    return ParseTaskTime(text);
  }
  close(file->second);  // it ended; another thread of this number has a file of its own
  files_.erase(file);
  --open_in_all;
  return std::nullopt;
}

std::optional<ProcessStat> ReadProcessStat(int64_t pid, const std::string& root) {
  const auto text = ReadSmallFile(fmt::format("{}/{}/stat", root, pid));
  if (!text) return std::nullopt;
  // The name stands in parentheses and may itself contain blanks and parentheses.
  const size_t open = text->find('('), close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.name = text->substr(open + 1, close - open - 1);
  long long parent, session, user, system, reaped_user, reaped_system, threads, start, rss;
  if (std::sscanf(text->c_str() + close + 1,
                  " %c %lld %*d %lld %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld %*d %*d %lld "
                  "%*d %lld %*u %lld",
                  &stat.state, &parent, &session, &user, &system, &reaped_user, &reaped_system,
                  &threads, &start, &rss) != 10) {
    return std::nullopt;
  }
  stat.parent_pid = parent;
  stat.session_id = session;
  const long long most = std::numeric_limits<int64_t>::max() / TickNs() / 2;
  stat.cpu_ns = (std::clamp(user, 0LL, most) + std::clamp(system, 0LL, most)) * TickNs();
  stat.reaped_cpu_ns =
      (std::clamp(reaped_user, 0LL, most) + std::clamp(reaped_system, 0LL, most)) * TickNs();
  stat.num_threads = threads;
  stat.start_ticks = start;
  const int64_t page = sysconf(_SC_PAGESIZE);
  stat.rss_bytes = std::clamp<int64_t>(rss, 0, std::numeric_limits<int64_t>::max() / page) * page;
  return stat;
}

std::optional<ProcessIo> ReadProcessIo(int64_t pid, const std::string& root) {
  const auto text = ReadSmallFile(fmt::format("{}/{}/io", root, pid));
  if (!text) return std::nullopt;
  const auto field = [&](const char* name) -> std::optional<int64_t> {
    const size_t at = text->find(name);
    if (at == std::string::npos) return std::nullopt;
    return std::strtoll(text->c_str() + at + std::strlen(name), nullptr, 10);
  };
  const auto rchar = field("rchar: "), wchar = field("wchar: ");
  const auto read = field("\nread_bytes: "), written = field("\nwrite_bytes: ");
  if (!rchar || !wchar || !read || !written) return std::nullopt;
  return ProcessIo{*read, *written, *rchar, *wchar};
}

std::string ReadCommandLine(int64_t pid, const std::string& root) {
  std::string text = ReadSmallFile(fmt::format("{}/{}/cmdline", root, pid)).value_or("");
  while (!text.empty() && text.back() == 0) text.pop_back();
  for (char& c : text) {
    if (c == 0) c = ' ';
  }
  return text;
}

std::optional<uint32_t> ReadOwner(int64_t pid, const std::string& root) {
  struct stat info;
  if (stat(fmt::format("{}/{}", root, pid).c_str(), &info) != 0) return std::nullopt;
  return info.st_uid;
}

std::string ThreadGroupLabel(std::string_view name, bool first) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  if (end < name.size()) {
    while (end > 0 && std::string_view("-_:/").find(name[end - 1]) != std::string_view::npos) --end;
  }
  std::string label(name.substr(0, end == 0 ? name.size() : end));
  return first ? label + " (main)" : label;
}

std::optional<HostCpu> ReadHostCpu(const std::string& root) {
  const auto text = ReadSmallFile(root + "/stat");
  long long user, nice, system, idle, wait, irq, softirq, steal;
  if (!text || std::sscanf(text->c_str(), "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &user,
                           &nice, &system, &idle, &wait, &irq, &softirq, &steal) != 8) {
    return std::nullopt;
  }
  HostCpu cpu;
  cpu.busy_ns = (user + nice + system + irq + softirq + steal) * TickNs();
  for (size_t at = text->find("\ncpu"); at != std::string::npos; at = text->find("\ncpu", at + 1)) {
    cpu.num_cpus++;
  }
  return cpu;
}

bool IsAlive(int64_t pid, int64_t start_ticks, const std::string& root) {
  const auto stat = ReadProcessStat(pid, root);
  if (!stat || stat->state == 'Z' || stat->state == 'X') return false;
  return start_ticks == 0 || stat->start_ticks == start_ticks;
}

}  // namespace headrace::probes
