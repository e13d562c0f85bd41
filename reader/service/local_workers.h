// LocalWorkers: the workers of a job as child processes of its dispatcher, or of whoever lends them
// to it, on one machine. They end with that process. One that ends on its own is started again,
// after a pause that grows while it does so soon.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace headrace::reader::service {

// One thread.
class LocalWorkers {
 public:
  // `command`: what a worker is, argv[0] a path. `name`: what lines call it.
  explicit LocalWorkers(std::vector<std::string> command, std::string name = "worker process")
      : command_(std::move(command)), name_(std::move(name)) {}
  ~LocalWorkers();  // ends them: SIGTERM, and SIGKILL after 5 s
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;

  // So many are to run. It ends none: fewer come about by draining, and a worker that ended with
  // exit code 0 was drained and is wanted no longer. Never more than most().
  void ScaleTo(uint32_t workers) { wanted_ = std::min(workers, most_); }
  // Asks those that were started last to finish what they have and to end, until no more than so
  // many are left that were not asked. Turn kills one that is there at `until_ns`.
  void DrainTo(uint32_t workers, int64_t until_ns);
  // Those that were not asked to end, and all that are there.
  uint32_t working() const { return running() - static_cast<uint32_t>(draining_.size()); }
  uint32_t running() const { return static_cast<uint32_t>(children_.size()); }
  // As many as there is room for: one that ends with exit code kResources is one too many. At least
  // one, which is started again and again.
  uint32_t most() const { return most_; }
  // There may be room for more again.
  void ForgetMost() { most_ = UINT32_MAX; }
  // Call a few times a second: looks who has ended, starts those that are missing. Returns a line
  // for each that failed. Throws Error kResources where the system makes no process.
  std::vector<std::string> Turn(int64_t now_ns);

 private:
  void Start(int64_t now_ns);
  void Ended(pid_t pid, int status, int64_t now_ns, std::vector<std::string>* failures);
  void Bound(uint32_t refused, std::vector<std::string>* failures);

  const std::vector<std::string> command_;
  const std::string name_;
  uint32_t wanted_ = 0, most_ = UINT32_MAX;
  std::map<pid_t, int64_t> children_;  // with the time of their start
  std::map<pid_t, int64_t> draining_;  // of them, those that were asked to end, until when
  int64_t pause_ns_ = 0, next_start_ns_ = 0;
};

}  // namespace headrace::reader::service
