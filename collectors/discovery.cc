#include "collectors/discovery.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/account_tree.h"
#include "collectors/agent.h"
#include "collectors/left_behind.h"
#include "collectors/recorded_mark.h"
#include "collectors/segment_claims.h"
#include "probes/process.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kRetryNs = 60'000'000'000;    // a process that could not be recorded
constexpr int64_t kSecondLookNs = 500'000'000;  // at what was not there before

std::string Image(int64_t pid) {
  char target[4096];
  const ssize_t n = readlink(fmt::format("/proc/{}/exe", pid).c_str(), target, sizeof target);
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : "";
}

bool IsAncestor(int64_t ancestor, int64_t pid) {
  for (int depth = 0; depth < 64 && pid > 1; depth++) {
    if (pid == ancestor) return true;
    const auto stat = probes::ReadProcessStat(pid);
    if (!stat) return false;
    pid = stat->parent_pid;
  }
  return false;
}

}  // namespace

int64_t PipelineRoot(int64_t pid) {
  const std::string image = Image(pid);
  for (int depth = 0; depth < 64; depth++) {
    const auto stat = probes::ReadProcessStat(pid);
    if (!stat || stat->parent_pid <= 1 || image.empty()) return pid;
    const auto own = probes::ReadProcessIds(pid),
               of_parent = probes::ReadProcessIds(stat->parent_pid);
    if (!own || !of_parent || own->real_uid != of_parent->real_uid ||
        Image(stat->parent_pid) != image ||
        getsid(static_cast<pid_t>(stat->parent_pid)) != getsid(static_cast<pid_t>(pid))) {
      return pid;
    }
    pid = stat->parent_pid;
  }
  return pid;
}

namespace {

class Discovery {
 public:
  explicit Discovery(const DiscoveryOptions& options)
      : options_(options), store_(std::in_place, options.database) {}

  void Run() {
    int64_t next_retain_ns = 0;
    while (!Stopped()) {
      EndRecordings();
      size_t left_out = 0;
      const std::vector<SegmentClaim> claims = ReadSegmentClaims(&left_out);
      if (left_out > 0) {
        SayLimit(fmt::format("{} files named like instrumentation are not looked at: the limit is "
                             "{}, and half of that for one user",
                             left_out, kMostClaims),
                 &files_said_);
      }
      std::vector<std::string> foreign;
      for (const SegmentClaim& claim : claims) {
        if (claim.pid != 0) continue;
        foreign.push_back(fmt::format("{} ({})", Printable(claim.path, 200), claim.refusal));
      }
      const bool due = MonotonicNs() >= next_retain_ns;
      SayForeign(foreign, due);
      // A process that has itself recorded opens its accounts first, and its recorder marks them
      // a little later: what is new gets a second look before anything is started.
      std::set<std::string> paths;
      bool is_any_new = false;
      for (const SegmentClaim& claim : claims) {
        if (claim.pid == 0) continue;
        paths.insert(claim.path);
        if (seen_.contains(claim.path)) {
          Consider(claim);
        } else {
          is_any_new = true;
        }
      }
      seen_ = std::move(paths);
      if (due) {
        next_retain_ns = MonotonicNs() + options_.retain_ns;
        Retain();
      }
      const int64_t wait_ns =
          is_any_new ? std::min(kSecondLookNs, options_.poll_ns) : options_.poll_ns;
      const int64_t until = MonotonicNs() + wait_ns;
      while (MonotonicNs() < until && !Stopped()) {
        SleepUntilNs(std::min(until, MonotonicNs() + 100'000'000));
      }
    }
  }

 private:
  bool Stopped() const { return options_.stop && options_.stop(); }
  void Log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  void EndRecordings() {
    for (auto it = agents_.begin(); it != agents_.end();) {
      Agent& agent = it->second.agent;
      if (!agent.ended()) {
        ++it;
        continue;
      }
      try {
        Log(fmt::format("run {} of process {} is recorded", agent.Stop(), it->first));
      } catch (const Error& error) {
        Log(fmt::format("process {}: {}", it->first, error.what()));
        refused_[it->first] = MonotonicNs() + kRetryNs;
      }
      it = agents_.erase(it);
    }
  }

