#include "workloads/trainer.h"

#include <fmt/format.h>

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mix_bits.h"

namespace headrace::workloads {
namespace {

using reader::KeyedJaggedTensor;
using reader::TensorBatch;

void Mix(uint64_t* hash, uint64_t value) { *hash = MixBits(*hash ^ value); }

using JaggedKeys = std::vector<reader::JaggedKey>;

void MixJagged(uint64_t* hash, const JaggedKeys& keys, uint64_t row) {
  for (const reader::JaggedKey& key : keys) {
    const KeyedJaggedTensor& tensor = *key.tensor;
    const int64_t* place = key.offsets() + key.Row(row);
    Mix(hash, static_cast<uint64_t>(place[1] - place[0]));
    for (int64_t i = place[0]; i < place[1]; ++i) {
      Mix(hash, static_cast<uint64_t>(tensor.values[static_cast<size_t>(i)]));
      if (!tensor.weights.empty())
        Mix(hash, std::bit_cast<uint32_t>(tensor.weights[static_cast<size_t>(i)]));
    }
  }
}

// Deduplicated features count with each row that has them, in the place that they have without.
uint64_t RowHash(const TensorBatch& batch, const JaggedKeys& sparse, const JaggedKeys& weighted,
                 uint64_t row) {
  uint64_t hash = MixBits(batch.RowId(row));
  const size_t width = batch.dense_names.size();
  for (size_t c = 0; c < width; ++c)
    Mix(&hash, std::bit_cast<uint32_t>(batch.dense[row * width + c]));
  MixJagged(&hash, sparse, row);
  MixJagged(&hash, weighted, row);
  if (!batch.labels.empty()) Mix(&hash, std::bit_cast<uint32_t>(batch.labels[row]));
  return hash;
}

}  // namespace

void Trainer::Record(const reader::Element& batch) {
  if (checksums_ == nullptr && !log_) return;
  // The epoch of each row, from the spans.
  const std::vector<reader::RowSpan>& spans = reader::SpansOf(batch);
  uint64_t span = 0, in_span = 0;
  const auto epoch = [&] {
    while (span < spans.size() && in_span == spans[span].rows) ++span, in_span = 0;
    ++in_span;
    return span < spans.size() ? spans[span].epoch : 0;
  };
  const auto add = [&](uint64_t row_id, uint64_t hash) {
    if (log_) log_->Add(epoch(), row_id, hash);
    if (checksums_ == nullptr) return;
    ++checksums_->rows;
    checksums_->multiset += hash;
    Mix(&checksums_->ordered, hash);
  };
  if (const auto* tensors = batch.payload.Get<TensorBatch>()) {
    const JaggedKeys sparse = KeysInOrder(*tensors, false), weighted = KeysInOrder(*tensors, true);
    for (uint64_t row = 0; row < tensors->rows; ++row)
      add(tensors->RowId(row), RowHash(*tensors, sparse, weighted, row));
  } else if (const auto* rows = batch.payload.Get<reader::FlatMapBatch>()) {
    for (uint64_t row = 0; row < rows->rows; ++row)
      add(rows->RowId(row), MixBits(rows->RowId(row)));
  } else {
    add(batch.sequence, MixBits(batch.seed));
  }
}

std::string Trainer::SaveState() {
  const RowChecksums sums = checksums_ != nullptr ? *checksums_ : RowChecksums();
  return fmt::format("trainer/1 {} {} {} {} {} {} {}", steps_, checksums_ != nullptr ? 1 : 0,
                     sums.rows, sums.multiset, sums.ordered, log_ ? 1 : 0, log_ ? log_->Sync() : 0);
}

void Trainer::LoadState(const std::string& state) {
  uint64_t steps, summed, logged, log_bytes;
  RowChecksums sums;
  int end = 0;
  if (std::sscanf(state.c_str(),
                  "trainer/1 %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                  " %" SCNu64 "%n",
                  &steps, &summed, &sums.rows, &sums.multiset, &sums.ordered, &logged, &log_bytes,
                  &end) != 7 ||
      static_cast<size_t>(end) != state.size()) {
    throw Error(ExitCode::kBadData, "the trainer's state is of another trainer");
  }
  const auto require_same = [](bool was, bool is, const char* option) {
    if (was == is) return;
    throw Error(ExitCode::kUsage, fmt::format("was made {} {}", was ? "with" : "without", option),
                {}, was ? "give it again to go on" : "the rows delivered before would be missing");
  };
  require_same(summed != 0, checksums_ != nullptr, "--checksum");
  require_same(logged != 0, log_ != nullptr, "--row-log");
  steps_ = steps;
  if (checksums_ != nullptr) *checksums_ = sums;
  if (log_) log_->Resume(log_bytes);
}

void Trainer::Step(reader::Element&& batch, reader::StopSignal* stop) {
  Record(batch);
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
