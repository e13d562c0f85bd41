// Runs the programs with known stacks, and a Sink that remembers.
#pragma once
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "probes/probe.h"

namespace headrace::probes::stack {

// target.c, compiled with ("with") or without ("without") frame pointers; ends with this object.
class TargetProcess {
 public:
  explicit TargetProcess(const std::string& mode, const std::string& kind = "with",
                         const std::string& path = "", uint32_t uid = 0) {
    const std::string program =
        path.empty() ? std::string(HEADRACE_BINARY_DIR) + "/stack_target_" + kind : path;
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      unsetenv("HEADRACE_ACCOUNT_DIR");  // another test may have set it
      dup2(in[0], 0);
      dup2(out[1], 1);
      if (uid != 0 && (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0))
        _exit(126);
      execl(program.c_str(), program.c_str(), mode.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    char line[16];
    ready_ = read(out[0], line, sizeof line) > 0;
    close(out[0]);
  }
  ~TargetProcess() { End(); }

  int64_t pid() const { return pid_; }
  bool ready() const { return ready_; }
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(in_);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  bool ready_ = false;
};

struct RecordingSink : Sink {
  using Key = std::tuple<std::string, int64_t, std::optional<uint32_t>, std::string>;
  std::map<Key, StackSample> stacks;  // kind, pid, operator, folded
  std::map<Key, StackSample> forgotten;
  std::map<std::string, std::pair<int64_t, std::optional<int64_t>>> lost;
  std::vector<Measurement> measurements;

  void Add(const Measurement& m) override {
    EXPECT_NE(FindMetric(m.metric), nullptr) << m.metric;
    measurements.push_back(m);
  }
  void AddStack(const StackSample& s) override {
    stacks[{std::string(s.kind), s.pid, s.operator_index, s.folded}] = s;
  }
  void Lost(std::string_view what, int64_t n, std::optional<int64_t> total) override {
    lost[std::string(what)] = {n, total};
  }

  // Samples() and Share() are of what comes after this.
  void Forget() { forgotten = stacks; }

  int64_t Samples() const {
    int64_t all = 0;
    for (const auto& [key, s] : stacks) all += s.samples;
    for (const auto& [key, s] : forgotten) all -= s.samples;
    return all;
  }
  // Share of the time in stacks that contain `text`.
  double Share(const std::string& text) const {
    double all = 0, some = 0;
    const auto add = [&](const StackSample& s, double sign) {
      all += sign * static_cast<double>(s.time_ns);
      if (s.folded.find(text) != std::string::npos) some += sign * static_cast<double>(s.time_ns);
    };
    for (const auto& [key, s] : stacks) add(s, 1);
    for (const auto& [key, s] : forgotten) add(s, -1);
    return all > 0 ? some / all : 0;
  }
  double OperatorShare(std::optional<uint32_t> index) const {
    double all = 0, some = 0;
    for (const auto& [key, s] : stacks) {
      all += static_cast<double>(s.time_ns);
      if (s.operator_index == index) some += static_cast<double>(s.time_ns);
    }
    return all > 0 ? some / all : 0;
  }
  std::string Text() const {
    std::string text;
    for (const auto& [key, s] : stacks) {
      text += s.folded + " " + std::to_string(s.samples) + " op " +
              (s.operator_index ? std::to_string(*s.operator_index) : "-") + "\n";
    }
    return text;
  }
};

inline Target TargetOf(const TargetProcess& process) {
  Target target;
  target.root_pid = process.pid();
  target.pids = {process.pid()};
  return target;
}

// Reads until `samples` were taken, for ten seconds at most.
inline void ReadUntil(Probe& probe, RecordingSink& sink, int64_t samples) {
  const int64_t end = MonotonicNs() + 10'000'000'000;
  while (sink.Samples() < samples && MonotonicNs() < end) {
    usleep(50'000);
    probe.Read(sink);
  }
}

}  // namespace headrace::probes::stack
