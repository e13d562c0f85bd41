// Element: what moves between operators. Its payload is whatever the last operator made; synthetic
// elements have none.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "reader/batch/flat_map_batch.h"
#include "reader/batch/row_span.h"
#include "reader/batch/tensor_batch.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/pipeline/memory_ledger.h"
#include "reader/pipeline/split.h"

namespace headrace::reader {

struct CachedBatches;  // reader/pipeline/cache/batch_cache.h
using CachedPayload = std::shared_ptr<const CachedBatches>;

// What an operator made: one of these types, or nothing (synthetic elements). It is held by
// pointer, so that moving an element through a queue does not move the many parts of a batch; the
// allocation is reused for what the next operators make. Move only.
class Payload {
 public:
  using Value = std::variant<Split, FetchedStripe, dwrf::UnpackedStripe, dwrf::DecodedStripe,
                             FlatMapBatch, TensorBatch, CachedPayload>;

  Payload() = default;
  template <typename T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Payload>) Payload& operator=(T&& value) {
    if (value_) {
      *value_ = std::forward<T>(value);
    } else {
      value_ = std::make_unique<Value>(std::forward<T>(value));
    }
    return *this;
  }

  bool empty() const { return value_ == nullptr; }
  // Null when it is of another type.
  template <typename T>
  T* Get() {
    return std::get_if<T>(value_.get());
  }
  template <typename T>
  const T* Get() const {
    return std::get_if<T>(value_.get());
  }
  // It must be a T.
  template <typename T>
  T& As() {
    T* value = Get<T>();
    HR_CHECK(value != nullptr, "an element of another type; the spec's order check failed");
    return *value;
  }
  template <typename T>
  const T& As() const {
    return const_cast<Payload*>(this)->As<T>();
  }

 private:
  std::unique_ptr<Value> value_;
};

struct Element {
  uint64_t sequence = 0;     // dense numbers in file order at the source; renumbered by `batch`
  uint64_t first_slice = 0;  // the `sequence` of the first batch that `extract` will make of it
  uint64_t rows = 0;
  uint64_t bytes = 0;  // payload size, for accounts and queue memory
  // Bytes that the operator which made it read from outside the pipeline, from storage. They are
  // added to the operator's input in its account.
  uint64_t received_bytes = 0;
  uint64_t seed = 0;  // for random costs: depends only on the element, never on the thread
  // Before it becomes a batch: the split that it was read for and, in a resumed run, the rows of it
  // that are still wanted (null: all).
  RowSpan origin;
  std::shared_ptr<const std::vector<RowSpan>> wanted;
  // If an operator before `decode` drops rows: for each row of the split, whether it stays. Dropped
  // rows are settled together with those that stay. Null: all stay.
  std::shared_ptr<const std::vector<uint8_t>> kept;
  // Under a memory budget: the charge for the split that it was made of. An operator that makes new
  // elements passes it on to them. Null: no budget.
  std::shared_ptr<MemoryCharge> memory;
  Payload payload;
};

// Moves out the payload, which must be a T; the element keeps the allocation.
template <typename T>
T Take(Element* element) {
  return std::move(element->payload.As<T>());
}

// Called by the operator that turns a stripe, or consecutive rows of it, into a batch. Gives the
// batch its spans and split_id, and drops the rows that are not wanted or not kept. `batch` must
// still have all its rows, numbered from first_row.
void MarkOrigin(const Element& element, FlatMapBatch* batch);

// One byte for each of the stripe's `rows` rows, which begin at `first_row`: 1 if it is wanted and
// kept; empty: all are.
std::vector<uint8_t> WantedRows(const Element& element, uint64_t first_row, uint64_t rows);

// The spans of a batch of either form; empty for other payloads.
const std::vector<RowSpan>& SpansOf(const Element& element);

}  // namespace headrace::reader
