// Layouts chosen by cost: what is written for which values, and that the model is what decides.
#include "reader/dwrf/layout_cost.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/row_reader.h"
#include "reader/source/source.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

using Random = std::mt19937_64;
constexpr uint64_t kRows = 3000;

struct Made {
  WrittenFile written;
  std::vector<std::shared_ptr<const Stripe>> stripes;
  std::vector<int64_t> integers;  // as read back
};

// A flattened map of one key with a list of one id in each row.
Made MakeIds(const std::vector<int64_t>& ids, const WriterOptions& options) {
  const Schema schema = Schema::Parse("struct<sparse:map<int,list<bigint>>>");
  Column table = EmptyColumn(schema, 0);
  table.rows = ids.size();
  Column& map = table.children[0];
  Column& keys = map.children[0];
  Column& lists = map.children[1];
  map.rows = keys.rows = lists.rows = lists.children[0].rows = ids.size();
  keys.integers.assign(ids.size(), 7);
  lists.children[0].integers = ids;
  for (uint64_t i = 1; i <= ids.size(); ++i) map.offsets.push_back(i), lists.offsets.push_back(i);
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("headrace-layout-cost-" + std::to_string(getpid()) + ".dwrf"))
                               .string();
  Made made;
  FileWriter writer(path, schema, options, true);
  writer.Write(table);
  made.written = writer.Close();
  const auto file = FileReader::Open(OpenFileSource(path));
  for (size_t s = 0; s < file->num_stripes(); ++s) made.stripes.push_back(file->ReadStripe(s));
  RowReader rows(file);
  Column batch;
  while (rows.NextBatch(kRows, 64 << 20, &batch)) {
    const auto& read = batch.children[0].children[1].children[0].integers;
    made.integers.insert(made.integers.end(), read.begin(), read.end());
  }
  std::filesystem::remove(path);
  return made;
}

WriterOptions For(LayoutGoal goal) {
  WriterOptions options;
  options.flat_maps = {"sparse"};
  options.stripe_rows = kRows;
  options.goal = goal;
  options.choose_codec = true;
  return options;
}

uint64_t Total(const Made& made, uint64_t NodeLayout::*figure) {
  uint64_t total = 0;
  for (const NodeLayout& node : made.written.layout.nodes) total += node.*figure;
  return total;
}

// Ids of 63 bits, so many different ones; 0: none twice.
std::vector<int64_t> Ids(uint64_t seed, uint64_t different, uint64_t rows = kRows) {
  Random random(seed);
  std::vector<int64_t> values(different > 0 ? different : rows), ids(rows);
  for (int64_t& value : values) value = static_cast<int64_t>(random() >> 1);
  for (uint64_t i = 0; i < rows; ++i) ids[i] = values[different > 0 ? random() % different : i];
  return ids;
}

TEST(LayoutCost, IdsThatRepeatInFlattenedMapsGetADictionary) {
  for (const LayoutGoal goal : {LayoutGoal::kBalanced, LayoutGoal::kRead, LayoutGoal::kSize}) {
    const auto ids = Ids(1, 50);
    const Made made = MakeIds(ids, For(goal));
    EXPECT_EQ(made.integers, ids);
    EXPECT_EQ(Total(made, &NodeLayout::dictionaries), 1u) << LayoutGoalName(goal);
    bool stored = false;
    for (const StreamInfo& stream : made.stripes[0]->streams)
      stored |= stream.kind == StreamKind::kDictionaryData && stream.sequence == 1;
    EXPECT_TRUE(stored) << LayoutGoalName(goal);
    WriterOptions fixed = For(LayoutGoal::kFixed);
    EXPECT_LT(made.written.bytes, MakeIds(ids, fixed).written.bytes) << LayoutGoalName(goal);
  }
}

TEST(LayoutCost, LongIdsThatDoNotRepeatAreOfFixedWidth) {
  const auto ids = Ids(2, 0);
  for (const LayoutGoal goal : {LayoutGoal::kBalanced, LayoutGoal::kRead, LayoutGoal::kSize}) {
    const Made made = MakeIds(ids, For(goal));
    EXPECT_EQ(made.integers, ids);
    EXPECT_EQ(Total(made, &NodeLayout::fixed_width), 1u) << LayoutGoalName(goal);
    EXPECT_EQ(Total(made, &NodeLayout::dictionaries), 0u) << LayoutGoalName(goal);
  }
}