  // Has the pipeline of a process recorded that keeps accounts, unless somebody does it already.
  void Consider(const SegmentClaim& claim) {
    for (const auto& [root, recorded] : agents_) {
      if (IsAncestor(root, claim.pid)) return;
    }
    const int64_t root = PipelineRoot(claim.pid);
    const auto wait = refused_.find(root);
    if (wait != refused_.end() && MonotonicNs() < wait->second) return;
    if (IsBeingRecorded(claim.path)) return;
    const auto ids = probes::ReadProcessIds(root);
    if (!ids || !HasRoom(root, ids->real_uid)) return;
    AgentOptions agent;
    agent.executable = options_.executable;
    agent.pid = root;
    agent.database = options_.database;
    agent.arguments = options_.arguments;
    try {
      agents_.emplace(root, Recorded{Agent::Start(agent), ids->real_uid});
    } catch (const Error& error) {
      Log(fmt::format("process {} cannot be recorded: {}", root, error.what()));
      refused_[root] = MonotonicNs() + kRetryNs;
      return;
    }
    const int64_t run_id = agents_.at(root).agent.run_id();
    Log(fmt::format("recording process {} as run {}", root, run_id));
    try {
      Note(run_id);
    } catch (const Error& error) {
      Log(fmt::format("run {}: what was seen beside it is not noted: {}", run_id, error.what()));
    }
  }

  bool HasRoom(int64_t root, uint32_t user) {
    size_t of_user = 0;
    for (const auto& [pid, recorded] : agents_) of_user += recorded.user == user;
    const size_t most_of_user =
        user == 0 ? options_.most_pipelines : std::max<size_t>(1, options_.most_pipelines / 2);
    if (agents_.size() < options_.most_pipelines && of_user < most_of_user) return true;
    SayLimit(fmt::format("process {} waits: {} pipelines are recorded, {} of them of its user {}; "
                         "the limit is {}, and half of that for one user",
                         root, agents_.size(), of_user, user, options_.most_pipelines),
             &room_said_);
    return false;
  }

  // A limit that was met: once in the log, and in the runs that begin from then on.
  void SayLimit(const std::string& text, bool* said) {
    if (std::exchange(*said, true)) return;
    Log(text);
    limits_note_ += (limits_note_.empty() ? "" : "; ") + text;
  }

  void Note(int64_t run_id) {
    const std::string between = foreign_note_.empty() || limits_note_.empty() ? "" : "; ";
    const std::string note = foreign_note_ + between + limits_note_;
    if (note.empty()) return;
    store_->SetProbe(run_id, "discovery", "degraded", note,
                     foreign_note_.empty() ? "" : "remove the files", "");
  }

  // Files that are no process's accounts: said when the first are seen, and when there are more,
  // but not at every look; who makes them must not be able to fill the journal.
  void SayForeign(const std::vector<std::string>& files, bool due) {
    foreign_note_.clear();
    said_ = std::min(said_, files.size());  // where there are more again, that is said again
    if (files.empty()) return;
    foreign_note_ =
        fmt::format("{} named like instrumentation {} no process's, and ignored: {}{}",
                    files.size() == 1 ? "a file" : fmt::format("{} files", files.size()),
                    files.size() == 1 ? "is" : "are", files[0], files.size() == 1 ? "" : ", ...");
    if (files.size() <= said_ || (said_ > 0 && !due)) return;
    said_ = files.size();
    Log(foreign_note_);
  }

  void Retain() {
    if (store_->IsDisplaced()) {
      Log(fmt::format(
          "{} was deleted or replaced: what is recorded from now on goes into a new one",
          options_.database));
      store_.emplace(options_.database);
    }
    for (const int64_t id : store_->Retain(options_.retention)) {
      Log(fmt::format("removed run {}", id));
    }
    RemoveLeftBehind();
    std::erase_if(refused_, [](const auto& entry) { return !probes::IsAlive(entry.first); });
  }

  const DiscoveryOptions& options_;
  std::optional<RunStore> store_;  // always one: made anew where its file is gone
  struct Recorded {
    Agent agent;
    uint32_t user;
  };
  std::map<int64_t, Recorded> agents_;  // by the root's pid
  std::map<int64_t, int64_t> refused_;  // when to try again
  std::set<std::string> seen_;          // the accounts of the look before
  std::string foreign_note_;            // "" while there are none
  size_t said_ = 0;                     // of how many foreign files
  std::string limits_note_;             // "" while none was met
  bool files_said_ = false, room_said_ = false;
};

}  // namespace

void Discover(const DiscoveryOptions& options) { Discovery(options).Run(); }

}  // namespace headrace::collectors
