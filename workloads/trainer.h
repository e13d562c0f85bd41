// Trainer: the emulated consumer. It takes batches and computes for a set step time: an
// accelerator's step is emulated by sleeping, a CPU's by spinning, and a step of 0 takes batches as
// fast as they come. It keeps checksums of the rows it saw, so that a test can compare what two
// runs delivered.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "reader/pipeline/pipeline.h"
#include "workloads/row_log.h"

namespace headrace::workloads {

struct RowChecksums {
  uint64_t rows = 0;
  uint64_t multiset =
      0;  // sum over rows of a hash of each: equal for equal multisets of rows, in any order
  uint64_t ordered = 0;  // hash chain over the rows: equal only for the same rows in the same order
};

class Trainer final : public reader::Consumer {
 public:
  // `checksums` may be null; otherwise every row's id and values are hashed into it, which costs
  // time. So does a row log, which may be null too.
  Trainer(const reader::ConsumerSpec& spec, RowChecksums* checksums,
          std::unique_ptr<RowLog> log = nullptr)
      : spec_(spec), checksums_(checksums), log_(std::move(log)) {}
  void Step(reader::Element&& batch, reader::StopSignal* stop) override;
  // The part of a step that sums and logs the rows.
  void Record(const reader::Element& batch);
  // The checksums, the number of steps, and the length of the row log.
  std::string SaveState() override;
  void LoadState(const std::string& state) override;

 private:
  reader::ConsumerSpec spec_;
  RowChecksums* checksums_;
  std::unique_ptr<RowLog> log_;
  uint64_t steps_ = 0;
};

}  // namespace headrace::workloads
