#include <algorithm>
#include <memory>
#include <utility>

#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/slices.h"
#include "reader/dwrf/value_decoder.h"

namespace headrace::reader::dwrf {
namespace {

PresenceBits SliceBits(const PresenceBits& bits, uint64_t first, uint64_t rows) {
  PresenceBits slice;
  slice.words.reserve(NumWords(rows));
  AppendBits(bits.words, first, rows, 0, &slice.words);
  slice.count = CountBits(slice.words.data(), slice.words.size());
  return slice;
}

constexpr uint64_t Padded(uint64_t count) { return (count + 15) / 16 * 16; }

void AddScalars(const DecodedStripe& decoded, uint64_t first, FlatMapBatch* batch) {
  const StripePlan& plan = decoded.plan;
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    const DecodedColumn& from = decoded.columns[i];
    ScalarColumn& column = batch->scalars.emplace_back();
    const TypeKind kind = plan.columns[i].value.kind;
    column.name = plan.columns[i].name;
    column.is_float = kind == TypeKind::kFloat || kind == TypeKind::kDouble;
    if (column.is_float) {
      column.floats.assign(from.floats.begin() + first, from.floats.begin() + first + batch->rows);
    } else {
      column.integers.assign(from.integers.begin() + first,
                             from.integers.begin() + first + batch->rows);
    }
  }
}

}  // namespace

FlatMapBatch ExtractSlice(DecodedStripe* decoded, uint64_t slice) {
  const StripePlan& plan = decoded->plan;
  FlatMapBatch batch = std::move(decoded->slices[slice]);
  const uint64_t first = std::min(slice * decoded->slice_rows, decoded->kept_rows);
  batch.rows = std::min(decoded->slice_rows, decoded->kept_rows - first);
  if (batch.rows == 0) return batch;
  // Two pieces of memory for all columns.
  // Columns of a group have their presence and offsets already.
  const auto num_sparse = static_cast<uint64_t>(
      std::count_if(batch.sparse.begin(), batch.sparse.end(),
                    [](const SparseColumn& column) { return column.group < 0; }));
  const uint64_t num_dense = plan.features.size() - batch.sparse.size();
  const uint64_t dense_stride = Padded(batch.rows), offset_stride = Padded(batch.rows + 1);
  const auto dense = std::make_shared<Array<float>>(num_dense * dense_stride);
  const auto offsets = std::make_shared<Array<uint32_t>>(num_sparse * offset_stride);
  float* next_dense = dense->data();
  uint32_t* next_offsets = offsets->data();
  size_t sparse = 0;
  batch.dense.reserve(num_dense);
  for (size_t i = 0; i < plan.features.size(); ++i) {
    const bool is_dense = plan.features[i].kind == FeatureKind::kDense;
    if (!is_dense && batch.sparse[sparse].group >= 0) {
      ++sparse;
      continue;
    }
    DecodedFeature& feature = decoded->features[i];
    PresenceBits present = SliceBits(feature.in_map, first, batch.rows);
    const uint64_t begin = feature.extracted;
    feature.extracted += present.count;
    if (is_dense) {
      DenseColumn& column = batch.dense.emplace_back();
      column.name = plan.features[i].name;
      column.values = Array<float>::Borrow({next_dense, batch.rows}, dense);
      if (present.count > 0) {
        ExpandFloats(feature.packed_floats.data() + begin * sizeof(float), present.words.data(),
                     batch.rows, next_dense);
      } else {
        std::fill_n(next_dense, batch.rows, 0.0f);
      }
      column.present = std::move(present);
      next_dense += dense_stride;
      continue;
    }
    SparseColumn& column = batch.sparse[sparse++];
    column.offsets = Array<uint32_t>::Borrow({next_offsets, batch.rows + 1}, offsets);
    if (present.count > 0) {
      ExpandLengths(feature.lengths.data() + begin, present.words.data(), batch.rows, next_offsets);
    } else {
      std::fill_n(next_offsets, batch.rows + 1, 0u);
    }
    column.present = std::move(present);
    next_offsets += offset_stride;
  }
  AddScalars(*decoded, first, &batch);
  return batch;
}

}  // namespace headrace::reader::dwrf
