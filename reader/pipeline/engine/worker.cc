#include "reader/pipeline/engine/worker.h"

#include <utility>

#include "base/block_pool.h"
#include "probes/account/scope.h"
#include "reader/pipeline/cache/cache_operators.h"
#include "reader/pipeline/engine/skip_corrupt.h"

namespace headrace::reader {

Worker::Worker(const std::vector<OperatorPlan>& plans, const OperatorContext& context,
               Progress* progress, Emit put, std::function<void()> entered)
    : plans_(plans), context_(context), entered_(std::move(entered)) {
  for (size_t k = 0; k < plans.size(); ++k) {
    auto op = WithCache(plans[k], context, MakeOperator(plans[k], context));
    operators_.push_back(WithSkipping(plans[k], *context.spec, progress, std::move(op)));
    emits_.push_back([this, k](Element&& element) { ProcessAt(k, std::move(element)); });
  }
  emits_.push_back(std::move(put));
}

void Worker::ProcessAt(size_t k, Element&& element) {
  Operator& op = *operators_[k];
  const Emit& next = emits_[k + 1];
  const bool is_empty = element.rows == 0 && element.payload.Get<FlatMapBatch>() != nullptr;
  const bool is_cached = element.payload.Get<CachedPayload>() != nullptr;
  if ((is_empty && !op.TakesEmpty()) || (is_cached && !op.TakesCached())) {
    if (k == 0) entered_();
    return next(std::move(element));
  }
  account::OperatorScope scope(plans_[k].account);
  if (k == 0) entered_();
  const uint64_t rows = element.rows;
  uint64_t bytes_in = element.bytes, bytes_out = 0;
  op.Process(std::move(element), [&](Element&& out) {
    bytes_in += std::exchange(out.received_bytes, 0);
    bytes_out += out.bytes;
    next(std::move(out));
  });
  scope.Done(rows, bytes_in, bytes_out);
}

void Worker::Process(Element&& element) {
  if (context_.memory == nullptr) return ProcessAt(0, std::move(element));
  const std::shared_ptr<MemoryCharge> charge = element.memory;
  const BlockPool::ThreadPeak peak;
  try {
    ProcessAt(0, std::move(element));
  } catch (...) {
    if (charge) charge->DoesLess();  // it did not come through
    throw;
  }
  if (charge) charge->Worked(peak.bytes(), peak.net());
}

void Worker::Finish() {
  for (size_t k = 0; k < operators_.size() && !context_.stop->stopped(); ++k) {
    account::OperatorScope scope(plans_[k].account);
    uint64_t bytes_out = 0, made = 0;
    operators_[k]->Finish([&](Element&& out) {
      ++made;
      bytes_out += out.bytes;
      emits_[k + 1](std::move(out));
    });
    if (made > 0) scope.Done(0, 0, 0, bytes_out);
  }
}

}  // namespace headrace::reader
