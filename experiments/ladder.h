// The optimisation ladder of the literature, measured on a table: what each rung changes in the
// reader, in the storage and for the trainer, beside the published values. Each rung keeps the
// changes of the rungs below it and is compared (A/B) with the rung that its gain is counted from.
//
//   base   whole maps, rows handed on as maps      + FF   flattened maps, batches made of row maps
//   + FM   columnar batches (FlatMap)              + CR   coalesced reads (gap and longest read
//   + FR   features ordered by popularity                 1.25 MiB)
//   + LS   large stripes (4 times the rows)        + RB   small worker batches, joined at the
//   + CL   rows clustered by session                      client (training batches of 4096 rows)
//   + DD   deduplication (IKJT), from the decoding to the trainer
//
// Tiers, each from the accounts of recorded runs:
//   reader   rows per CPU second of the reader's stages on one core, page cache warm (level 2)
//   memory   rows per second of a worker on all cores within half of the memory that it would take
//            (RB only, whose published gain was that of workers whose memory bounds their threads):
//            batches of a stripe against small ones, which a client joins in memory of its own
//   storage  rows per second of a modelled disk's time (150 MB/s, 8 ms to move the head): virtual
//            time, the same in every run
//   trainer  rows per CPU second of the reference DLRM (from RB on); and, for every rung, the rows
//            that reach the consumer behind that disk
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/study/characterization.h"
#include "experiments/study_folder.h"

namespace headrace::experiments {

struct LadderOptions {
  std::string name;      // name of the workload
  std::string table;     // a local folder with flattened maps
  std::string pipeline;  // pipeline file: what a model reads of the table
  std::string folder;    // tables of the rungs and pipeline files are written here
  std::string database;  // receives the ladder's runs
  std::string coread;    // log of jobs; empty: drawn by the popularity in the table's table.json
  std::string about;     // "16384 rows, 0.125 of the features"
  size_t pairs = 6;      // pairs of runs per rung in the tier "reader"
  size_t trainer_pairs = 4;
  double seconds = 1;  // CPU time of a run of the reader
  int cpu = 0;         // CPU on which the reader's and the trainer's runs are
  int cores = 1;       // threads of each stage in runs within a memory budget
  uint64_t seed = 1;
  uint64_t jobs = 300;  // jobs that are drawn; the measured job is not one of them
};

// The study steps that measure the ladder. `options` and `out` must outlive them; `*out` is
// complete when all steps are done. The table may be written by an earlier step.
std::vector<StudyStep> LadderSteps(const LadderOptions& options, analysis::Ladder* out);

}  // namespace headrace::experiments
