// AbRunner: runs two sides of a comparison in interleaved pairs and has each run recorded like any
// other: `headrace run PIPELINE ...`, or `headrace profile -- sh -c COMMAND`, as a child process.
//
// Two neighbouring pairs are a block: the first one's order is drawn, the second has the other
// order (ABBA or BAAB), so that neither a steady drift of the machine nor the advantage of running
// second favours one side.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/run/run_figures.h"

namespace headrace::experiments {

// What one side runs: a pipeline file with settings on top, or a command of the shell.
struct AbSide {
  std::string label;                   // "A"; names runs and errors
  std::string pipeline;                // file; empty: `command`
  std::vector<std::string> settings;   // KEY=VALUE, as `run --set`
  std::vector<std::string> arguments;  // further options of `headrace run`, or of `profile`
  std::string command;                 // for sh -c
};

struct AbRun {
  int64_t run_id = 0;
  analysis::RunFigures figures;
};

struct AbPair {
  size_t index = 0;      // from 0
  bool b_first = false;  // the order in which the two ran
  AbRun a, b;
};

struct AbOptions {
  AbSide a, b;
  size_t pairs = 12;           // at most
  int64_t duration_ns = 0;     // of each run of a pipeline; commands end by themselves
  int64_t budget_ns = 0;       // no pair begins that would end after this time; 0: no limit
  size_t warmup = 0;           // runs of each side before the pairs, not compared and not kept
  std::string prepare;         // for sh -c before each run; not part of the run
  std::string database, name;  // runs are "NAME-A-3", with the tags "compare NAME NAME-A"
  uint64_t seed = 1;           // of the orders
  bool quiet = false;          // no progress on standard error
  // Called after each pair; false: that was the last.
  std::function<bool(const AbPair&)> finished;
};

enum class AbEnd : uint8_t {
  kAllPairs,
  kStopped,      // `finished` said so
  kBudget,       // the time is used up
  kInterrupted,  // by SIGINT or SIGTERM; the pairs before are whole
};

struct AbResult {
  std::vector<AbPair> pairs;  // in the order in which they ran
  AbEnd end = AbEnd::kAllPairs;
  int64_t wall_ns = 0;
};

// The drawn orders of `pairs` pairs: true where B runs first.
std::vector<bool> AbOrders(size_t pairs, uint64_t seed);

// Installs the interrupt handler. Throws the child's Error with the side in front ("side B: ...")
// when a run fails; its recordings stay in the database.
AbResult RunPairs(const AbOptions& options);

}  // namespace headrace::experiments
