// Whole pipelines on small tables: what is wrong with a table, and what the run says about it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/block_pool.h"
#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "reader/pipeline/delivery/checkpoint.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/pipeline.h"
#include "reader/pipeline/split.h"
#include "tests/reader/feature/handmade_file.h"
#include "workloads/generator.h"
#include "workloads/tensor_dump.h"
#include "workloads/trainer.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

// A table of 2000 rows in stripes of 500, which goes when the test ends.
class TablePipeline : public testing::Test {
 protected:
  TablePipeline() {
    std::string pattern = (fs::temp_directory_path() / "table_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    workloads::WorkloadSpec spec = workloads::ForModel("rm1", 0.02, 2000, 11);
    spec.stripe_rows = 500;
    spec.clustered = true;
    workloads::GenerateTable(spec, table());
  }
  ~TablePipeline() override { fs::remove_all(folder_); }

  fs::path table() const { return folder_ / "t"; }

  PipelineSpec Load(const Settings& settings) const {
    return LoadPipeline((table() / "pipeline.toml").string(), settings);
  }

  struct Outcome {
    workloads::RowChecksums sums;
    PipelineProgress progress;
    std::string notes;
  };
  Outcome RunSpec(PipelineSpec spec) const {
    Outcome outcome;
    auto consumer = std::make_unique<workloads::Trainer>(ConsumerSpec(), &outcome.sums);
    Pipeline pipeline(std::move(spec), std::move(consumer));
    pipeline.Run();
    outcome.progress = pipeline.progress();
    for (const std::string& note : pipeline.notes()) outcome.notes += note + "\n";
    return outcome;
  }
  Outcome Run(const Settings& settings) const { return RunSpec(Load(settings)); }

  // Overwrites all of the stripe, its footer included.
  void DamageStripe(size_t split_index) const {
    const Table opened = OpenTable(table().string());
    const Split split = opened.splits[split_index];
    const auto& file = *opened.files[split.file_index];
    const auto& stripe = file.tail().footer.stripes(static_cast<int>(split.stripe));
    std::fstream out(file.source().name(), std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(stripe.offset()));
    out << std::string(stripe.index_length() + stripe.data_length() + stripe.footer_length(),
                       '\xff');
  }

  // In place of the table stripes of labels.
  void WriteLabels(size_t rows, bool checksum, size_t stripes = 1) const {
    fs::remove_all(table());
    fs::create_directory(table());
    dwrf::WriterOptions options;
    options.checksum = checksum;
    options.stripe_cache = false;
    dwrf::FileWriter writer((table() / "a.dwrf").string(), Schema::Parse("struct<label:float>"),
                            options);
    const std::vector<float> labels(rows, 1.0f);
    dwrf::FlatBatch batch;
    batch.rows = rows;
    batch.columns.emplace_back().name = "label";
    batch.columns[0].floats = labels;
    for (size_t i = 0; i < stripes; ++i) {
      writer.WriteFlat(batch);
      writer.EndStripe();
    }
    writer.Close();
    ASSERT_EQ(OpenTable(table().string()).splits.size(), stripes);
  }
  PipelineSpec OfLabels(const std::string& pipeline, const std::string& parallelism,
                        const std::string& source) const {
    return ParsePipeline("pipeline = { " + pipeline + " }\nsource = { table = \"t\"" + source +
                             " }\nprojection = { columns = [\"label\"] }\n"
                             "stage = [{ name = \"s\", parallelism = " +
                             parallelism +
                             ", operators = [\"fetch\", \"decompress\", \"decode\", "
                             "\"extract\"] }]\n",
                         "p.toml", folder_.string());
  }

  fs::path folder_;
};

TEST_F(TablePipeline, WhatReadsBeforeTheRunSkipsDamageAsTheRunDoes) {
  std::ofstream(folder_ / "log") << R"({"features": ["sparse:1", "sparse:2"]})"
                                 << "\n";
  DamageStripe(0);
  for (const Settings& settings :
       {Settings{{"dedup.mode", "on"}},
        Settings{{"source.tier.budget", "10MB"},
                 {"source.tier.popularity", (folder_ / "log").string()}}}) {
    EXPECT_THROW(Run(settings), Error) << settings[0].first;
    Settings skipping = settings;
    skipping.emplace_back("source.on_corrupt", "skip");
    const Outcome outcome = Run(skipping);
    EXPECT_EQ(outcome.sums.rows, 1500u) << settings[0].first;
    EXPECT_EQ(outcome.progress.skipped_stripes, 1u);
  }
  for (size_t split = 1; split < 4; ++split) DamageStripe(split);
  EXPECT_EQ(Run({{"dedup.mode", "on"}, {"source.on_corrupt", "skip"}}).sums.rows, 0u);
}

// Where the file's cache does not have the stripes' footers, a damaged one shows with the first
// look.
TEST_F(TablePipeline, ATierIsMadeByAStripeThatCanBeRead) {
  std::ofstream(folder_ / "log") << R"({"features": ["sparse:1"]})"
                                 << "\n";
  WriteLabels(100, true, 2);
  DamageStripe(0);
  const std::string tier =
      ", tier = { budget = \"1MB\", popularity = \"log\" }, on_corrupt = \"skip\"";
  EXPECT_EQ(RunSpec(OfLabels("batch_rows = 10", "1", tier)).sums.rows, 100u);
}

// What cannot be compared is not read either.
TEST_F(TablePipeline, FilesWithoutChecksumsAreNotReadWhole) {
  for (const bool has_checksum : {true, false}) {
    WriteLabels(100, has_checksum);
    RunCounts counts;
    const PipelineSpec spec = OfLabels("batch_rows = 10", "1", ", checksum = true");
    OperatorContext context;
    context.spec = &spec;
    context.table = std::make_shared<const Table>(OpenTable(table().string()));
    EXPECT_EQ(context.table->files[0]->HasChecksum(0), has_checksum);
    context.counts = &counts;
    OperatorPlan plan;
    plan.spec.kind = "fetch";
    plan.account = UINT32_MAX;
    const auto fetch = MakeOperator(plan, context);
    Element element;
    element.payload = Split(context.table->splits[0]);
    fetch->Process(std::move(element), [&](Element&& out) {
      const auto& fetched = out.payload.As<FetchedStripe>();
      EXPECT_EQ(fetched.whole.empty(), !has_checksum);
    });
    EXPECT_EQ(counts.unchecked_stripes, has_checksum ? 0u : 1u);
  }
}

TEST_F(TablePipeline, TheFirstFileMayHaveNoStripes) {
  std::ofstream(folder_ / "log") << R"({"features": ["sparse:1", "sparse:2"]})"
                                 << "\n";
  dwrf::FileWriter empty((table() / "a.dwrf").string(),
                         OpenTable(table().string()).files[0]->schema());
  empty.Close();
  ASSERT_EQ(OpenTable(table().string()).files[0]->num_stripes(), 0u);
  const Settings settings = {{"source.tier.budget", "10MB"},
                             {"source.tier.popularity", (folder_ / "log").string()}};
  EXPECT_EQ(Run(settings).sums.rows, 2000u);
}

// Takes all steps and says that only the first `delivered` arrived.
class Undelivered final : public Consumer {
 public:
  Undelivered(uint64_t delivered, bool* complete) : delivered_(delivered), complete_(complete) {}
  void Step(Element&& batch, StopSignal*) override {
    rows_.push_back(batch.rows);
    if (on_step) on_step();
  }
  uint64_t DeliveredSteps(uint64_t taken) override { return std::min(taken, delivered_); }
  void Finish(bool complete) override { *complete_ = complete; }
  std::function<void()> on_step;

