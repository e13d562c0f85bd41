// Sheet: the figures of one table, one model and one host, each beside its published value.
//
// Facts of the table come as plain data (TableFacts) from whoever can read it; the rest comes from
// recorded runs. What is not known is a Quantity without value, and its reason.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"
#include "analysis/study/published.h"
#include "analysis/study/worker_limit.h"
#include "base/quantity.h"

namespace headrace::analysis {

// Sizes of a set of reads or streams, in bytes.
struct SizeFigures {
  uint64_t count = 0;
  double mean = 0, deviation = 0;
  double p5 = 0, p25 = 0, p50 = 0, p75 = 0, p95 = 0;
};
SizeFigures SizesOf(std::vector<double> bytes);  // all 0 for none

// What a table holds and what a projection takes of it; counted from metadata, or from a sample of
// rows where that is said. An empty optional: not known, and `why` has the reason under the
// member's name.
struct TableFacts {
  std::string table;  // as the user names it
  uint64_t files = 0, stripes = 0, rows = 0;
  double bytes = 0;          // size of the files
  double feature_bytes = 0;  // stored streams of all features, without row indexes
  double used_bytes = 0;     // stored streams of the projected features
  double stored_dense = 0, stored_sparse = 0, used_dense = 0, used_sparse = 0;  // features
  double derived = 0;         // outputs of transforms that the table does not store
  uint64_t sampled_rows = 0;  // rows of the sample behind the figures below
  std::optional<double> coverage, used_coverage;            // mean over features
  std::optional<double> list_length_mean, list_length_p99;  // ids per list, over lists
  std::optional<double> used_list_length_mean, used_list_length_p99;
  std::optional<double> hot_bytes_ratio;  // share of the bytes that serves 80 % of the traffic
  std::string hot_told_by;
  SizeFigures streams;  // if each projected stream were read on its own
  SizeFigures reads;    // the pipeline's reads, with streams joined
  std::optional<double> duplication_now, duplication_clustered;
  std::string sample_reason, hot_reason, duplication_reason;  // reasons for the empty figures above
};

// The conditions under which a worker was measured; shown on the sheet.
struct WorkerConditions {
  double cores = 0;
  std::optional<double> nic_bytes_per_s;  // modelled: source.throttle.bandwidth
  std::optional<double> memory_bytes;     // pipeline.memory
  std::vector<std::string> words;         // sentences, with how each was chosen
};

struct Prices {
  std::optional<double> core_hour, watts_per_core, energy_kwh;
};

// All inputs of a sheet. A pointer is null where that run was not made; the string after it says
// why. The runs must outlive the call.
struct SheetInputs {
  std::string name;   // "rm1", or the user's
  std::string model;  // the published model to compare with; empty: all of them
  // Share of the published features that the table has; empty: the table is not a scaled copy.
  std::optional<double> feature_fraction;
  TableFacts table;
  WorkerConditions conditions;
  const RunView* worker = nullptr;  // under `conditions`
  const RunView* fed = nullptr;     // its consumer has the published demand, scaled by cores
  std::string no_fed;
  const RunView* ceiling = nullptr;  // the reference trainer with one batch repeated
  std::string no_ceiling;
  Prices prices;
};

struct PublishedFigure {
  std::string model;
  Quantity value;   // as published
  Quantity scaled;  // times SheetFigure::scale
  std::string source, sureness;
};

struct SheetFigure {
  std::string key, name;
  Quantity here;
  std::string told_by;
  std::vector<PublishedFigure> published;
  double scale = 1;        // `here` is compared with published * scale
  std::string scaled_by;   // "1/16 of the features"; empty: not scaled
  std::string difference;  // "x0.4 of the published"; empty: as published
  std::string why;         // explanation by other figures of the sheet; may be empty
};

struct FigurePart {
  std::string key, title;
  std::vector<SheetFigure> figures;
};

// One part of the pipeline (fetch, decode, ...) on the worker.
struct StageUse {
  std::string name;
  Quantity cpu_share, cores, cpu_per_row, memory_bytes_per_s, nic_bytes_per_s;
};

struct Sheet {
  std::string name, model;
  WorkerConditions conditions;
  WorkerLimit limit;
  const PublishedLimit* published_limit = nullptr;
  std::vector<FigurePart> parts;
  std::vector<StageUse> stages;
  int64_t worker_run = 0;
  // The figure with that key, or null.
  const SheetFigure* Find(const std::string& key) const;
};

}  // namespace headrace::analysis
