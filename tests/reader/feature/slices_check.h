// DecodeSlices against Decode and Extract, on one stripe: for all slices, any selection of rows,
// every instruction set, with and without groups.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "reader/batch/dedup_rows.h"
#include "reader/batch/keep_rows.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/slices.h"

namespace headrace::reader::dwrf {

inline void ExpectSameColumns(const FlatMapBatch& a, const FlatMapBatch& b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.dense.size(), b.dense.size());
  for (size_t i = 0; i < a.dense.size(); ++i) {
    ASSERT_EQ(a.dense[i].name, b.dense[i].name);
    ASSERT_EQ(a.dense[i].present.words, b.dense[i].present.words);
    ASSERT_EQ(a.dense[i].present.count, b.dense[i].present.count);
    ASSERT_EQ(a.dense[i].values.size(), b.dense[i].values.size());
    // Bit for bit: a NaN equals itself.
    ASSERT_TRUE(std::equal(
        a.dense[i].values.begin(), a.dense[i].values.end(), b.dense[i].values.begin(),
        [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); }));
  }
  ASSERT_EQ(a.sparse.size(), b.sparse.size());
  for (size_t i = 0; i < a.sparse.size(); ++i) {
    SCOPED_TRACE(a.sparse[i].name);
    ASSERT_EQ(a.sparse[i].name, b.sparse[i].name);
    ASSERT_EQ(a.sparse[i].weighted, b.sparse[i].weighted);
    ASSERT_EQ(a.sparse[i].present.words, b.sparse[i].present.words);
    ASSERT_EQ(a.sparse[i].present.count, b.sparse[i].present.count);
    ASSERT_EQ(a.sparse[i].offsets, b.sparse[i].offsets);
    ASSERT_EQ(a.sparse[i].values, b.sparse[i].values);
    ASSERT_EQ(a.sparse[i].weights.size(), b.sparse[i].weights.size());
    ASSERT_TRUE(std::equal(
        a.sparse[i].weights.begin(), a.sparse[i].weights.end(), b.sparse[i].weights.begin(),
        [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); }));
  }
  ASSERT_EQ(a.scalars.size(), b.scalars.size());
  for (size_t i = 0; i < a.scalars.size(); ++i) {
    ASSERT_EQ(a.scalars[i].name, b.scalars[i].name);
    ASSERT_EQ(a.scalars[i].is_float, b.scalars[i].is_float);
    ASSERT_EQ(a.scalars[i].integers, b.scalars[i].integers);
    ASSERT_EQ(a.scalars[i].floats, b.scalars[i].floats);
  }
}

inline void ExpectSameTensors(const KeyedJaggedTensor& a, const KeyedJaggedTensor& b) {
  Validate(a);
  ASSERT_EQ(a.keys, b.keys);
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.lengths, b.lengths);
  ASSERT_EQ(a.offsets, b.offsets);
  ASSERT_EQ(a.values, b.values);
  ASSERT_EQ(a.weights.size(), b.weights.size());
}

inline uint64_t OneHashForAll(const void*, size_t, uint64_t) { return 42; }

// Most sparse features of the batch, dealt into groups of one kind each.
inline GroupRequests RandomGroups(const FlatMapBatch& batch, std::mt19937_64* random) {
  GroupRequests requests;
  requests.scope = (*random)() % 2 == 0 ? DedupScope::kNeighbours : DedupScope::kBatch;
  if ((*random)() % 4 == 0) requests.hash = OneHashForAll;
  std::vector<size_t> open[2];  // requests that may take one more
  for (const SparseColumn& column : batch.sparse) {
    if ((*random)() % 5 == 0) continue;
    auto& groups = open[column.weighted ? 1 : 0];
    if (groups.empty() || (*random)() % 2 == 0) {
      groups.push_back(requests.groups.size());
      requests.groups.push_back({std::to_string(requests.groups.size()), {}});
    }
    requests.groups[groups[(*random)() % groups.size()]].features.push_back(column.name);
  }
  return requests;
}

// Some of the batch's sparse features.
inline DictionaryRequest RandomDictionaries(const FlatMapBatch& batch, std::mt19937_64* random) {
  DictionaryRequest request;
  request.always = (*random)() % 2 == 0;
  for (const SparseColumn& column : batch.sparse)
    if ((*random)() % 4 != 0)
      request.features[column.name] = 1 + static_cast<double>((*random)() % 3) / 2;
  return request;
}