 private:
  uint64_t delivered_;
  bool* complete_;
  std::vector<uint64_t> rows_;
};

TEST_F(TablePipeline, ACheckpointCountsWhatWasDelivered) {
  const std::string path = (folder_ / "c").string();
  const Settings settings = {{"pipeline.order", "file"}, {"pipeline.batch_rows", "400"}};
  bool complete = false;
  for (uint64_t run = 1; run <= 2; ++run) {
    Pipeline pipeline(Load(settings), std::make_unique<Undelivered>(1, &complete), {},
                      {.path = path, .every = 1, .resume = true});
    pipeline.Run();
    EXPECT_TRUE(complete);
    EXPECT_GT(pipeline.progress().batches, 2u);
    const Checkpoint saved = ReadCheckpoint(path);
    EXPECT_EQ(saved.batches, run);
    EXPECT_EQ(saved.rows, 400 * run);
  }
}

TEST_F(TablePipeline, ARunThatIsStoppedIsNotComplete) {
  bool complete = true;
  auto consumer = std::make_unique<Undelivered>(1000, &complete);
  Undelivered* const taker = consumer.get();
  Pipeline pipeline(Load({{"source.epochs", "0"}}), std::move(consumer));
  taker->on_step = [&] { pipeline.RequestStop(); };
  pipeline.Run();
  EXPECT_FALSE(complete);
}

TEST_F(TablePipeline, RowsThatFiltersDroppedAreCountedFromTheCacheToo) {
  std::ofstream(table() / "filtered.toml") << ReadWholeFile((table() / "pipeline.toml").string()) +
                                                  "\n[[filter]]\ncolumn = \"label\"\nin = [1]\n";
  const auto load = [&](const std::string& after) {
    return LoadPipeline((table() / "filtered.toml").string(),
                        {{"cache.after", after},
                         {"cache.tier", "disk"},
                         {"cache.budget", "1GB"},
                         {"cache.folder", (folder_ / after).string()}});
  };
  for (const std::string after : {"extract", "transform"}) {
    const Outcome first = RunSpec(load(after)), again = RunSpec(load(after));
    EXPECT_GT(first.sums.rows, 0u);
    EXPECT_EQ(again.sums.multiset, first.sums.multiset);
    const std::string note =
        "[[filter]] dropped " + std::to_string(2000 - first.sums.rows) + " rows";
    EXPECT_NE(first.notes.find(note), std::string::npos) << first.notes;
    EXPECT_NE(again.notes.find(note), std::string::npos) << again.notes;
  }
}

TEST_F(TablePipeline, FilesWithoutChecksumsAreSaid) {
  EXPECT_EQ(Run({{"source.checksum", "true"}}).notes, "");
  WriteLabels(100, false);
  EXPECT_EQ(RunSpec(OfLabels("batch_rows = 10", "1", "")).notes, "");
  const Outcome outcome = RunSpec(OfLabels("batch_rows = 10", "1", ", checksum = true"));
  EXPECT_EQ(outcome.sums.rows, 100u);
  EXPECT_NE(outcome.notes.find("source.checksum had nothing to look at in 1 stripes"),
            std::string::npos)
      << outcome.notes;
}

TEST_F(TablePipeline, FileOrderHasSoManyPlaces) {
  WriteLabels(100'000, true);
  const auto spec = [&](const std::string& parallelism) {
    return OfLabels("order = \"file\", batch_rows = 1", parallelism, "");
  };
  const auto consumer = [] {
    return std::make_unique<workloads::Trainer>(ConsumerSpec(), nullptr);
  };
  EXPECT_THROW(Pipeline(spec("200"), consumer()), Error);
  Pipeline pipeline(spec("2"), consumer());
  pipeline.SetParallelism("s", 100);
  EXPECT_THROW(pipeline.SetParallelism("s", 200), Error);
  EXPECT_EQ(pipeline.parallelism("s"), 100u);
}

// Each footer is possible, all together are not: row numbers would begin again at 0.
TEST_F(TablePipeline, FilesThatTogetherClaimMoreRowsThanATableHasAreNamed) {
  dwrf::HandmadeFile file;
  file.schema = "struct<label:float>";
  file.rows = kMostTableRows / 2;
  const fs::path claims = folder_ / "claims";
  fs::create_directory(claims);
  for (const char* name : {"part-0.dwrf", "part-1.dwrf", "part-2.dwrf"})
    std::ofstream(claims / name, std::ios::binary) << dwrf::BuildFile(file);
  try {
    OpenTable(claims.string());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_EQ(error.where(), (claims / "part-2.dwrf").string());
  }
  fs::remove(claims / "part-2.dwrf");
  EXPECT_EQ(OpenTable(claims.string()).rows, kMostTableRows);
}

TEST_F(TablePipeline, AFolderThatCannotBeReadIsAnErrorOfPrivilege) {
  fs::permissions(table(), fs::perms::none);
  const bool is_root = geteuid() == 0;
  ASSERT_TRUE(!is_root || seteuid(65534) == 0);
  ExitCode code = ExitCode::kOk;
  try {
    OpenTable(table().string());
  } catch (const Error& error) {
    code = error.code();
  }
  ASSERT_TRUE(!is_root || seteuid(0) == 0);
  fs::permissions(table(), fs::perms::owner_all);
  EXPECT_EQ(code, ExitCode::kPrivilege);
}

TEST_F(TablePipeline, TensorsThatCannotBeWrittenAreAnErrorOfTheConsumer) {
  const std::string dump = (folder_ / "dump").string();
  Pipeline pipeline(Load({}), workloads::DumpTensors(dump, std::make_unique<workloads::Trainer>(
                                                               ConsumerSpec(), nullptr)));
  fs::remove_all(dump);
  EXPECT_THROW(pipeline.Run(), Error);
}

// The consumer's thread takes memory too.
TEST_F(TablePipeline, AConsumerWithoutMemoryIsToldTheBudget) {
  class Greedy final : public Consumer {
    void Step(Element&&, StopSignal*) override { block_ = BlockPool::Get().Take(size_t{1} << 40); }
    Block block_;
  };
  Pipeline pipeline(Load({{"pipeline.memory", "1GB"}}), std::make_unique<Greedy>());
  try {
    pipeline.Run();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources);
    EXPECT_NE(error.fix().find("set pipeline.memory to"), std::string::npos) << error.what();
    EXPECT_NE(error.where().find("consumer"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::reader
