// ElementSource: makes the elements that enter a pipeline: splits of a table, or synthetic ones.
// Under a memory budget each waits here until it fits beside those in progress. Thread-safe.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "reader/pipeline/operator.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {

class ElementSource {
 public:
  // Rows that `delivered` has settled do not come again; null: none are settled. `splits`: where
  // splits come from; null: all of the table. `context` must outlive the source.
  ElementSource(const OperatorContext& context, std::shared_ptr<const DeliveryLedger> delivered,
                std::shared_ptr<SplitSource> splits = nullptr);

  // The next element. False, with `ended`, when there is none, and when stopped. A wait for memory
  // goes to operator account `waiter` as w_out, one for a split as w_in.
  bool Take(Element* element, uint32_t waiter, bool* ended);

  // Share of all elements that were handed out; below 0 when there is no end.
  double fraction() const;

 private:
  bool Next(Element* element, uint32_t waiter);
  bool NextSynthetic(Element* element);
  void ForgetAhead(uint64_t split) const;

  const OperatorContext& context_;
  const PipelineSpec& spec_;
  std::shared_ptr<SplitSource> splits_;
  bool waits_ = false;             // for splits
  std::atomic<uint64_t> next_{0};  // next synthetic element
  uint64_t limit_ = 0;             // number of synthetic elements; 0: no limit
  std::mutex admission_;           // splits are admitted in the order in which they are handed out
};

}  // namespace headrace::reader
