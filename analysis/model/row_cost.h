// RowCost: what one row delivered to the consumer costs on each resource of a node and on what
// nodes share, from one recorded run, and how it varies between windows of the run.
//
// CPU time is on the recorded machine's cores; bytes and requests are counts, and are the same on
// any machine. The consumer's own work is left out: it stays where the batches go.
#pragma once
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/pipeline_model.h"

namespace headrace::analysis {

// Costs per row. Empty: not recorded (RowCost says why).
struct RowFigures {
  std::vector<double> operator_cpu_s;                   // parallel to RowCost::operators
  double other_cpu_s = 0;                               // CPU time that no operator accounts for
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
  double split_rows = 0;  // rows of one unit of work: what a worker asks for at a time
  double rows_per_s = 0;  // of the recorded run
  double cores = 0;       // cores that the recorded run could use
  std::string cpu_model;
  // Coefficient of variation (deviation / mean) of one batch's CPU and blocked time, from the
  // spread between windows.
  double batch_cv = 0;

  // Memory of one process without threads, and of one thread with its share of the queues.
  std::optional<double> process_bytes;
  double thread_bytes = 0;
  // The highest rate of one process whatever its threads, because of a lock or a sequential stage.
  // Infinite: it has neither.
  double process_rows_per_s = std::numeric_limits<double>::infinity();
  std::string process_limit;  // name of that lock or stage

  bool splits_cpu = true;  // false: the CPU figures are an upper bound
  bool sends = false;      // serialising and sending are part of the CPU figures
  std::string no_stored, no_requests, no_sent, no_traffic;  // why that figure is missing
  std::vector<std::string> assumptions;  // the assumptions of these figures, as sentences
};

// Throws Error kInconclusive when the run recorded no rows.
RowCost RowCostOf(const PipelineModel& model);

}  // namespace headrace::analysis
