// The layout that a run keeps of its table, against the map that 'headrace layout' makes of it.
#include "experiments/layout_record.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "reader/dwrf/layout_map.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"
#include "workloads/generator.h"

namespace headrace::experiments {
namespace {

class LayoutRecord : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char folder[] = "/tmp/headrace-layout-record-XXXXXX";
    folder_ = mkdtemp(folder);
    workloads::WorkloadSpec spec = workloads::ForModel("rm1", 0.0625, 1500, 1);
    spec.stripe_rows = 400;
    spec.partitions = 2;
    workloads::GenerateTable(spec, folder_ + "/table");
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static reader::PipelineSpec Spec(const reader::Settings& settings = {}) {
    return reader::LoadPipeline(folder_ + "/table/pipeline.toml", settings);
  }
  static constexpr int64_t kForEver = int64_t{1} << 60;

  static inline std::string folder_;
};

TEST_F(LayoutRecord, IsTheMapOfTheTable) {
  for (const char* gap : {"0", "4KiB", "128KiB", "1MiB"}) {
    SCOPED_TRACE(gap);
    const reader::PipelineSpec spec = Spec({{"source.coalesce_gap", gap}});
    const reader::Table table = reader::OpenTable(spec.table);
    reader::dwrf::LayoutOptions options;
    options.projection = &spec.projection;
    options.max_gap_bytes = spec.fetch.max_gap_bytes;
    options.max_read_bytes = spec.fetch.max_read_bytes;
    const reader::dwrf::LayoutMap map = reader::dwrf::MapLayout(table.files, options);
    const collectors::LayoutRows rows =
        ReadLayout(spec, nullptr, {.longest_ns = kForEver, .most_pieces = SIZE_MAX});
    ASSERT_EQ(rows.reason, "");
    EXPECT_EQ(rows.stripes.size(), table.splits.size());
    EXPECT_EQ(rows.stripes_count, static_cast<int64_t>(table.splits.size()));
    int64_t stored = 0, wanted = 0, over = 0, reads = 0, table_rows = 0;
    for (const collectors::LayoutStripeRow& stripe : rows.stripes) {
      stored += stripe.stored_bytes;
      wanted += stripe.wanted_bytes;
      over += stripe.over_read_bytes;
      reads += stripe.reads_count;
      table_rows += stripe.rows_count;
    }
    EXPECT_EQ(stored, static_cast<int64_t>(map.stripe_bytes()));
    EXPECT_EQ(wanted, static_cast<int64_t>(map.wanted_bytes));
    EXPECT_EQ(over, static_cast<int64_t>(map.over_read_bytes()));
    EXPECT_EQ(reads, static_cast<int64_t>(map.reads));
    EXPECT_EQ(table_rows, static_cast<int64_t>(table.rows));
  }
}

TEST_F(LayoutRecord, PiecesOfAStripeFollowEachOtherAndAddUp) {
  const collectors::LayoutRows rows =
      ReadLayout(Spec(), nullptr, {.longest_ns = kForEver, .most_pieces = SIZE_MAX});
  ASSERT_FALSE(rows.stripes.empty());
  std::map<int64_t, std::vector<collectors::LayoutStreamRow>> by_stripe;
  for (const auto& piece : rows.streams) by_stripe[piece.stripe_index].push_back(piece);
  std::map<int64_t, std::vector<collectors::LayoutReadRow>> reads;
  for (const auto& read : rows.reads) reads[read.stripe_index].push_back(read);
  bool any_key = false;
  for (const collectors::LayoutStripeRow& stripe : rows.stripes) {
    SCOPED_TRACE(stripe.stripe_index);
    int64_t at = stripe.offset_bytes, streams = 0, wanted = 0, over = 0;
    for (const auto& piece : by_stripe[stripe.stripe_index]) {
      EXPECT_EQ(piece.offset_bytes, at);
      EXPECT_LE(piece.wanted_bytes + piece.over_read_bytes, piece.stored_bytes);
      at += piece.stored_bytes;
      streams += piece.streams_count;
      wanted += piece.wanted_bytes;
      over += piece.over_read_bytes;
      any_key |= piece.column_name == "sparse" && !piece.feature_key.empty();
    }
    EXPECT_EQ(at, stripe.offset_bytes + stripe.stored_bytes);
    EXPECT_EQ(wanted, stripe.wanted_bytes);
    EXPECT_EQ(over, stripe.over_read_bytes);
    EXPECT_LE(streams, stripe.streams_count) << "streams of no byte are no pieces";
    int64_t read = 0, of_reads = 0, end = 0;
    for (const auto& each : reads[stripe.stripe_index]) {
      EXPECT_GE(each.offset_bytes, end);
      end = each.offset_bytes + each.read_bytes;
      read += each.read_bytes;
      of_reads += each.wanted_bytes;
    }
    EXPECT_EQ(read, wanted + over);
    EXPECT_EQ(of_reads, wanted);
  }
  EXPECT_TRUE(any_key);
}

TEST_F(LayoutRecord, ATableOfManyStripesIsKnownByItsFirst) {
  const collectors::LayoutRows rows =
      ReadLayout(Spec(), nullptr, {.longest_ns = kForEver, .most_stripes = 3, .most_pieces = 1});
  EXPECT_EQ(rows.stripes.size(), 3u);
  EXPECT_GT(rows.stripes_count, 3);
  ASSERT_FALSE(rows.streams.empty()) << "the first is known whatever it takes";
  EXPECT_EQ(rows.streams.front().stripe_index, 0);
  EXPECT_EQ(rows.streams.back().stripe_index, 0);
  EXPECT_EQ(ReadLayout(Spec(), [] { return true; }).stripes.size(), 1u);
}

// What is merged so that a page can draw it must not change what was counted.
TEST_F(LayoutRecord, FeaturesAreCountedBeforePiecesAreMerged) {
  const collectors::LayoutRows fine =
      ReadLayout(Spec(), nullptr, {.longest_ns = kForEver, .most_pieces = SIZE_MAX});
  const collectors::LayoutRows coarse = ReadLayout(
      Spec(), nullptr, {.longest_ns = kForEver, .most_pieces = SIZE_MAX, .most_of_first = 10});
  EXPECT_LT(coarse.streams.size(), fine.streams.size());
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, int64_t>> features;
  for (const auto& piece : fine.streams) {
    if (piece.area != "data" || piece.feature_key.empty()) continue;
    auto& [stored, wanted] = features[{piece.column_name, piece.feature_key}];
    stored += piece.stored_bytes;
    wanted += piece.wanted_bytes;
  }
  int64_t used = 0, stored_bytes = 0, used_bytes = 0;
  for (const auto& [key, bytes] : features) {
    used += bytes.second > 0;
    stored_bytes += bytes.first;
    used_bytes += bytes.second;
  }
  ASSERT_GT(used, 0);
  ASSERT_LT(used, static_cast<int64_t>(features.size()));
  for (const collectors::LayoutRows* rows : {&fine, &coarse}) {
    EXPECT_EQ(rows->stored_features_count, static_cast<int64_t>(features.size()));
    EXPECT_EQ(rows->used_features_count, used);
    EXPECT_EQ(rows->stored_features_bytes, stored_bytes);
    EXPECT_EQ(rows->used_features_bytes, used_bytes);
    EXPECT_EQ(rows->detailed_stripes_count, rows->stripes_count);
  }
}

// A file behind the last stripe that is read is not opened where the number of stripes is known.
TEST_F(LayoutRecord, FilesBeyondTheLimitsAreNotOpened) {
  const std::string table = folder_ + "/damaged";
  std::filesystem::create_directory(table);
  std::filesystem::copy(folder_ + "/table/part-00000.dwrf", table + "/part-00000.dwrf");
  std::ofstream(table + "/part-00001.dwrf") << "no table";
  reader::PipelineSpec spec = Spec();
  spec.table = table;
  const LayoutLimits limits{.longest_ns = kForEver, .most_stripes = 1};
  EXPECT_NE(ReadLayout(spec, nullptr, limits).reason, "") << "every file is counted";
  const collectors::LayoutRows rows = ReadLayout(spec, nullptr, limits, 1234);
  EXPECT_EQ(rows.reason, "");
  EXPECT_EQ(rows.stripes.size(), 1u);
  EXPECT_EQ(rows.stripes_count, 1234);
  EXPECT_EQ(rows.files_count, 2);
  EXPECT_EQ(rows.file_bytes,
            static_cast<int64_t>(std::filesystem::file_size(table + "/part-00000.dwrf")) + 8);
}

TEST_F(LayoutRecord, AChecksumIsOfAllOfAStripe) {
  const collectors::LayoutRows rows = ReadLayout(Spec({{"source.checksum", "true"}}), nullptr);
  EXPECT_TRUE(rows.whole_stripes);
  for (const collectors::LayoutStripeRow& stripe : rows.stripes)
    EXPECT_EQ(stripe.wanted_bytes + stripe.over_read_bytes, stripe.stored_bytes);
}

TEST_F(LayoutRecord, WhatCannotBeReadHasAReason) {
  reader::PipelineSpec spec = Spec();
  spec.table = folder_ + "/none";
  EXPECT_NE(ReadLayout(spec, nullptr).reason, "");
  EXPECT_TRUE(ReadLayout(spec, nullptr).stripes.empty());
  spec.table = "s3://bucket/folder";
  EXPECT_NE(ReadLayout(spec, nullptr).reason.find("remote"), std::string::npos);
  spec = Spec();
  spec.repeat_first_batch = true;
  EXPECT_NE(ReadLayout(spec, nullptr).reason, "");
}

}  // namespace
}  // namespace headrace::experiments
