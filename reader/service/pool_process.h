// PoolProcess: a pool of workers as a process: it listens for the dispatchers of jobs and for the
// machines that lend workers, and answers `headrace service status|end`.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "reader/service/listening.h"
#include "reader/service/pool.h"

namespace headrace::reader::service {

struct PoolProcessOptions : Listening {
  std::function<bool()> interrupted = {};
  // Called ten times a second, by Run's thread. `is_parting`: machines finish what they have.
  std::function<void(bool is_parting)> watch = {};
  std::function<std::string(const PoolStatus&)> describe = {};  // what `status` answers
  int64_t parting_ns = 30'000'000'000;  // the longest that machines may take to finish
};

class PoolProcess {
 public:
  // Listens. Throws Error kUsage when another process has the folder; otherwise as Listen.
  explicit PoolProcess(PoolProcessOptions options);
  ~PoolProcess();

  // Returns once it was interrupted (false) or told to end (true), and all machines have let their
  // workers finish, or had the time to.
  bool Run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::reader::service
