// StripeWriter: collects the rows of one stripe at a time, and encodes the stripe when asked to.
// FileWriter decides when a stripe is full and puts its parts into the file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/encode/byte_sink.h"
#include "reader/dwrf/encode/chunk_encoder.h"
#include "reader/dwrf/encode/column_buffer.h"
#include "reader/dwrf/encode/encryptor.h"
#include "reader/dwrf/encode/statistics_builder.h"
#include "reader/dwrf/flat_batch.h"
#include "reader/dwrf/layout_policy.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

// The three areas of a stripe as stored, in file order, and its counts for the file's footer.
struct EncodedStripe {
  ByteSink index, data, footer;
  uint64_t rows = 0, raw_bytes = 0;
};

class StripeWriter {
 public:
  // All three outlive it.
  StripeWriter(const Schema& schema, const LayoutPolicy& policy, const Encryptor& encryptor);

  // Rows [begin, end) of a checked batch; begins the strides they fall into.
  void Append(const Column& rows, uint64_t begin, uint64_t end);
  // Same of a flat batch: `columns` in schema order, `cursors` per column, kept by the caller from
  // slice to slice.
  void AppendFlat(const std::vector<const FlatColumn*>& columns,
                  std::vector<std::vector<FlatCursor>>* cursors, uint64_t begin, uint64_t end);

  uint64_t rows() const { return root_.positions; }
  uint64_t raw_bytes() const { return raw_bytes_; }
  // Encodes and forgets the rows; adds their statistics, stored bytes and layout per node. Throws
  // Error kUsage where a stream would be too long.
  EncodedStripe Finish(std::vector<StatisticsBuilder>* statistics,
                       std::vector<uint64_t>* stored_bytes, std::vector<NodeLayout>* layout);
  // What the rows collected so far would cost their readers under `policy`, which is this one's but
  // for the codec; of each flattened map some keys are tried.
  LayoutCost Try(const LayoutPolicy& policy) const;
  // The policy has another codec now. Before the first Finish.
  void UseCodec() { chunks_ = std::make_unique<ChunkEncoder>(policy_.options()); }

 private:
  // Calls append(begin, end) for pieces that each lie in one stride.
  template <class Function>
  void ForStrides(uint64_t begin, uint64_t end, Function append);

  const Schema& schema_;
  const LayoutPolicy& policy_;
  const Encryptor& encryptor_;
  uint32_t stripe_ = 0;  // in the file
  std::unique_ptr<ChunkEncoder> chunks_;
  ColumnBuffer root_;
  uint64_t raw_bytes_ = 0;
};

}  // namespace headrace::reader::dwrf
