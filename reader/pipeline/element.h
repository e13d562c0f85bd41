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

// What an operator made, of one of these types, or nothing (synthetic elements). It lies behind a
// pointer, so that an element goes through a queue without moving the many parts of a batch; the
// place is kept for what the next operators make of it. Move only.
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
  uint64_t first_slice = 0;  // what `sequence` is for the first batch that `extract` makes of it
  uint64_t rows = 0;
  uint64_t bytes = 0;  // payload size, for accounts and queue memory
  // Bytes that the operator which made it got from outside the pipeline: storage. The account adds
  // them to the operator's input.
  uint64_t received_bytes = 0;
  uint64_t seed = 0;  // of random costs: depends on the element alone, never on the thread
  // Up to the first batch: the split it was read for, and where rows of it were delivered before
  // the run resumed, the rows still wanted (null: all of them).
  RowSpan origin;
  std::shared_ptr<const std::vector<RowSpan>> wanted;
  // Where an operator before `decode` drops rows: for each row of the split, whether it stays. The
  // others are settled with those that do. Null: all stay.
  std::shared_ptr<const std::vector<uint8_t>> kept;
  // Under a memory budget, what the split that it was made of is charged with. An operator that
  // makes new elements hands it on to them. Null: no budget.
  std::shared_ptr<MemoryCharge> memory;
  Payload payload;
};

// The payload, which must be a T; the element's place for it stays.
template <typename T>
T Take(Element* element) {
  return std::move(element->payload.As<T>());
}

// To be called by the operator that turns a stripe, or some consecutive rows of it, into a batch:
// gives the batch its spans and split_id, and drops the rows that are not wanted or not kept.
// `batch` has all its rows, by first_row.
void MarkOrigin(const Element& element, FlatMapBatch* batch);

// keep[r] = 1 for the rows of the stripe, from `first_row` on, that are wanted and kept; empty: all
// are.
std::vector<uint8_t> WantedRows(const Element& element, uint64_t first_row, uint64_t rows);

// The spans of a batch of either form; none of other payloads.
const std::vector<RowSpan>& SpansOf(const Element& element);

}  // namespace headrace::reader
