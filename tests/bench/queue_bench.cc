// A batch from one stage to the next: into the queue and out of it, without waiting, with accounts
// off. The rival is the least that can be done on one thread: an indirect pointer through a
// preallocated ring. Goal (performance.md, row 19): 50 ns a batch, and no copy of its memory.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "base/check.h"
#include "reader/pipeline/element.h"
#include "reader/pipeline/queue.h"

namespace headrace::reader {
namespace {

constexpr size_t kRows = 512;

Element Batch() {
  TensorBatch tensors;
  tensors.rows = kRows;
  tensors.dense.resize(kRows * 64);
  tensors.row_ids.resize(kRows);
  Element element;
  element.rows = kRows;
  element.payload = std::move(tensors);
  return element;
}

void PointerRing(benchmark::State& state) {
  std::vector<Element*> ring(8);
  auto element = std::make_unique<Element>(Batch());
  size_t at = 0;
  for (auto _ : state) {
    ring[at & 7] = element.get();
    benchmark::DoNotOptimize(ring.data());
    benchmark::DoNotOptimize(ring[at++ & 7]);
  }
}
BENCHMARK(PointerRing);

void HandOff(benchmark::State& state, bool ordered, size_t waiting) {
  Queue<Element> queue(16, ordered, UINT32_MAX);
  uint64_t sequence = 0;
  for (; sequence < waiting; ++sequence) {
    Element other = Batch();
    other.sequence = sequence;
    queue.Put(std::move(other), UINT32_MAX);
  }
  Element element = Batch();
  const void* memory = element.payload.As<TensorBatch>().dense.data();
  for (auto _ : state) {
    element.sequence = sequence++;
    queue.Put(std::move(element), UINT32_MAX);
    queue.Get(&element, UINT32_MAX, 0);
  }
  // The memory itself never moves.
  if (waiting == 0)
    HR_CHECK(element.payload.As<TensorBatch>().dense.data() == memory, "a batch was copied");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(HandOff, AnyOrder, false, 0);
BENCHMARK_CAPTURE(HandOff, AnyOrderBehindSeven, false, 7);
BENCHMARK_CAPTURE(HandOff, FileOrder, true, 0);
BENCHMARK_CAPTURE(HandOff, FileOrderBehindSeven, true, 7);

}  // namespace
}  // namespace headrace::reader

BENCHMARK_MAIN();
