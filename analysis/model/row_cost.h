// RowCost: what one row delivered to the consumer costs on each resource of a node and on what
// nodes share, from one recorded run, and how it varies between windows of the run.
//
// CPU is that of the recorded machine's cores; bytes and requests are counted, and are the same on
// any machine. The consumer's own work is left out: it stays where the batches go.
#pragma once
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// Per row. Empty: not recorded (RowCost says why).
struct RowFigures {
  std::vector<double> operator_cpu_s;                   // parallel to RowCost::operators
  double other_cpu_s = 0;                               // that no operator accounts for
  double blocked_s = 0;                                 // threads blocked inside operators
  std::optional<double> stored_bytes, stored_requests;  // read from the storage
  std::optional<double> sent_bytes;                     // handed to the consumer
  std::optional<double> memory_traffic_bytes;

  double cpu_s() const;
};

struct RowCost {
  struct Operator {
    std::string name, kind;
  };
  std::vector<Operator> operators;
  RowFigures figures;
  std::vector<RowFigures> draws;  // the same over resampled windows; empty below three windows

  double batch_rows = 0;
  double split_rows = 0;  // of one unit of work: what a worker asks for at a time
  double rows_per_s = 0;  // of the recorded run
  double cores = 0;       // that it could use
  std::string cpu_model;
  // CPU and blocked time of one batch vary so much (deviation / mean), from the spread between
  // windows.
  double batch_cv = 0;

  // Memory of one process without threads, and of one thread with its share of the queues.
  std::optional<double> process_bytes;
  double thread_bytes = 0;
  // What one process does at most, whatever its threads: a lock or a sequential stage. Infinite:
  // neither.
  double process_rows_per_s = std::numeric_limits<double>::infinity();
  std::string process_limit;  // its name

  bool splits_cpu = true;  // false: the CPU figures are an upper bound
  bool sends = false;      // serialising and sending are part of the CPU figures
  std::string no_stored, no_requests, no_sent, no_traffic;  // why the figure is not there
  std::vector<std::string> assumptions;  // that these figures rest on, as sentences
};

// Throws Error kInconclusive when the run recorded no rows.
RowCost RowCostOf(const PipelineModel& model);

}  // namespace headrace::analysis