// Puts ids in the place of indices; returns how many columns had them. There are never more entries
// than values they were used for, which is not seen in a part of them, nor where entries of inner
// maps were left out.
inline uint64_t LookUpAll(FlatMapBatch* batch, bool is_whole) {
  uint64_t kept = 0;
  for (SparseColumn& column : batch->sparse) {
    if (!column.dictionary) continue;
    ++kept;
    if (is_whole && !column.weighted) {
      EXPECT_LE(column.dictionary->entries().size(), column.values.size());
    }
    for (const int64_t index : column.values)
      EXPECT_LT(static_cast<uint64_t>(index), column.dictionary->entries().size());
  }
  LookUpIds(batch);
  for (const SparseColumn& column : batch->sparse) EXPECT_EQ(column.dictionary, nullptr);
  return kept;
}

// Slices with groups: the same rows, the same unique rows as Decode finds, and nothing copied for
// the tensors; also where ids stay in dictionaries. Adds to `kept` how many columns of groups did.
template <typename Unpack>
void CheckGroupedSlices(const Unpack& unpack, const FlatMapBatch& expected,
                        const std::vector<uint8_t>& keep, uint64_t slice_rows,
                        std::mt19937_64* random, uint64_t* kept) {
  const GroupRequests requests = RandomGroups(expected, random);
  FlatMapBatch ordinary = Extract(Decode(unpack(), &requests));
  if (!keep.empty()) KeepRows(&ordinary, keep);
  SliceOptions options;
  options.slice_rows = slice_rows;
  options.wanted = keep;
  options.groups = &requests;
  const std::vector<double> spare(requests.groups.size(), 0.5);
  if ((*random)() % 2 == 0) options.group_spare = spare;
  const DictionaryRequest dictionaries = RandomDictionaries(expected, random);
  if ((*random)() % 2 == 0) options.dictionaries = &dictionaries;
  DecodedStripe decoded = DecodeSlices(unpack(), options);
  ASSERT_EQ(decoded.kept_rows, expected.rows);
  uint64_t first_row = 0;
  for (uint64_t s = 0; s < decoded.slices.size(); ++s) {
    FlatMapBatch slice = ExtractSlice(&decoded, s);
    if (slice.rows == 0) continue;
    SCOPED_TRACE(testing::Message() << "grouped slice " << s);
    Validate(slice);
    for (const SparseColumn& column : slice.sparse) {
      if (!column.dictionary) continue;
      *kept += column.group >= 0;
      ASSERT_GE(column.decoded_values, column.values.size());
    }
    LookUpAll(&slice, false);
    ASSERT_EQ(slice.groups.size(), requests.groups.size());
    FlatMapBatch part, ordinary_part;
    AppendRows(&part, expected, first_row, slice.rows);
    AppendRows(&ordinary_part, ordinary, first_row, slice.rows);
    first_row += slice.rows;
    for (size_t g = 0; g < slice.groups.size(); ++g) {
      const DedupGroup& group = slice.groups[g];
      ASSERT_EQ(group.name, requests.groups[g].name);
      ASSERT_GE(group.unique_rows, 1u);
      ASSERT_LE(group.unique_rows, slice.rows);
      ASSERT_EQ(slice.group_slabs[g].spare, options.group_spare.empty() ? 0 : 0.5);
      const auto same = std::find_if(ordinary_part.groups.begin(), ordinary_part.groups.end(),
                                     [&](const DedupGroup& one) { return one.name == group.name; });
      if (same == ordinary_part.groups.end()) continue;  // its features are not plain
      ASSERT_EQ(group.unique_rows, same->unique_rows);
      ASSERT_EQ(group.inverse, same->inverse);
    }
    const TensorBatch want = Tensorize(part, "");
    const uint64_t copied_before = slice.copied_bytes;
    FlatMapBatch expanded = slice.Clone();
    ExpandAll(&expanded);
    ASSERT_NO_FATAL_FAILURE(ExpectSameColumns(expanded, part));
    TensorizeFigures figures;
    TensorBatch have = Tensorize(std::move(slice), "", &figures);
    ASSERT_EQ(figures.copied_bytes, copied_before);
    for (const InverseKeyedJaggedTensor& group : have.groups) Validate(group);
    ExpandGroups(&have);
    ASSERT_NO_FATAL_FAILURE(ExpectSameTensors(have.sparse, want.sparse));
    ASSERT_NO_FATAL_FAILURE(ExpectSameTensors(have.weighted_sparse, want.weighted_sparse));
  }
  ASSERT_EQ(first_row, expected.rows);
}

