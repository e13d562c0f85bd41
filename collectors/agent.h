// Agent: the separate collector process, started from a command, watched and stopped. The collector
// is `headrace collect`, this same executable; its death never disturbs the pipeline.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::collectors {

struct AgentOptions {
  std::string executable;  // path of headrace; "" is /proc/self/exe
  int64_t pid = 0;         // the pipeline; 0 is the calling process
  std::string database;
  std::string run_name;                // "" lets the collector make one
  std::string pipeline_path;           // "" when there is none
  std::vector<std::string> arguments;  // further options of `headrace collect`
};

class Agent {
 public:
  // Starts the collector and waits until it records. Throws the collector's Error, e.g. when the
  // database cannot be opened.
  static Agent Start(const AgentOptions& options);

  Agent(Agent&& other) noexcept;
  Agent& operator=(Agent&&) = delete;
  ~Agent();  // stops it if still running

  int64_t run_id() const { return run_id_; }
  pid_t collector_pid() const { return pid_; }
  // True once the collector has ended by itself; Stop then says how it ended.
  bool ended();
  // Ends the recording after a last snapshot; call while the pipeline's accounts still exist.
  // Returns the run id. Throws Error when the collector died: kResources when the disk was full
  // (the run holds what fitted) or the database was displaced (where the run is now is said), its
  // own code where it ended with one, kFailure otherwise.
  int64_t Stop();

 private:
  Agent() = default;
  pid_t pid_ = -1;
  bool reaped_ = false;
  int status_ = 0;    // once reaped
  int answers_ = -1;  // what the collector says
  int64_t run_id_ = 0;
  std::string database_;
};

}  // namespace headrace::collectors
