#include "reader/batch/rebatch.h"

#include <algorithm>

#include "base/check.h"

namespace headrace::reader {
namespace {

// Rows [first, first + rows) of a batch.
struct Part {
  const TensorBatch* batch;
  uint64_t first, rows;
};

KeyedJaggedTensor JoinJagged(const std::vector<Part>& parts, uint64_t rows,
                             KeyedJaggedTensor TensorBatch::*member) {
  const KeyedJaggedTensor& first = parts[0].batch->*member;
  KeyedJaggedTensor out;
  out.keys = first.keys;
  out.rows = rows;
  const auto range = [&](const Part& part, size_t key) {
    const KeyedJaggedTensor& tensor = part.batch->*member;
    const size_t place = key * tensor.rows + part.first;
    return std::pair(tensor.offsets[place], tensor.offsets[place + part.rows]);
  };
  int64_t values = 0;
  bool weighted = false;
  for (const Part& part : parts) {
    const KeyedJaggedTensor& tensor = part.batch->*member;
    HR_CHECK(tensor.keys == out.keys, "batches of different features");
    weighted = weighted || !tensor.weights.empty();
    for (size_t key = 0; key < out.keys.size(); ++key) {
      const auto [begin, end] = range(part, key);
      values += end - begin;
    }
  }
  out.lengths.resize(out.keys.size() * rows);
  out.offsets.resize(out.keys.size() * rows + 1);
  out.values.resize(static_cast<size_t>(values));
  if (weighted) out.weights.resize(static_cast<size_t>(values));
  size_t cell = 0;
  int64_t at = 0;
  for (size_t key = 0; key < out.keys.size(); ++key) {
    for (const Part& part : parts) {
      const KeyedJaggedTensor& tensor = part.batch->*member;
      const size_t place = key * tensor.rows + part.first;
      const auto [begin, end] = range(part, key);
      const int32_t* lengths = tensor.lengths.data() + place;
      const int64_t* offsets = tensor.offsets.data() + place;
      std::copy_n(lengths, part.rows, out.lengths.data() + cell);
      for (uint64_t row = 0; row < part.rows; ++row)
        out.offsets[cell + row] = at + (offsets[row] - begin);
      std::copy_n(tensor.values.data() + begin, end - begin, out.values.data() + at);
      if (weighted && !tensor.weights.empty())
        std::copy_n(tensor.weights.data() + begin, end - begin, out.weights.data() + at);
      if (weighted && tensor.weights.empty())
        std::fill_n(out.weights.data() + at, end - begin, 1.0f);
      at += end - begin;
      cell += part.rows;
    }
  }
  out.offsets[cell] = at;
  return out;
}

}  // namespace

TensorBatch Rebatcher::Join(uint64_t rows, bool tail) {
  TensorBatch out;
  std::vector<Part> parts;
  size_t whole = 0;  // pieces used up
  for (uint64_t left = rows; whole < pieces_.size(); ++whole) {
    Piece& piece = pieces_[whole];
    const TensorBatch& batch = piece.batch;
    if (left == 0 && (batch.rows > 0 || !tail)) break;
    const uint64_t take = std::min(left, batch.rows - piece.first);
    AppendSpans(&out.spans, batch.spans, piece.first, take, batch.rows,
                [&](uint64_t row) { return batch.RowId(row); });
    if (take > 0) parts.push_back({&batch, piece.first, take});
    left -= take;
    piece.first += take;
    if (piece.first < batch.rows) break;
  }
  if (rows > 0) {
    const TensorBatch& front = *parts[0].batch;
    const size_t width = front.dense_names.size();
    out.rows = rows;
    out.first_row = front.RowId(parts[0].first);
    out.dense_names = front.dense_names;
    out.dense.resize(rows * width);
    out.row_ids.resize(rows);
    const bool labelled = !front.labels.empty();
    if (labelled) out.labels.resize(rows);
    uint64_t at = 0;
    for (const Part& part : parts) {
      const TensorBatch& batch = *part.batch;
      HR_CHECK(batch.dense_names == out.dense_names && batch.labels.empty() != labelled,
               "batches of different features");
      std::copy_n(batch.dense.data() + part.first * width, part.rows * width,
                  out.dense.data() + at * width);
      for (uint64_t row = 0; row < part.rows; ++row)
        out.row_ids[at + row] = batch.RowId(part.first + row);
      if (labelled)
        std::copy_n(batch.labels.data() + part.first, part.rows, out.labels.data() + at);
      at += part.rows;
    }
    out.sparse = JoinJagged(parts, rows, &TensorBatch::sparse);
    out.weighted_sparse = JoinJagged(parts, rows, &TensorBatch::weighted_sparse);
  }
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<ptrdiff_t>(whole));
  pending_rows_ -= rows;
  return out;
}

void Rebatcher::Add(TensorBatch&& batch, const Emit& emit) {
  if (batch.rows == rows_ && (pieces_.empty() || !keeps_order_)) return emit(std::move(batch));
  ExpandGroups(&batch);
  pending_rows_ += batch.rows;
  pieces_.push_back({std::move(batch), 0});
  while (pending_rows_ >= rows_) emit(Join(rows_, false));
  if (!pieces_.empty()) OwnMemory(&pieces_.back().batch);  // the others are not new
}

void Rebatcher::Finish(const Emit& emit) {
  if (!pieces_.empty()) emit(Join(pending_rows_, true));
}

uint64_t Rebatcher::MemoryBytes() const {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.batch.MemoryBytes();
  return bytes;
}

}  // namespace headrace::reader
