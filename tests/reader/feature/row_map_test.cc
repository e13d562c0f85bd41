// RowMapBatch: conversion both ways, and ordinary maps through the fast path equal to the same rows
// in flattened maps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "reader/batch/row_map_batch.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

SparseColumn Sparse(const std::string& name, std::vector<uint32_t> offsets, uint64_t present,
                    std::vector<int64_t> values) {
  SparseColumn column;
  column.name = name;
  column.present.words = {present};
  column.present.count = static_cast<uint64_t>(__builtin_popcountll(present));
  column.offsets = std::move(offsets);
  column.values = std::move(values);
  return column;
}

TEST(RowMap, KeepsAbsentApartFromEmpty) {
  FlatMapBatch batch;
  batch.rows = 3;
  batch.sparse.push_back(Sparse("sparse:20", {0, 1, 1, 1}, 0b001, {9}));
  batch.sparse.push_back(Sparse("sparse:17", {0, 2, 2, 2}, 0b101, {7, 8}));
  const std::vector<RowMapFeature> features = {{"sparse:20", 20}, {"sparse:17", 17}};
  const RowMapColumn map = ToRowMaps(batch, "sparse", FeatureKind::kSparse, features);
  EXPECT_EQ(map.row_offsets, (std::vector<uint32_t>{0, 2, 2, 3}));
  ASSERT_EQ(map.entries.size(), 3u);
  EXPECT_EQ(map.entries[0].key, 17);  // of a row by key, whatever the columns' order
  EXPECT_EQ(map.entries[1].key, 20);
  EXPECT_EQ(map.entries[2].key, 17);
  EXPECT_EQ(map.entries[2].count, 0u);
  EXPECT_EQ(map.ids, (std::vector<int64_t>{7, 8, 9}));
  FlatMapBatch back;
  back.rows = 3;
  ToColumns(map, {{"sparse:20", 20}, {"sparse:17", 17}, {"sparse:5", 5}}, &back);
  Validate(back);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.sparse[i].offsets, batch.sparse[i].offsets);
    EXPECT_EQ(back.sparse[i].values, batch.sparse[i].values);
    EXPECT_EQ(back.sparse[i].present.words, batch.sparse[i].present.words);
  }
  EXPECT_EQ(back.sparse[2].present.count, 0u);
}

// Rows of three maps with nulls, empty maps and null values, written flattened or whole.
dwrf::WriterOptions Options(bool flat) {
  dwrf::WriterOptions options;
  options.compression = dwrf::CompressionKind::kNone;
  options.stripe_rows = 300;
  if (flat) options.flat_maps = {"dense", "sparse", "weighted"};
  return options;
}

Column Leaf(TypeKind kind) {
  Column column;
  column.kind = kind;
  return column;
}

// map<int, V> with up to 5 of the keys 1..6 in a row; `value` appends one V.
template <class Function>
Column RandomMap(std::mt19937_64* random, uint64_t rows, Column values, Function value) {
  Column map = Leaf(TypeKind::kMap);
  map.rows = rows;
  map.offsets.push_back(0);
  Column keys = Leaf(TypeKind::kInt);
  for (uint64_t row = 0; row < rows; ++row) {
    const bool is_null = (*random)() % 9 == 0;
    map.present.push_back(is_null ? 0 : 1);
    for (int64_t key = 6; key >= 1 && !is_null; --key) {
      if ((*random)() % 2 == 0) continue;
      keys.integers.push_back(key);
      ++keys.rows;
      value(&values);
    }
    map.offsets.push_back(keys.rows);
  }
  map.children = {std::move(keys), std::move(values)};
  return map;
}

