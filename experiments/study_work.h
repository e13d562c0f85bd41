// What a study characterizes, and under which conditions: the published models as generated tables,
// scaled to this host, or a table of the user's.
#pragma once
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "analysis/study/characterization.h"
#include "experiments/study_files.h"
#include "reader/pipeline/spec.h"
#include "workloads/spec.h"

namespace headrace::experiments {

// The command's options; "" and nothing: not given.
struct StudyOptions {
  std::vector<std::string> targets;
  std::string folder = "characterization", pipeline, coread;
  bool quick = false, fresh = false, quiet = false;
  bool ladder_only = false, no_ladder = false;
  std::optional<size_t> pairs;
  std::optional<uint64_t> rows;
  std::optional<double> features;
  uint64_t seed = 1;
  std::string duration, nic_rate, memory;
  std::vector<std::string> set;
  analysis::Prices prices;
};

// Recommended sizes; those of a quick study only suffice to find signs of effects.
struct StudySizes {
  double worker_s, fed_s, ceiling_s, features;
  uint64_t rows, rm3_rows, stripe_rows, rm3_stripe_rows;
};
StudySizes SizesFor(bool quick);

// One workload of the study: a generated table, or the user's.
struct StudyWork {
  std::string name, model;
  std::string asked;                            // as the user named it
  std::optional<workloads::WorkloadSpec> spec;  // of a generated table
  std::string pipeline;                         // file
  std::vector<std::string> settings;            // settings of the worker's run
  // Above 0: all operators in one stage with this many threads.
  int one_stage_threads = 0;
  analysis::SheetInputs inputs;
  std::optional<int64_t> worker, fed, ceiling;  // run ids
};

// The workloads that were asked for, with their conditions on `cores` cores. Throws Error kUsage
// for words that name none, and as LoadSpec, LoadPipeline and ReadWholeFile do.
std::list<StudyWork> ChooseWork(const StudyOptions& options, const StudySizes& sizes, double cores);

// rm1 as a study would generate it. What it reads decides how the NIC is scaled for all generated
// workloads.
StudyWork ReferenceWork(const StudyOptions& options, const StudySizes& sizes, double cores);

// The pipeline of a workload with its settings and those of --set. Throws as LoadPipeline.
reader::PipelineSpec LoadSpecOf(const StudyWork& work, const StudyOptions& options);

// All inputs that decide a study's results: with other inputs it is another study.
StudyInputs InputsOf(const std::list<StudyWork>& works, const StudyOptions& options, double cores);

// About how many bytes a study's tables take on disk, including the ladder's.
double BytesOf(const std::list<StudyWork>& works, const StudyOptions& options);

}  // namespace headrace::experiments
