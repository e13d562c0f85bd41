// What a rewrite chooses for a goal, and what the advice to rewrite is measured on.
#include "workloads/rewrite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "workloads/compression.h"
#include "workloads/generator.h"
#include "workloads/layout_advice.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
using reader::dwrf::CompressionKind;
using reader::dwrf::LayoutGoal;

class Rewriting : public testing::Test {
 protected:
  Rewriting() {
    std::string pattern = (fs::temp_directory_path() / "rewrite.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Rewriting() override { fs::remove_all(folder_); }

  std::string PathOf(const std::string& name) const { return (folder_ / name).string(); }
  reader::Table MakeTable(uint64_t rows, uint64_t stripe_rows, const RewriteOptions& options = {}) {
    WorkloadSpec workload = ForModel("rm1", 0.005, rows, 1);
    workload.partitions = 2;
    workload.optimize = LayoutGoal::kFixed;
    workload.stripe_rows = stripe_rows;
    GenerateTable(workload, PathOf("source"));
    RewriteTable(PathOf("source"), PathOf("table"), options);
    return reader::OpenTable(PathOf("table"));
  }

  fs::path folder_;
};

TEST_F(Rewriting, AGoalMakesNoStripeSmaller) {
  const reader::Table table = MakeTable(8192, 4096);
  ASSERT_EQ(table.splits[0].rows, 4096u);
  for (const LayoutGoal goal : {LayoutGoal::kBalanced, LayoutGoal::kRead, LayoutGoal::kSize}) {
    RewriteOptions options;
    options.optimize = goal;
    EXPECT_EQ(RewriteWriterOptions(table, options).stripe_rows, 4096u);
    options.stripe_rows = 100;  // what is asked for comes first
    EXPECT_EQ(RewriteWriterOptions(table, options).stripe_rows, 100u);
  }
}

TEST_F(Rewriting, AGoalMakesSmallStripesLarger) {
  RewriteOptions options;
  const reader::Table table = MakeTable(2048, 256);
  options.optimize = LayoutGoal::kBalanced;
  EXPECT_EQ(RewriteWriterOptions(table, options).stripe_rows, 2048u);
}

TEST_F(Rewriting, ACodecThatIsNamedIsNotChosenAndStripesStillAre) {
  RewriteOptions options;
  const reader::Table table = MakeTable(2048, 256);
  options.optimize = LayoutGoal::kBalanced;
  EXPECT_TRUE(RewriteWriterOptions(table, options).choose_codec);
  options.compression = "lz4";
  const reader::dwrf::WriterOptions named = RewriteWriterOptions(table, options);
  EXPECT_FALSE(named.choose_codec);
  EXPECT_EQ(named.compression, CompressionKind::kLz4);
  EXPECT_EQ(named.stripe_rows, 2048u);
  options.optimize = LayoutGoal::kFixed;
  EXPECT_EQ(RewriteWriterOptions(table, options).stripe_rows, 256u);
}

TEST(Compression, CodecsAreCalledAsOptionsCallThem) {
  for (const CompressionKind kind :
       {CompressionKind::kNone, CompressionKind::kZlib, CompressionKind::kSnappy,
        CompressionKind::kZstd, CompressionKind::kLz4})
    EXPECT_EQ(ParseCompression(reader::dwrf::CodecName(kind)), kind);
  EXPECT_STREQ(reader::dwrf::CodecName(CompressionKind::kGzip), "gzip");
  EXPECT_STREQ(reader::dwrf::CodecName(CompressionKind::kLzo), "lzo");
}

TEST_F(Rewriting, ALevelStaysWithItsCodec) {
  RewriteOptions zlib;
  zlib.compression = "zlib";
  zlib.level = 9;
  const reader::Table table = MakeTable(1024, 512, zlib);
  ASSERT_EQ(table.files[0]->tail().compression, CompressionKind::kZlib);
  EXPECT_EQ(RewriteWriterOptions(table, {}).level, 9);
  RewriteOptions options;
  options.optimize = LayoutGoal::kBalanced;
  EXPECT_EQ(RewriteWriterOptions(table, options).level, 3);
  // One of zstd that zlib does not have.
  options.level = 15;
  EXPECT_EQ(RewriteTable(PathOf("table"), PathOf("hard"), options).rows, 1024u);
}

TEST_F(Rewriting, AdviceComparesTheSameRows) {
  const reader::Table table = MakeTable(2048, 300);  // stripes of each file: 3 x 300, 124
  const auto projection = [] {
    reader::dwrf::Projection columns;
    columns.columns = {"label", "session_id"};
    return columns;
  }();
  for (const auto& [asked, copied] : {std::pair<uint64_t, uint64_t>{100, 300},
                                      {301, 600},
                                      {1000, 1024},
                                      {1025, 1324},
                                      {5000, 2048},
                                      {0, 2048}}) {
    LayoutAdviceOptions options;
    options.rows = asked;
    options.rounds = 1;
    const std::vector<AdvisedLayout> layouts = AdviseLayout(table, projection, options);
    ASSERT_EQ(layouts.size(), 4u);
    for (const AdvisedLayout& layout : layouts) {
      EXPECT_EQ(layout.rows, copied) << asked;
    }
    EXPECT_EQ(layouts[0].stripe_rows, 300u);
    EXPECT_EQ(layouts[0].compression, table.files[0]->tail().compression);
  }
}

TEST_F(Rewriting, StoppedAdviceLeavesNoCopies) {
  const reader::Table table = MakeTable(2048, 512);
  reader::dwrf::Projection projection;
  projection.columns = {"label"};
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  fs::create_directory(PathOf("tmp"));
  ::setenv("TMPDIR", PathOf("tmp").c_str(), 1);
  int calls = 0;
  LayoutAdviceOptions options;
  options.check = [&] {
    if (++calls == 6) throw Error(ExitCode::kInterrupted, "stopped");
  };
  EXPECT_THROW(AdviseLayout(table, projection, options), Error);
  EXPECT_EQ(calls, 6);
  EXPECT_TRUE(fs::is_empty(PathOf("tmp")));
  ::setenv("TMPDIR", PathOf("nothing").c_str(), 1);
  try {
    AdviseLayout(table, projection);
    ADD_FAILURE() << "there is no such folder";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("TMPDIR"), std::string::npos) << error.what();
  }
  if (before == nullptr) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace headrace::workloads
