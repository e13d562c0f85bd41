// Run samples: figures of the table that a run has read, taken from its first rows when the
// recording has ended, and stored as facts of the run (view run_fact). A sample is one file and one
// HR_RUN_SAMPLE; what reads the fact is a recommendation of analysis.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "collectors/store/store.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"

namespace headrace::experiments {

// What a sample may look at. `stop` says that the user wants no more of it.
struct SampledTable {
  const reader::PipelineSpec& spec;
  const reader::Table& table;
  const std::function<bool()>& stop;
};

struct RunSample {
  // None where the table has nothing of what is asked. Takes half a second of a machine that does
  // nothing else, two at most.
  std::vector<collectors::RunFact> (*take)(const SampledTable&) = nullptr;
};

#define HR_RUN_SAMPLE(name, function)               \
  [[maybe_unused]] static const bool HR_REGISTRAR = \
      ::headrace::Registry<::headrace::experiments::RunSample>::Global().Add(name, {(function)})

// The facts of all samples. `opened`: the table as the run has it open; its files are opened anew
// only where reading them is throttled. None of tables that are far away, cold, encrypted or
// repeated, and what is wrong with a table is no error here: the run itself has said it.
std::vector<collectors::RunFact> TakeRunSamples(const reader::PipelineSpec& spec,
                                                const reader::Table& opened,
                                                const std::function<bool()>& stop);

}  // namespace headrace::experiments
