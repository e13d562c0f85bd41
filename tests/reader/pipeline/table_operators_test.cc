// Operators of a table, one at a time.
#include <gtest/gtest.h>

#include <atomic>

#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

// A batch whose only feature has `ids` ids, one row, in a slab with room for `room` of them.
FlatMapBatch InSlab(uint64_t ids, uint64_t room, double spare) {
  FlatMapBatch batch;
  batch.rows = 1;
  batch.slabs.ids = std::make_shared<Array<int64_t>>(room, 7);
  batch.slabs.spare = spare;
  for (const uint64_t count : {room / 2, ids - room / 2}) {
    SparseColumn& column = batch.sparse.emplace_back();
    column.name = "sparse:" + std::to_string(batch.sparse.size());
    column.offsets = {0, static_cast<uint32_t>(count)};
    column.present.words = {1};
    column.present.count = 1;
    // The first feature as it was decoded; the second one a transform made.
    column.values = batch.sparse.size() == 1
                        ? Array<int64_t>::Borrow({batch.slabs.ids->data(), count}, batch.slabs.ids)
                        : Array<int64_t>(count, 8);
  }
  return batch;
}

TEST(TensorizeOperator, SlabsMadeBeforeTheRoomWasKnownDoNotAddToIt) {
  PipelineSpec spec;
  std::atomic<uint32_t> spare[1] = {0};
  OperatorContext context;
  context.spec = &spec;
  context.slab_spare = spare;
  OperatorPlan plan;
  plan.spec.kind = "tensorize";
  const auto op = MakeOperator(plan, context);
  const auto take = [&](FlatMapBatch&& batch) {
    Element element;
    element.rows = batch.rows;
    element.payload = std::move(batch);
    op->Process(std::move(element), [](Element&&) {});
  };
  for (int i = 0; i < 8; ++i) take(InSlab(3000, 2000, 0));
  EXPECT_EQ(spare[0], 520u);  // half as much again, and a little
  take(InSlab(3300, 3000, 0.5));
  EXPECT_EQ(spare[0], 670u);  // 1.5 * 1.1
  take(InSlab(2100, 2000, 0));
  EXPECT_EQ(spare[0], 670u);
}

}  // namespace
}  // namespace headrace::reader
