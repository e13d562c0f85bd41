// Whole pipelines on tables with dictionaries: whatever is set beside, transforms on dictionary
// entries deliver the rows that transforms on ids deliver.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "reader/pipeline/pipeline.h"
#include "tests/sanitized.h"
#include "tests/seed.h"
#include "workloads/generator.h"
#include "workloads/rewrite.h"
#include "workloads/trainer.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;

class DictionaryPipeline : public testing::Test {
 protected:
  DictionaryPipeline() {
    std::string pattern = (fs::temp_directory_path() / "dictionaries.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~DictionaryPipeline() override { fs::remove_all(folder_); }

  // A table whose ids repeat, written with dictionaries.
  fs::path MakeTable(const std::string& name, uint64_t rows, uint64_t stripe_rows, uint64_t seed,
                     reader::dwrf::DictionaryUse use) const {
    WorkloadSpec workload = ForModel("rm1", 0.02, rows, seed);
    workload.stripe_rows = stripe_rows;
    workload.clustered = true;
    workload.duplication_low = workload.duplication_high = 0.9;
    GenerateTable(workload, folder_ / (name + "-ids"));
    RewriteOptions options;
    options.columns["sparse.value.element"].dictionary = use;
    RewriteTable((folder_ / (name + "-ids")).string(), (folder_ / name).string(), options);
    return folder_ / name;
  }

  struct Delivered {
    RowChecksums sums;
    std::string notes;
  };
  static Delivered Run(const std::string& text, const fs::path& folder,
                       const reader::Settings& settings) {
    Delivered delivered;
    reader::PipelineSpec spec = reader::ParsePipeline(text, "p.toml", folder.string(), settings);
    auto consumer = std::make_unique<Trainer>(reader::ConsumerSpec(), &delivered.sums);
    reader::Pipeline pipeline(std::move(spec), std::move(consumer));
    pipeline.Run();
    for (const std::string& note : pipeline.notes()) delivered.notes += note + "\n";
    return delivered;
  }
  static std::string TextOf(const fs::path& table) {
    return ReadWholeFile((table / "pipeline.toml").string());
  }

  fs::path folder_;
};

TEST_F(DictionaryPipeline, DeliversWhatItDeliversWithoutThem) {
  const uint64_t seed = TestSeed(20261122);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed << " round " << round);
    const fs::path table = MakeTable(std::to_string(round), 300 + random() % 1200,
                                     100 + random() % 500, random() % 1000,
                                     random() % 3 == 0 ? reader::dwrf::DictionaryUse::kShared
                                                       : reader::dwrf::DictionaryUse::kAlways);
    std::string pipeline = TextOf(table);
    if (random() % 3 == 0) pipeline += "\n[[filter]]\ncolumn = \"label\"\nin = [0]\n";
    if (random() % 3 == 0) {
      pipeline += "\n[[transform]]\nop = \"sampling\"\nrate = 0.6\n";
    } else if (random() % 3 == 0) {
      pipeline +=
          fmt::format("\n[[cache]]\nafter = \"{}\"\ntier = \"memory\"\nbudget = \"50MiB\"\n",
                      random() % 2 == 0 ? "extract" : "transform");
    }
    const bool ordered = random() % 2 == 0;
    reader::Settings settings = {{"pipeline.order", ordered ? "file" : "any"},
                                 {"pipeline.batch_rows", std::to_string(1 + random() % 400)},
                                 {"source.epochs", std::to_string(1 + random() % 2)}};
    reader::Settings plain = settings;
    plain.push_back({"pipeline.layout", "flatmap"});
    plain.push_back({"pipeline.dictionary", "off"});
    const Delivered expected = Run(pipeline, table, plain);
    for (const char* layout : {"direct", "flatmap"}) {
      for (const char* mode : {"auto", "always", "off"}) {
        SCOPED_TRACE(testing::Message() << layout << " " << mode);
        reader::Settings now = settings;
        now.push_back({"pipeline.layout", layout});
        now.push_back({"pipeline.dictionary", mode});
        if (random() % 3 == 0) now.push_back({"dedup.mode", "on"});
        now.push_back({"decode.parallelism", std::to_string(1 + random() % 3)});
        now.push_back({"transform.parallelism", std::to_string(1 + random() % 3)});
        if (random() % 3 == 0)
          now.push_back({"pipeline.memory", kAddressSanitizer ? "2GiB" : "600MiB"});
        const Delivered have = Run(pipeline, table, now);
        EXPECT_EQ(have.sums.rows, expected.sums.rows);
        EXPECT_EQ(have.sums.multiset, expected.sums.multiset);
        if (ordered) {
          EXPECT_EQ(have.sums.ordered, expected.sums.ordered);
        }
      }
    }
  }
}

TEST_F(DictionaryPipeline, WhereTheyAreLookedUpBeforeIsSaid) {
  const fs::path table = MakeTable("t", 600, 200, 1, reader::dwrf::DictionaryUse::kAlways);
  const std::string pipeline = TextOf(table);
  const auto notes = [&](const std::string& text, reader::Settings settings) {
    return Run(text, table, settings).notes;
  };
  EXPECT_EQ(notes(pipeline, {}).find("pipeline.dictionary"), std::string::npos);
  const std::string cached =
      pipeline + "\n[[cache]]\nafter = \"extract\"\ntier = \"memory\"\nbudget = \"50MiB\"\n";
  EXPECT_NE(notes(cached, {}).find("[[cache]] keeps their ids"), std::string::npos);
  EXPECT_EQ(notes(cached, {{"pipeline.dictionary", "off"}}).find("pipeline.dictionary"),
            std::string::npos);
  // Groups keep them.
  EXPECT_EQ(notes(pipeline, {{"dedup.mode", "on"}}).find("pipeline.dictionary"), std::string::npos);
}

}  // namespace
}  // namespace headrace::workloads
