// StackProgram: the user-space half of the stack sampling programs
// (probes/bpf/{cpu,off_cpu}_stack.bpf.c): loads one, tells it which processes to sample, and moves
// its counts into a StackFolder. Not for use by several threads.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "probes/bpf/program.h"
#include "probes/bpf/stack_record.h"
#include "probes/stack/stack_folder.h"

struct ring_buffer;

namespace headrace::probes::stack {

struct StackProgramOptions {
  uint32_t max_stacks = 1024;  // in the kernel, per generation: between two reads or a few more
  uint32_t max_counts = 4096;
  uint32_t ring_bytes = 4 << 20;  // copied stacks between two reads, 10 KiB each
  bool with_kernel = true;
  std::map<std::string, uint64_t> constants;  // of the program

  // As above, scaled to this machine's CPUs; HEADRACE_BPF_MAP_ENTRIES and HEADRACE_BPF_RING_BYTES
  // replace the sizes, for tests of losses.
  static StackProgramOptions ForThisMachine();
};

class StackProgram {
 public:
  StackProgram(const std::string& name, StackProgramOptions options);
  ~StackProgram();
  StackProgram(const StackProgram&) = delete;

  // Loads the program, and attaches its functions for tracepoints.
  Availability Load(const Host& host, const Target& target);
  // Attaches `function` to the software clock of every CPU, at `frequency` per second.
  Availability AttachClock(const std::string& function, int frequency);

  // Updates the processes, and reads the mappings of new ones. Call it before Read.
  void SetTarget(const Target& target, StackFolder& folder);
  // Moves what was counted since the last call. `causes`: names by number, for the first frame.
  void Read(StackFolder& folder, const std::vector<std::string>& causes);
  // Off-CPU: adds the periods that go on now, of at least `min_ns`, with StackFolder::AddOpen.
  void ReadOpen(StackFolder& folder, const std::vector<std::string>& causes, int64_t min_ns);
  void EmitLosses(Sink& sink);
  uint64_t Global(const std::string& name) const { return program_.Global(name); }

 private:
  struct KeyHash {
    size_t operator()(const hr_stack_key& key) const;
  };
  struct KeyEqual {
    bool operator()(const hr_stack_key& a, const hr_stack_key& b) const;
  };
  struct Generation {
    int stacks_fd = -1, counts_fd = -1;
    std::unordered_map<hr_stack_key, hr_stack_count, KeyHash, KeyEqual> credited;
    std::unordered_map<uint64_t, RawStack> known;  // by id, resolved
  };

  void ReadCounts(Generation& generation, StackFolder& folder,
                  const std::vector<std::string>& causes);
  void PaceCopies();
  static SampleOrigin OriginOf(const hr_stack_key& key, const std::vector<std::string>& causes);
  const RawStack& Resolve(Generation& generation, uint64_t id, int64_t pid, StackFolder& folder);
  void Clear(Generation& generation);

  int TakeCopy(const void* data, size_t size);
  static int TakeCopyFor(void* self, void* data, size_t size);

  bpf::Program program_;
  StackProgramOptions options_;
  std::vector<int> events_;
  Generation generations_[2];
  uint32_t filled_ = 0;  // index of the generation that the program fills
  int roots_fd_ = -1;
  ring_buffer* ring_ = nullptr;
  StackFolder* folder_ = nullptr;                  // while the ring is read
  std::unordered_map<uint64_t, RawStack> copied_;  // by id
  std::deque<uint64_t> copied_order_;              // oldest first
  struct Told {
    int64_t looked_ns = 0;  // when the process was looked at for `root`
    hr_stack_root root = {};
  };
  std::map<int64_t, Told> unwound_;  // what the program was told about where each process's code is
  uint32_t one_in_ = 1;              // one in this many of the wanted copies is made
  int64_t loaded_ns_ = 0;            // periods that began before are not counted
  uint64_t lost_copies_ = 0;         // until the last reading
  size_t copies_taken_ = 0;          // in this reading
  bool old_is_pending_ = false;      // the generation that is not filled was not yet cleared
  // Room for reading maps, kept between reads.
  std::vector<hr_stack_key> keys_;
  std::vector<hr_stack_count> values_;
  int64_t missing_ = 0;  // samples whose stack was not found
};

}  // namespace headrace::probes::stack
