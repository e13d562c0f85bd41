// What the threads of TensorFlow's and JAX's run-times compute, by sampled native stacks
// (docs/stacks.md): batches or the step. Both run in pools whose threads have the same names, and
// the trainer's main thread waits for them in one call.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct NativeTime {
  double loads_s = 0;   // in tf.data, in Python functions that it calls, or decoding
  double step_s = 0;    // in convolutions, products of matrices, gradients, or compiled graphs
  double either_s = 0;  // element by element: of whichever most of the rest is
  int64_t samples_count = 0;  // of the first two

  // Of what is known, most of it by far. The step fills `waits_s`, in which the trainer's thread
  // waits for others, also if all of it ran on `cores` at once fills much of it; loading takes much
  // of `steady_s`, the whole time of that thread.
  bool IsStep(double waits_s, double cores) const;
  bool IsLoading(double steady_s) const;
};

// Why threads of C++ wait for each other: at a lock, or for a condition, such as having something
// to do, or room for what was made. By stacks off the CPU; the kernel has both as locks.
struct NativeWaits {
  double lock_s = 0, condition_s = 0, unknown_s = 0;  // unknown: without a stack
  int64_t samples_count = 0;
  bool AreConditions() const;  // nearly all of them
};
// Of the threads of that name in these processes.
NativeWaits LookAtNativeWaits(const RunView& run, const std::vector<int64_t>& process_ids,
                              const std::string& thread);

// Of the threads of these processes on a CPU. Nothing where no function of such a run-time was
// seen.
std::optional<NativeTime> LookAtNative(const RunView& run, const std::vector<int64_t>& process_ids);

}  // namespace headrace::analysis
