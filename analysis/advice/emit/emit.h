// Emit: settings that a run suggests for somebody else's loader, in the words of that loader: the
// keyword arguments of torch.utils.data.DataLoader, or the options of tf.data. Each setting has its
// reason from measured figures. Settings that the run says nothing about are named, but not set.
//
// A run of a loader wrapped by the Python package (docs/python.md) has operators, so the model can
// predict what a change gains. For a loader seen from outside (docs/outside.md) only an upper bound
// of the gain is known.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/program/allocation.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

enum class EmitTarget : uint8_t { kDataLoader, kTfData };

struct EmittedSetting {
  std::string name;        // "num_workers", "options.threading.private_threadpool_size"
  std::string value;       // as Python writes it: "4", "True"
  std::string was;         // likewise; empty: the run does not show it
  std::string why;         // a sentence with measured figures
  bool is_call = false;    // `name` is an argument of calls in the program: shown, not assigned
  bool is_choice = false;  // changes what the program sees (order): shown as a comment only
};

// A setting on which the run is silent.
struct NotEmitted {
  std::string name, why;
};

struct Emitted {
  EmitTarget target = EmitTarget::kDataLoader;
  std::string basis;  // what it rests on, in words
  std::vector<EmittedSetting> settings;
  std::vector<NotEmitted> unknown;
  std::optional<double> now;        // batches per second observed
  std::optional<double> predicted;  // with all settings; none: see gain_note
  Interval predicted_interval;      // 90 %
  Interval gain_interval;           // 90 %, of predicted / now - 1
  std::optional<double> at_most;    // times the rate, where there is no prediction
  std::string gain_note;            // why there is no prediction; empty: there is
  std::string doubt;                // why the predicted gain may be none; empty: it is sure
  std::string doubt_command;        // that finds out
  // Resident memory of one worker process (each worker's peak, averaged over workers), and of all
  // workers together now and with the new settings. RSS counts pages shared with the trainer once
  // in each process.
  std::optional<double> worker_bytes, workers_now_bytes, workers_bytes;
  std::string memory_note;  // why these are not known, or what held a number back; may be empty
};

// Throws Error kInconclusive where the run is none of such a loader, or says too little.
Emitted EmitDataLoader(const RunView& run, const Budget& budget);
Emitted EmitTfData(const RunView& run, const Budget& budget);

// As Python to be pasted, the reasons as comments; lines of at most 100 columns.
std::string EmitPython(const RunView& run, const Emitted& emitted);

}  // namespace headrace::analysis