// `unpack` gives the same unpacked stripe at every call. Adds to `kept`, unless null, how many
// columns came with a dictionary; to `grouped` how many of groups did.
template <typename Unpack>
void CheckSlices(const Unpack& unpack, std::mt19937_64* random, uint64_t* kept = nullptr,
                 uint64_t* grouped = nullptr) {
  uint64_t ignored = 0;
  if (kept == nullptr) kept = &ignored;
  if (grouped == nullptr) grouped = &ignored;
  UnpackedStripe first = unpack();
  if (!first.plan.maps.empty()) return;
  const uint64_t rows = first.plan.rows;
  FlatMapBatch whole = Extract(Decode(std::move(first)));
  {
    const DictionaryRequest request = RandomDictionaries(whole, random);
    FlatMapBatch again = Extract(Decode(unpack(), nullptr, &request));
    *kept += LookUpAll(&again, true);
    ASSERT_NO_FATAL_FAILURE(ExpectSameColumns(again, whole));
  }
  for (int trial = 0; trial < 4; ++trial) {
    std::vector<uint8_t> keep;
    if (trial > 0) {  // a few rows, about half, long stretches
      keep.resize(rows);
      uint8_t now = 0;
      for (uint8_t& k : keep) {
        if (trial == 1) now = (*random)() % 16 == 0;
        if (trial == 2) now = (*random)() % 2;
        if (trial == 3 && (*random)() % 30 == 0) now = !now;
        k = now;
      }
    }
    FlatMapBatch expected = whole.Clone();
    if (!keep.empty()) KeepRows(&expected, keep);
    const uint64_t grouped_sizes[] = {0, 1, 7, 64, 100, rows + 1};
    ASSERT_NO_FATAL_FAILURE(CheckGroupedSlices(
        unpack, expected, keep,
        rows > 300 ? 64 + (*random)() % rows : grouped_sizes[(*random)() % 6], random, grouped));
    for (const InstructionSet set :
         {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
      if (set > BestInstructionSet()) continue;
      SliceOptions options;
      const uint64_t sizes[] = {0, 1, 7, 64, 100, rows, rows + 1};
      options.slice_rows =
          rows > 300 && trial < 2 ? 64 + (*random)() % rows : sizes[(*random)() % std::size(sizes)];
      options.wanted = keep;
      options.spare = static_cast<double>((*random)() % 3) / 4;
      options.set = set;
      const DictionaryRequest request = RandomDictionaries(whole, random);
      if ((*random)() % 2 == 0) options.dictionaries = &request;
      SCOPED_TRACE(testing::Message() << "slices of " << options.slice_rows << " of " << rows
                                      << " rows, selection " << trial);
      DecodedStripe decoded = DecodeSlices(unpack(), options);
      ASSERT_EQ(decoded.slices.size(), NumSlices(rows, options.slice_rows));
      ASSERT_EQ(decoded.kept_rows, expected.rows);
      FlatMapBatch joined;
      uint64_t first_row = 0;
      for (uint64_t s = 0; s < decoded.slices.size(); ++s) {
        FlatMapBatch slice = ExtractSlice(&decoded, s);
        if (slice.rows == 0) continue;
        *kept += LookUpAll(&slice, false);
        Validate(slice);
        AppendRows(&joined, slice, 0, slice.rows);
        // The same rows as tensors, the slab becoming the tensors' values.
        FlatMapBatch part;
        AppendRows(&part, expected, first_row, slice.rows);
        first_row += slice.rows;
        const TensorBatch want = Tensorize(part, "");
        const uint64_t copied_before = slice.copied_bytes;
        TensorizeFigures figures;
        const TensorBatch have = Tensorize(std::move(slice), "", &figures);
        ASSERT_EQ(figures.copied_bytes, copied_before);
        ASSERT_EQ(have.dense.size(), want.dense.size());
        ASSERT_NO_FATAL_FAILURE(ExpectSameTensors(have.sparse, want.sparse));
        ASSERT_NO_FATAL_FAILURE(ExpectSameTensors(have.weighted_sparse, want.weighted_sparse));
      }
      if (expected.rows > 0) {
        ASSERT_NO_FATAL_FAILURE(ExpectSameColumns(joined, expected));
      }
    }
  }
}

}  // namespace headrace::reader::dwrf
