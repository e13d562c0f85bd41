#include "reader/batch/tensorize.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes _mm512_undefined_ps in its own header for a use of an uninitialised value.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

#include "base/check.h"
#include "base/error.h"
#include "reader/batch/append_bits.h"
#include "reader/batch/dedup_rows.h"
#include "reader/batch/id_dictionary.h"

namespace headrace::reader {
namespace {

constexpr uint64_t kBlock = 16;  // 16 floats: one cache line of the output row

void TransposeBlock(const float* const* columns, uint64_t num_columns, uint64_t first_row,
                    uint64_t num_rows, float* out, uint64_t stride) {
  if (num_columns == kBlock) {
    for (uint64_t row = 0; row < num_rows; ++row) {
      float* target = out + row * stride;
      for (uint64_t c = 0; c < kBlock; ++c) target[c] = columns[c][first_row + row];
    }
    return;
  }
  for (uint64_t row = 0; row < num_rows; ++row) {
    for (uint64_t c = 0; c < num_columns; ++c) out[row * stride + c] = columns[c][first_row + row];
  }
}

#if defined(__x86_64__)

#define HR_AVX512F_INLINE inline __attribute__((always_inline, target("avx512f")))
HR_AVX512F_INLINE __m512 LowPairs(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
HR_AVX512F_INLINE __m512 HighPairs(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}

// A whole 16 x 16 block in registers: columns come in as rows of a matrix, are exchanged within
// pairs, fours and lanes of four, and leave as whole cache lines.
__attribute__((target("avx512f"))) void TransposeBlockAvx512(const float* const* columns,
                                                             uint64_t first_row, float* out,
                                                             uint64_t stride) {
  __m512 a[16], b[16];
#pragma GCC unroll 16
  for (int c = 0; c < 16; ++c) a[c] = _mm512_loadu_ps(columns[c] + first_row);
#pragma GCC unroll 8
  for (int c = 0; c < 16; c += 2) {
    b[c] = _mm512_unpacklo_ps(a[c], a[c + 1]);
    b[c + 1] = _mm512_unpackhi_ps(a[c], a[c + 1]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 16; c += 4) {  // a[c + k], lane l: row 4 l + k of columns c .. c + 3
    a[c] = LowPairs(b[c], b[c + 2]);
    a[c + 1] = HighPairs(b[c], b[c + 2]);
    a[c + 2] = LowPairs(b[c + 1], b[c + 3]);
    a[c + 3] = HighPairs(b[c + 1], b[c + 3]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const __m512 even_low = _mm512_shuffle_f32x4(a[k], a[k + 4], 0x88);  // lanes 0 and 2
    const __m512 odd_low = _mm512_shuffle_f32x4(a[k], a[k + 4], 0xdd);   // lanes 1 and 3
    const __m512 even_high = _mm512_shuffle_f32x4(a[k + 8], a[k + 12], 0x88);
    const __m512 odd_high = _mm512_shuffle_f32x4(a[k + 8], a[k + 12], 0xdd);
    b[k] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
    b[k + 4] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
    b[k + 8] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
    b[k + 12] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
  }
#pragma GCC unroll 16
  for (int row = 0; row < 16; ++row)
    _mm512_storeu_ps(out + static_cast<uint64_t>(row) * stride, b[row]);
}

#endif

// Rows [first, first + rows) of `from` behind the first `to_rows` rows of `to`.
void AppendPresence(PresenceBits* to, uint64_t to_rows, const PresenceBits& from, uint64_t first,
                    uint64_t rows) {
  to->count += AppendBits(from.words, first, rows, to_rows, &to->words);
}

template <typename T>
void AppendRange(Array<T>* to, const Array<T>& from, uint64_t first, uint64_t count) {
  to->insert(to->end(), from.begin() + static_cast<ptrdiff_t>(first),
             from.begin() + static_cast<ptrdiff_t>(first + count));
}

void AppendSparse(SparseColumn* to, uint64_t to_rows, const SparseColumn& from, uint64_t first,
                  uint64_t rows) {
  HR_CHECK(from.dictionary == nullptr, "ids are looked up before rows are joined");
  AppendPresence(&to->present, to_rows, from.present, first, rows);
  const uint32_t begin = from.offsets[first], end = from.offsets[first + rows];
  const uint64_t base = to->values.size();
  if (base + (end - begin) > UINT32_MAX) {
    throw Error(ExitCode::kResources,
                fmt::format("feature {} has more than 2^32 values in one batch", from.name), {},
                "use a smaller batch_rows");
  }
  to->weighted |= from.weighted;
  const bool weighted = to->weighted || !from.weights.empty() || !to->weights.empty();
  if (weighted) to->weights.resize(base, 1.0f);
  AppendRange(&to->values, from.values, begin, end - begin);
  if (weighted && from.weights.empty()) to->weights.resize(to->values.size(), 1.0f);
  if (!from.weights.empty()) AppendRange(&to->weights, from.weights, begin, end - begin);
  if (to->offsets.empty()) to->offsets.push_back(0);
  const size_t old = to->offsets.size();
  to->offsets.resize(old + rows);
  for (uint64_t row = 0; row < rows; ++row) {
    to->offsets[old + row] = static_cast<uint32_t>(base + (from.offsets[first + row + 1] - begin));
  }
}

[[noreturn]] void Broken(const std::string& column, const char* what) {
  throw Error(ExitCode::kBadData, fmt::format("column {}: {}", column, what));
}

void ValidatePresence(const std::string& name, const PresenceBits& present, uint64_t rows) {
  if (present.words.size() != (rows + 63) / 64)
    Broken(name, "presence does not have one bit per row");
  uint64_t count = 0;
  for (const uint64_t word : present.words) count += static_cast<uint64_t>(std::popcount(word));
  if (count != present.count) Broken(name, "presence count differs from its bits");
  if (rows % 64 != 0 && (present.words.back() >> (rows % 64)) != 0)
    Broken(name, "presence has bits past the last row");
}

void ValidateSparse(const SparseColumn& column, uint64_t rows) {
  ValidatePresence(column.name, column.present, rows);
  if (column.offsets.size() != rows + 1 || column.offsets[0] != 0)
    Broken(column.name, "offsets do not start at 0, one per row and one more");
  if (!std::is_sorted(column.offsets.begin(), column.offsets.end()))
    Broken(column.name, "offsets decrease");
  if (column.values.size() != column.offsets.back())
    Broken(column.name, "values differ in number from the last offset");
  if (column.dictionary) {
    const uint64_t entries = column.dictionary->entries().size();
    for (const int64_t index : column.values)
      if (static_cast<uint64_t>(index) >= entries)
        Broken(column.name, "an index leads past the dictionary");
  }
  const bool weighted = column.weighted || !column.weights.empty();
  if (weighted && column.weights.size() != column.values.size())
    Broken(column.name, "weights differ in number from values");
  for (uint64_t row = 0; row < rows; ++row) {
    if (!column.present.Get(row) && column.offsets[row] != column.offsets[row + 1])
      Broken(column.name, "an absent row has values");
  }
}

// All but values and weights.
KeyedJaggedTensor Skeleton(std::span<const SparseColumn* const> columns, uint64_t rows) {
  KeyedJaggedTensor tensor;
  tensor.rows = rows;
  tensor.keys.reserve(columns.size());
  tensor.lengths.resize(columns.size() * rows);
  tensor.offsets.resize(columns.size() * rows + 1);
  uint64_t place = 0;
  int64_t base = 0;
  for (const SparseColumn* column : columns) {
    HR_CHECK(column->dictionary == nullptr, "ids are looked up before they become tensors");
    tensor.keys.push_back(column->name);
    const uint32_t* offsets = column->offsets.data();
    for (uint64_t row = 0; row < rows; ++row)
      tensor.lengths[place + row] = static_cast<int32_t>(offsets[row + 1] - offsets[row]);
    for (uint64_t row = 0; row < rows; ++row) tensor.offsets[place + row] = base + offsets[row];
    place += rows;
    base += static_cast<int64_t>(column->values.size());
  }
  tensor.offsets[place] = base;
  return tensor;
}

// The values of `parts` end to end. In `slab` where some of them lie there and all can be brought
// to their places in one pass from the first to the last: none may have to move up, as it would run
// over one that comes later. `total` is their number.
template <typename T>
Array<T> Join(std::span<Array<T>* const> parts, uint64_t total,
              const std::shared_ptr<Array<T>>& slab, TensorizeFigures* figures) {
  bool in_place = false, ordered = true;
  uint64_t place = 0;
  for (const Array<T>* part : parts) {
    if (slab != nullptr && part->owner() == slab.get()) {
      in_place = true;
      ordered = ordered && static_cast<uint64_t>(part->data() - slab->data()) >= place;
    }
    place += part->size();
  }
  HR_CHECK(place == total, "values differ in number from offsets");
  if (in_place && ordered && total > slab->size()) {
    figures->missing_spare =
        std::max(figures->missing_spare,
                 static_cast<double>(total - slab->size()) / static_cast<double>(slab->size()));
    ordered = false;
  }
  Array<T> joined;
  if (in_place && ordered) {
    joined = Array<T>::Borrow({slab->data(), total}, slab);
  } else {
    joined.resize(total);
  }
  T* next = joined.data();
  for (const Array<T>* part : parts) {
    if (part->data() != next && !part->empty()) {
      std::memmove(next, part->data(), part->size() * sizeof(T));
      figures->copied_bytes += part->size() * sizeof(T);
    }
    next += part->size();
  }
  return joined;
}

KeyedJaggedTensor Settle(std::span<SparseColumn* const> columns, uint64_t rows,
                         const std::shared_ptr<Array<int64_t>>& ids,
                         const std::shared_ptr<Array<float>>* weights, TensorizeFigures* figures) {
  KeyedJaggedTensor tensor =
      Skeleton({const_cast<const SparseColumn* const*>(columns.data()), columns.size()}, rows);
  const auto total = static_cast<uint64_t>(tensor.offsets.back());
  std::vector<Array<int64_t>*> values;
  for (SparseColumn* column : columns) values.push_back(&column->values);
  tensor.values = Join<int64_t>(values, total, ids, figures);
  if (weights == nullptr) return tensor;
  std::vector<Array<float>*> parts;
  for (SparseColumn* column : columns) {
    if (column->weights.empty()) column->weights.assign(column->values.size(), 1.0f);
    parts.push_back(&column->weights);
  }
  tensor.weights = Join<float>(parts, total, *weights, figures);
  return tensor;
}

bool IsWeighted(const SparseColumn& column) { return column.weighted || !column.weights.empty(); }

// Ids and weights of deduplicated columns.
uint64_t GroupedBytes(const FlatMapBatch& batch) {
  uint64_t bytes = 0;
  for (const SparseColumn& column : batch.sparse) {
    if (column.group >= 0)
      bytes += column.values.size() * sizeof(int64_t) + column.weights.size() * sizeof(float);
  }
  return bytes;
}

// All but the sparse features.
TensorBatch TensorizeRest(const FlatMapBatch& batch, std::string_view label) {
  TensorBatch tensors;
  tensors.rows = batch.rows;
  tensors.first_row = batch.first_row;
  tensors.spans = batch.spans;
  std::vector<const float*> dense;
  for (const DenseColumn& column : batch.dense) {
    tensors.dense_names.push_back(column.name);
    dense.push_back(column.values.data());
  }
  tensors.dense.resize(batch.rows * dense.size());
  TransposeColumns(dense, batch.rows, tensors.dense.data());
  if (!label.empty()) {
    const auto found = std::find_if(batch.scalars.begin(), batch.scalars.end(),
                                    [&](const ScalarColumn& c) { return c.name == label; });
    if (found == batch.scalars.end()) {
      throw Error(ExitCode::kUsage, fmt::format("label column {} is not in the batch", label), {},
                  "project it as a column");
    }
    if (found->is_float) {
      tensors.labels = found->floats.Clone();
    } else {
      tensors.labels.assign(found->integers.begin(), found->integers.end());
    }
  }
  tensors.row_ids.resize(batch.rows);
  for (uint64_t row = 0; row < batch.rows; ++row) tensors.row_ids[row] = batch.RowId(row);
  return tensors;
}

}  // namespace

void TransposeColumns(std::span<const float* const> columns, uint64_t rows, float* out,
                      InstructionSet set) {
  const uint64_t stride = columns.size();
  // Several blocks of rows before the next columns: a column's neighbouring lines are read
  // together.
  constexpr uint64_t kTall = 4 * kBlock;
  for (uint64_t top = 0; top < rows; top += kTall) {
    for (uint64_t c = 0; c < stride; c += kBlock) {
      for (uint64_t row = top; row < std::min(top + kTall, rows); row += kBlock) {
        const uint64_t num_rows = std::min(kBlock, rows - row);
        float* block = out + row * stride + c;
#if defined(__x86_64__)
        if (set == InstructionSet::kAvx512 && num_rows == kBlock && stride - c >= kBlock) {
          TransposeBlockAvx512(columns.data() + c, row, block, stride);
          continue;
        }
#endif
        TransposeBlock(columns.data() + c, std::min(kBlock, stride - c), row, num_rows, block,
                       stride);
      }
    }
  }
  (void)set;
}

KeyedJaggedTensor AssembleKjt(std::span<const SparseColumn* const> columns, uint64_t rows,
                              bool weighted) {
  KeyedJaggedTensor tensor = Skeleton(columns, rows);
  const auto total = static_cast<uint64_t>(tensor.offsets.back());
  tensor.values.reserve(total);
  if (weighted) tensor.weights.reserve(total);
  for (const SparseColumn* column : columns) {
    tensor.values.insert(tensor.values.end(), column->values.begin(), column->values.end());
    if (!weighted) continue;
    if (column->weights.empty()) {
      tensor.weights.resize(tensor.values.size(), 1.0f);
    } else {
      tensor.weights.insert(tensor.weights.end(), column->weights.begin(), column->weights.end());
    }
  }
  return tensor;
}

// A tensor for each group: one more where a group has features with weights and without.
// make(columns, group, weighted) assembles its unique rows.
template <typename Batch, typename Make>
static std::vector<InverseKeyedJaggedTensor> AssembleGroups(Batch& batch, const Make& make) {
  std::vector<InverseKeyedJaggedTensor> groups;
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    for (const bool weighted : {false, true}) {
      InverseKeyedJaggedTensor group;
      std::vector<decltype(&batch.sparse[0])> columns;
      uint32_t place = 0;  // among those of this kind
      for (auto& column : batch.sparse) {
        if (IsWeighted(column) != weighted) continue;
        if (column.group == static_cast<int32_t>(g)) {
          columns.push_back(&column);
          group.places.push_back(place);
        }
        ++place;
      }
      if (columns.empty()) continue;
      group.name = batch.groups[g].name;
      group.weighted = weighted;
      group.unique = make(columns, g, weighted);
      group.inverse.assign(batch.groups[g].inverse.begin(), batch.groups[g].inverse.end());
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

TensorBatch Tensorize(const FlatMapBatch& batch, std::string_view label) {
  TensorBatch tensors = TensorizeRest(batch, label);
  std::vector<const SparseColumn*> plain, weighted;
  tensors.groups = AssembleGroups(batch, [&](const auto& columns, size_t g, bool is_weighted) {
    return AssembleKjt(columns, batch.groups[g].unique_rows, is_weighted);
  });
  for (const SparseColumn& column : batch.sparse) {
    if (column.group < 0) (IsWeighted(column) ? weighted : plain).push_back(&column);
  }
  tensors.sparse = AssembleKjt(plain, batch.rows, false);
  tensors.weighted_sparse = AssembleKjt(weighted, batch.rows, true);
  return tensors;
}

TensorBatch Tensorize(FlatMapBatch&& batch, std::string_view label, TensorizeFigures* figures) {
  TensorBatch tensors = TensorizeRest(batch, label);
  std::vector<SparseColumn*> plain, weighted;
  const bool has_slabs = !batch.groups.empty() && batch.group_slabs.size() == batch.groups.size();
  if (has_slabs) figures->group_missing.resize(batch.groups.size(), 0);
  tensors.groups = AssembleGroups(batch, [&](const auto& columns, size_t g, bool is_weighted) {
    const Slabs slabs = has_slabs ? batch.group_slabs[g] : Slabs();
    TensorizeFigures of_group;
    KeyedJaggedTensor unique =
        Settle(columns, batch.groups[g].unique_rows, is_weighted ? slabs.weighted_ids : slabs.ids,
               is_weighted ? &slabs.weights : nullptr, &of_group);
    figures->copied_bytes += of_group.copied_bytes;
    if (has_slabs)
      figures->group_missing[g] = std::max(figures->group_missing[g], of_group.missing_spare);
    return unique;
  });
  for (SparseColumn& column : batch.sparse) {
    if (column.group < 0) (IsWeighted(column) ? weighted : plain).push_back(&column);
  }
  figures->copied_bytes += batch.copied_bytes;
  const Slabs& slabs = batch.slabs;
  tensors.sparse = Settle(plain, batch.rows, slabs.ids, nullptr, figures);
  tensors.weighted_sparse =
      Settle(weighted, batch.rows, slabs.weighted_ids, &slabs.weights, figures);
  batch = FlatMapBatch();
  return tensors;
}

void AppendRows(FlatMapBatch* to, const FlatMapBatch& from, uint64_t first, uint64_t rows) {
  HR_CHECK(first + rows <= from.rows, "rows outside the batch");
  if (to->rows == 0 && to->dense.empty() && to->sparse.empty() && to->scalars.empty()) {
    to->split_id = from.split_id;
    to->first_row = first < from.rows ? from.RowId(first) : from.first_row + first;
    to->dense.resize(from.dense.size());
    to->sparse.resize(from.sparse.size());
    to->scalars.resize(from.scalars.size());
    for (size_t i = 0; i < from.dense.size(); ++i) to->dense[i].name = from.dense[i].name;
    for (size_t i = 0; i < from.sparse.size(); ++i) {
      to->sparse[i].name = from.sparse[i].name;
      to->sparse[i].weighted = from.sparse[i].weighted;
      to->sparse[i].group = from.sparse[i].group;
    }
    for (size_t i = 0; i < from.scalars.size(); ++i) {
      to->scalars[i].name = from.scalars[i].name;
      to->scalars[i].is_float = from.scalars[i].is_float;
    }
  }
  if (to->rows == 0 && rows > 0) to->first_row = from.RowId(first);
  HR_CHECK(to->dense.size() == from.dense.size() && to->sparse.size() == from.sparse.size() &&
               to->scalars.size() == from.scalars.size(),
           "batches of different columns");
  for (size_t i = 0; i < from.dense.size(); ++i) {
    HR_CHECK(to->dense[i].name == from.dense[i].name, "batches of different columns");
    AppendPresence(&to->dense[i].present, to->rows, from.dense[i].present, first, rows);
    AppendRange(&to->dense[i].values, from.dense[i].values, first, rows);
  }
  const uint64_t grouped_before = GroupedBytes(*to);
  AppendGroups(to, from, first, rows);
  to->copied_bytes += GroupedBytes(*to) - grouped_before;
  for (size_t i = 0; i < from.sparse.size(); ++i) {
    HR_CHECK(to->sparse[i].name == from.sparse[i].name, "batches of different columns");
    if (from.sparse[i].group >= 0) continue;
    const size_t before = to->sparse[i].values.size();
    AppendSparse(&to->sparse[i], to->rows, from.sparse[i], first, rows);
    to->copied_bytes +=
        (to->sparse[i].values.size() - before) *
        (IsWeighted(to->sparse[i]) ? sizeof(int64_t) + sizeof(float) : sizeof(int64_t));
  }
  for (size_t i = 0; i < from.scalars.size(); ++i) {
    if (from.scalars[i].is_float) {
      AppendRange(&to->scalars[i].floats, from.scalars[i].floats, first, rows);
    } else {
      AppendRange(&to->scalars[i].integers, from.scalars[i].integers, first, rows);
    }
  }
  AppendSpans(&to->spans, from.spans, first, rows, from.rows,
              [&](uint64_t row) { return from.RowId(row); });
  // Numbers are spelled out only once they are no longer consecutive.
  const bool consecutive = to->row_ids.empty() && from.row_ids.empty() &&
                           from.first_row + first == to->first_row + to->rows;
  if (!consecutive) {
    if (to->row_ids.empty()) {
      to->row_ids.resize(to->rows);
      std::iota(to->row_ids.begin(), to->row_ids.end(), to->first_row);
    }
    for (uint64_t row = first; row < first + rows; ++row) to->row_ids.push_back(from.RowId(row));
  }
  to->rows += rows;
}

void Validate(const FlatMapBatch& batch) {
  for (const DenseColumn& column : batch.dense) {
    ValidatePresence(column.name, column.present, batch.rows);
    if (column.values.size() != batch.rows)
      Broken(column.name, "values differ in number from rows");
    for (uint64_t row = 0; row < batch.rows; ++row) {
      if (!column.present.Get(row) && column.values[row] != 0)
        Broken(column.name, "an absent row has a value");
    }
  }
  for (const DedupGroup& group : batch.groups) {
    if (group.inverse.size() != batch.rows)
      Broken(group.name, "the inverse has not one entry a row");
    for (const uint32_t row : group.inverse)
      if (row >= group.unique_rows) Broken(group.name, "the inverse leads past the unique rows");
  }
  for (const SparseColumn& column : batch.sparse) {
    if (column.group >= static_cast<int32_t>(batch.groups.size()))
      Broken(column.name, "it is of a group that the batch does not have");
    ValidateSparse(column, RowsOf(batch, column));
  }
  for (const ScalarColumn& column : batch.scalars) {
    if ((column.is_float ? column.floats.size() : column.integers.size()) != batch.rows)
      Broken(column.name, "values differ in number from rows");
  }
}

}  // namespace headrace::reader