TEST(LayoutCost, ShortIdsThatDoNotRepeatStayVarints) {
  std::vector<int64_t> ids(kRows);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int64_t>((i * 2'654'435'761) % (1 << 20));
  WriterOptions options = For(LayoutGoal::kRead);
  const Made made = MakeIds(ids, options);
  EXPECT_EQ(made.integers, ids);
  EXPECT_EQ(Total(made, &NodeLayout::fixed_width), 0u);
  EXPECT_EQ(Total(made, &NodeLayout::dictionaries), 0u);
}

TEST(LayoutCost, WhatAnOptionSaysOfAColumnComesBeforeTheGoal) {
  WriterOptions options = For(LayoutGoal::kBalanced);
  options.columns["sparse.value.element"].dictionary = DictionaryUse::kNever;
  EXPECT_EQ(Total(MakeIds(Ids(1, 50), options), &NodeLayout::dictionaries), 0u);
  options.columns["sparse.value.element"].dictionary = DictionaryUse::kAlways;
  bool stored = false;
  const Made made = MakeIds(Ids(2, 0), options);
  for (const StreamInfo& stream : made.stripes[0]->streams)
    stored |= stream.kind == StreamKind::kDictionaryData;
  EXPECT_TRUE(stored);
}

TEST(LayoutCost, TheCodecOfTheFileIsTheCheapestOfThoseTried) {
  for (const LayoutGoal goal : {LayoutGoal::kBalanced, LayoutGoal::kRead, LayoutGoal::kSize}) {
    for (const uint64_t different : {3, 0}) {
      const LayoutChoice layout = MakeIds(Ids(3, different), For(goal)).written.layout;
      ASSERT_EQ(layout.tried.size(), 3u);
      double least = INFINITY, chosen = NAN;
      for (const auto& [codec, cost] : layout.tried) {
        least = std::min(least, cost.At(goal));
        if (codec == layout.compression) chosen = cost.At(goal);
      }
      EXPECT_EQ(chosen, least) << LayoutGoalName(goal);
    }
  }
  WriterOptions asked = For(LayoutGoal::kBalanced);
  asked.choose_codec = false;
  asked.compression = CompressionKind::kZlib;
  EXPECT_EQ(MakeIds(Ids(3, 3), asked).written.layout.compression, CompressionKind::kZlib);
}

// Only the first stripe is tried; the others are written under its codec, and add up.
TEST(LayoutCost, FiguresAreOfAllStripes) {
  WriterOptions options = For(LayoutGoal::kBalanced);
  options.stripe_rows = 500;
  const auto ids = Ids(4, 20, 1750);
  const Made made = MakeIds(ids, options);
  EXPECT_EQ(made.integers, ids);
  EXPECT_EQ(made.written.layout.rows, 1750u);
  EXPECT_EQ(Total(made, &NodeLayout::integers), 4u);
  double bytes = 0, stored = 0;
  for (const NodeLayout& node : made.written.layout.nodes) bytes += node.stored.bytes;
  for (const auto& stripe : made.stripes)
    for (const StreamInfo& stream : stripe->streams)
      if (stream.kind != StreamKind::kRowIndex) stored += static_cast<double>(stream.length);
  EXPECT_EQ(bytes, stored);
}

// A chunk is compressed to the size where that begins to pay, and not above it.
TEST(LayoutCost, MostStoredBytesIsWhereCompressingStopsToPay) {
  Random random(TestSeed());
  for (int i = 0; i < 2000; ++i) {
    const uint64_t plain = 1 + random() % (256 << 10);
    for (const LayoutGoal goal : {LayoutGoal::kBalanced, LayoutGoal::kRead, LayoutGoal::kSize}) {
      for (const CompressionKind kind :
           {CompressionKind::kZstd, CompressionKind::kLz4, CompressionKind::kZlib}) {
        const uint64_t most = MostStoredBytes(goal, kind, plain);
        const auto cost = [&](uint64_t stored) {
          return LayoutCost{static_cast<double>(stored), DecompressNs(kind, stored, plain)}.At(
              goal);
        };
        const double original = LayoutCost{static_cast<double>(plain), 0}.At(goal);
        EXPECT_LE(most, plain);
        if (most > 0) {
          EXPECT_LE(cost(most), original * (1 + 1e-12));
        }
        EXPECT_GE(cost(most + 1), original * (1 - 1e-12));
      }
    }
  }
}

TEST(LayoutCost, RowsOfAStripe) {
  const struct {
    const char* name;
    LayoutGoal goal;
    uint64_t table_rows;
    double row_bytes;
    uint64_t rows;
  } kCases[] = {
      {"a small table keeps small stripes", LayoutGoal::kBalanced, 1000, 100, 2048},
      {"eight stripes", LayoutGoal::kBalanced, 65'536, 100, 8192},
      {"one row short of them", LayoutGoal::kBalanced, 65'535, 100, 4096},
      {"a large table", LayoutGoal::kBalanced, 10'000'000, 12'000, 8192},
      {"a large table for size", LayoutGoal::kSize, 10'000'000, 12'000, 16'384},
      {"rows of many features", LayoutGoal::kBalanced, 10'000'000, 40'000, 4096},
      {"rows of more than fit", LayoutGoal::kBalanced, 10'000'000, 1e9, 2048},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(ChooseStripeRows(c.goal, c.table_rows, c.row_bytes), c.rows) << c.name;
}

}  // namespace
}  // namespace headrace::reader::dwrf
