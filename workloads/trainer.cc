#include "workloads/trainer.h"

#include <bit>

#include "base/clock.h"

namespace headrace::workloads {
namespace {

using reader::KeyedJaggedTensor;
using reader::MixBits;
using reader::TensorBatch;

void Mix(uint64_t* hash, uint64_t value) { *hash = MixBits(*hash ^ value); }

void MixJagged(uint64_t* hash, const KeyedJaggedTensor& tensor, uint64_t row) {
  for (size_t key = 0; key < tensor.keys.size(); ++key) {
    const size_t place = key * tensor.rows + row;
    Mix(hash, static_cast<uint64_t>(tensor.lengths[place]));
    for (int64_t i = tensor.offsets[place]; i < tensor.offsets[place + 1]; ++i) {
      Mix(hash, static_cast<uint64_t>(tensor.values[static_cast<size_t>(i)]));
      if (!tensor.weights.empty())
        Mix(hash, std::bit_cast<uint32_t>(tensor.weights[static_cast<size_t>(i)]));
    }
  }
}

uint64_t RowHash(const TensorBatch& batch, uint64_t row) {
  uint64_t hash = MixBits(batch.row_ids.empty() ? batch.first_row + row : batch.row_ids[row]);
  const size_t width = batch.dense_names.size();
  for (size_t c = 0; c < width; ++c)
    Mix(&hash, std::bit_cast<uint32_t>(batch.dense[row * width + c]));
  MixJagged(&hash, batch.sparse, row);
  MixJagged(&hash, batch.weighted_sparse, row);
  if (!batch.labels.empty()) Mix(&hash, std::bit_cast<uint32_t>(batch.labels[row]));
  return hash;
}

}  // namespace

void Trainer::Hash(const reader::Element& batch) {
  const auto add = [this](uint64_t hash) {
    ++checksums_->rows;
    checksums_->multiset += hash;
    Mix(&checksums_->ordered, hash);
  };
  if (const auto* tensors = std::get_if<TensorBatch>(&batch.payload)) {
    for (uint64_t row = 0; row < tensors->rows; ++row) add(RowHash(*tensors, row));
  } else if (const auto* rows = std::get_if<reader::FlatMapBatch>(&batch.payload)) {
    for (uint64_t row = 0; row < rows->rows; ++row) add(MixBits(rows->RowId(row)));
  } else {
    add(MixBits(batch.seed));
  }
}

void Trainer::Step(reader::Element&& batch, reader::StopSignal* stop) {
  if (checksums_ != nullptr) Hash(batch);
  const auto step_ns = static_cast<int64_t>(spec_.step.Draw(0x5744, steps_++));
  if (step_ns <= 0) return;
  if (!spec_.spin) {
    stop->SleepFor(step_ns);
    return;
  }
  const int64_t deadline = ThreadCpuNs() + step_ns;
  while (ThreadCpuNs() < deadline && !stop->stopped()) {
    for (int i = 0; i < 1000; ++i) asm volatile("" : : : "memory");
  }
}

}  // namespace headrace::workloads