Column RandomRows(uint64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  Column table = Leaf(TypeKind::kStruct);
  table.rows = rows;
  table.children.push_back(RandomMap(&random, rows, Leaf(TypeKind::kFloat), [&](Column* values) {
    const bool is_null = random() % 7 == 0;
    values->present.push_back(is_null ? 0 : 1);
    values->floats.push_back(is_null ? 0 : static_cast<float>(random() % 100));
    ++values->rows;
  }));
  Column lists = Leaf(TypeKind::kList);
  lists.offsets.push_back(0);
  lists.children.push_back(Leaf(TypeKind::kLong));
  table.children.push_back(RandomMap(&random, rows, std::move(lists), [&](Column* values) {
    Column& ids = values->children[0];
    for (uint64_t i = random() % 4; i > 0; --i, ++ids.rows)
      ids.integers.push_back(static_cast<int64_t>(random() % 1000));
    values->offsets.push_back(ids.rows);
    ++values->rows;
  }));
  Column inner = Leaf(TypeKind::kMap);
  inner.offsets.push_back(0);
  inner.children = {Leaf(TypeKind::kLong), Leaf(TypeKind::kFloat)};
  table.children.push_back(RandomMap(&random, rows, std::move(inner), [&](Column* values) {
    for (uint64_t i = random() % 3; i > 0; --i) {
      values->children[0].integers.push_back(static_cast<int64_t>(random() % 50 * 10 + i));
      ++values->children[0].rows;
      values->children[1].floats.push_back(static_cast<float>(random() % 8));
      ++values->children[1].rows;
    }
    values->offsets.push_back(values->children[0].rows);
    ++values->rows;
  }));
  return table;
}

std::string Write(const Column& rows, bool flat) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("headrace-row-map-" + std::to_string(getpid()) + ".dwrf");
  dwrf::FileWriter writer(path.string(),
                          Schema::Parse("struct<dense:map<int,float>,sparse:map<int,list<bigint>>,"
                                        "weighted:map<int,map<bigint,float>>>"),
                          Options(flat), true);
  writer.Write(rows);
  writer.Close();
  std::string bytes = ReadWholeFile(path.string());
  std::filesystem::remove(path);
  return bytes;
}

std::vector<FlatMapBatch> ReadFeatures(std::string bytes) {
  const auto file = dwrf::FileReader::Open(MemorySource("rows.dwrf", std::move(bytes)));
  dwrf::Projection projection;
  for (const int64_t key : {3, 99, 1, 6})
    for (const char* map : {"weighted", "dense", "sparse"})
      projection.features.push_back({map, dwrf::MapKey::Of(key)});
  std::vector<FlatMapBatch> batches;
  for (size_t s = 0; s < file->num_stripes(); ++s) {
    batches.push_back(dwrf::Extract(dwrf::Decode(dwrf::Decompress(
        Fetch(dwrf::MakePlan(*file, file->ReadStripe(s), projection), file->source())))));
    Validate(batches.back());
  }
  return batches;
}

TEST(RowMap, OrdinaryMapsGiveTheColumnsOfFlattenedOnes) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const Column rows = RandomRows(700, seed);
    const auto flat = ReadFeatures(Write(rows, true)), whole = ReadFeatures(Write(rows, false));
    ASSERT_EQ(flat.size(), whole.size());
    for (size_t i = 0; i < flat.size(); ++i) {
      ASSERT_EQ(flat[i].dense.size(), whole[i].dense.size());
      for (size_t c = 0; c < flat[i].dense.size(); ++c) {
        EXPECT_EQ(flat[i].dense[c].name, whole[i].dense[c].name);
        EXPECT_EQ(flat[i].dense[c].present.words, whole[i].dense[c].present.words);
        EXPECT_EQ(flat[i].dense[c].values, whole[i].dense[c].values);
      }
      ASSERT_EQ(flat[i].sparse.size(), whole[i].sparse.size());
      for (size_t c = 0; c < flat[i].sparse.size(); ++c) {
        EXPECT_EQ(flat[i].sparse[c].name, whole[i].sparse[c].name);
        EXPECT_EQ(flat[i].sparse[c].present.words, whole[i].sparse[c].present.words);
        EXPECT_EQ(flat[i].sparse[c].offsets, whole[i].sparse[c].offsets);
        EXPECT_EQ(flat[i].sparse[c].values, whole[i].sparse[c].values);
        EXPECT_EQ(flat[i].sparse[c].weights, whole[i].sparse[c].weights);
        EXPECT_EQ(flat[i].sparse[c].weighted, whole[i].sparse[c].weighted);
      }
    }
  }
}

TEST(RowMap, DamageIsAnErrorOrOtherValues) {
  const uint64_t seed = TestSeed(5);
  std::mt19937_64 random(seed);
  const std::string bytes = Write(RandomRows(700, 9), false);
  uint64_t refused = 0;
  for (int i = 0; i < 600; ++i) {
    std::string changed = bytes;
    for (uint64_t n = 1 + random() % 3; n > 0; --n)
      changed[random() % (bytes.size() - 1)] = static_cast<char>(random());
    try {
      ReadFeatures(changed);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 20u);
}

}  // namespace
}  // namespace headrace::reader
