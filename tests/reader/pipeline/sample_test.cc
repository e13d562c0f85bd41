// The operator `sample`: the same rows stay whatever is set beside it, with what they held before,
// and the others are settled, not lost.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/delivery/checkpoint.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/pipeline.h"
#include "workloads/generator.h"
#include "workloads/trainer.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSampledRows = 2000, kSampledStripeRows = 300;

// What the consumer got: row numbers and sums of what the rows hold.
struct Sampled {
  std::vector<uint64_t> rows;
  workloads::RowChecksums sums;
  PipelineProgress progress;
  std::string notes;
};

// Fails at its step `fail_at`, counted from 0; below 0: never.
class Collector final : public Consumer {
 public:
  Collector(Sampled* got, int fail_at) : got_(got), fail_at_(fail_at), trainer_({}, &got->sums) {}
  void Step(Element&& batch, StopSignal* stop) override {
    if (fail_at_-- == 0) throw Error(ExitCode::kFailure, "the accelerator is gone");
    const auto& tensors = batch.payload.As<TensorBatch>();
    got_->rows.insert(got_->rows.end(), tensors.row_ids.begin(), tensors.row_ids.end());
    trainer_.Step(std::move(batch), stop);
  }
  std::string SaveState() override { return trainer_.SaveState(); }
  void LoadState(const std::string& state) override { trainer_.LoadState(state); }

 private:
  Sampled* got_;
  int fail_at_;
  workloads::Trainer trainer_;
};

class Sample : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (fs::temp_directory_path() / "sample_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    workloads::WorkloadSpec spec = workloads::ForModel("rm1", 0.02, kSampledRows, 11);
    spec.stripe_rows = kSampledStripeRows;
    workloads::GenerateTable(spec, folder_ / "t");
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  // The table's pipeline with `operators` before decode, and `more` at its end.
  static std::string Text(const std::string& operators, const std::string& more = "") {
    std::string text = ReadWholeFile((folder_ / "t" / "pipeline.toml").string());
    const std::string place = "\"decompress\", ";
    text.insert(text.find(place) + place.size(), operators);
    return text + more;
  }
  static Sampled Run(const std::string& text, const Settings& settings = {},
                     const CheckpointOptions& checkpoint = {}, int fail_at = -1) {
    Sampled got;
    Pipeline pipeline(ParsePipeline(text, "p.toml", folder_ / "t", settings),
                      std::make_unique<Collector>(&got, fail_at), {}, checkpoint);
    pipeline.Run();
    got.progress = pipeline.progress();
    for (const std::string& note : pipeline.notes()) got.notes += note + "\n";
    std::sort(got.rows.begin(), got.rows.end());
    return got;
  }
  static std::string ErrorOf(const std::string& text, const Settings& settings = {},
                             const CheckpointOptions& checkpoint = {}) {
    try {
      Run(text, settings, checkpoint);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  static fs::path folder_;
};
fs::path Sample::folder_;

const std::string kThird = "{ sample = 0.3 }, ";

TEST_F(Sample, KeepsItsShareAndTheRowsStayAsTheyAre) {
  // Rows one by one tell what each adds to the sums.
  std::map<uint64_t, uint64_t> sum_of;
  {
    class Each final : public Consumer {
     public:
      explicit Each(std::map<uint64_t, uint64_t>* sums) : sums_(sums), trainer_({}, &now_) {}
      void Step(Element&& batch, StopSignal* stop) override {
        const uint64_t row = batch.payload.As<TensorBatch>().row_ids[0], before = now_.multiset;
        trainer_.Step(std::move(batch), stop);
        (*sums_)[row] = now_.multiset - before;
      }

     private:
      std::map<uint64_t, uint64_t>* sums_;
      workloads::RowChecksums now_;
      workloads::Trainer trainer_;
    };
    Pipeline all(ParsePipeline(Text(""), "p.toml", folder_ / "t", {{"pipeline.batch_rows", "1"}}),
                 std::make_unique<Each>(&sum_of));
    all.Run();
  }
  ASSERT_EQ(sum_of.size(), kSampledRows);
  const Sampled got = Run(Text(kThird));
  // Six standard deviations of a binomial distribution are 123 rows.
  EXPECT_NEAR(static_cast<double>(got.rows.size()), 0.3 * kSampledRows, 123);
  EXPECT_EQ(std::adjacent_find(got.rows.begin(), got.rows.end()), got.rows.end());
  uint64_t expected = 0;
  for (const uint64_t row : got.rows) expected += sum_of.at(row);
  EXPECT_EQ(got.sums.multiset, expected);
  EXPECT_EQ(got.progress.rows, got.rows.size());
}

TEST_F(Sample, TheSameRowsStayWhateverIsSetBeside) {
  const Sampled expected = Run(Text(kThird));
  const std::vector<Settings> settings = {
      {{"decode.parallelism", "3"}, {"fetch.parallelism", "2"}},
      {{"pipeline.order", "file"}, {"decode.parallelism", "3"}},
      {{"pipeline.layout", "flatmap"}},
      {{"pipeline.layout", "flatmap"}, {"pipeline.order", "file"}, {"decode.parallelism", "2"}},
      {{"pipeline.batch_rows", "37"}},
      {{"dedup.mode", "on"}},
      {{"pipeline.dictionary", "always"}},
      {{"pipeline.memory", "1GiB"}},
      {{"cache.after", "extract"}, {"source.epochs", "1"}},
  };
  for (const Settings& s : settings) {
    const Sampled got = Run(Text(kThird), s);
    EXPECT_EQ(got.rows, expected.rows) << s[0].first << " = " << s[0].second;
    EXPECT_EQ(got.sums.multiset, expected.sums.multiset) << s[0].first << " = " << s[0].second;
  }
  EXPECT_EQ(Run(Text(kThird), {{"source.epochs", "2"}}).rows.size(), 2 * expected.rows.size());
  EXPECT_NE(Run(Text(kThird), {{"pipeline.seed", "2"}}).rows, expected.rows);
  EXPECT_NE(Run(Text("{ sample = 0.3, seed = 2 }, ")).rows, expected.rows);
}

TEST_F(Sample, AllAndNone) {
  EXPECT_EQ(Run(Text("{ sample = 1 }, ")).sums.multiset, Run(Text("")).sums.multiset);
  for (const char* layout : {"direct", "flatmap"}) {
    for (const char* order : {"any", "file"}) {
      const CheckpointOptions checkpoint{(folder_ / "none").string(), 1, false};
      const Sampled none =
          Run(Text("{ sample = 0.0 }, "), {{"pipeline.layout", layout}, {"pipeline.order", order}},
              checkpoint);
      EXPECT_TRUE(none.rows.empty());
      EXPECT_EQ(ReadCheckpoint(checkpoint.path).delivered.first_epoch, 1u) << "all is settled";
      fs::remove(checkpoint.path);
    }
  }
}

// Filters look at the rows that are left, and count those alone.
TEST_F(Sample, BesideAFilter) {
  const std::string filter = "\n[[filter]]\ncolumn = \"label\"\nin = [0]\n";
  const std::vector<uint64_t> sampled = Run(Text(kThird)).rows, passed = Run(Text("", filter)).rows;
  std::vector<uint64_t> both;
  std::set_intersection(sampled.begin(), sampled.end(), passed.begin(), passed.end(),
                        std::back_inserter(both));
  for (const char* layout : {"direct", "flatmap"}) {
    const Sampled got = Run(Text(kThird, filter), {{"pipeline.layout", layout}});
    EXPECT_EQ(got.rows, both) << layout;
    EXPECT_NE(got.notes.find("[[filter]] dropped " + std::to_string(sampled.size() - both.size()) +
                             " rows"),
              std::string::npos)
        << got.notes;
  }
}

TEST_F(Sample, RunsThatGoOnDeliverExactlyTheRest) {
  const Sampled expected = Run(Text(kThird), {{"source.epochs", "2"}});
  for (const char* layout : {"direct", "flatmap"}) {
    const CheckpointOptions checkpoint{(folder_ / "resumed").string(), 1, true};
    Sampled got;
    int failures = 0;
    for (;; ++failures) {
      ASSERT_LT(failures, 60);
      try {
        got = Run(Text(kThird),
                  {{"source.epochs", "2"},
                   {"pipeline.layout", layout},
                   {"pipeline.batch_rows", std::to_string(50 + 17 * failures)},
                   {"decode.parallelism", std::to_string(1 + failures % 3)}},
                  checkpoint, 3);
        break;
      } catch (const Error& error) {
        ASSERT_NE(std::string(error.what()).find("the accelerator is gone"), std::string::npos)
            << error.what();
      }
    }
    EXPECT_GT(failures, 0) << layout;
    EXPECT_EQ(got.sums.rows, expected.sums.rows) << layout;
    EXPECT_EQ(got.sums.multiset, expected.sums.multiset) << layout;
    EXPECT_EQ(ReadCheckpoint(checkpoint.path).delivered.first_epoch, 2u);
    fs::remove(checkpoint.path);
  }
}

TEST_F(Sample, AnotherSampleIsAnotherRun) {
  const CheckpointOptions checkpoint{(folder_ / "other").string(), 64, true};
  Run(Text(kThird), {}, checkpoint);
  EXPECT_EQ(ErrorOf(Text(kThird), {}, checkpoint), "accepted");
  for (const char* other : {"", "{ sample = 0.4 }, ", "{ sample = 0.3, seed = 1 }, "})
    EXPECT_NE(ErrorOf(Text(other), {}, checkpoint).find("another projection, filter"),
              std::string::npos)
        << other;
  // Nor is what a cache kept of another one taken.
  const Settings cached = {{"cache.after", "extract"},
                           {"cache.tier", "disk"},
                           {"cache.budget", "1GB"},
                           {"cache.folder", (folder_ / "cache").string()}};
  for (const std::string sample : {"", "{ sample = 0.4 }, ", "{ sample = 0.3 }, "}) {
    const Sampled plain = Run(Text(sample));
    for (int run = 0; run < 2; ++run) EXPECT_EQ(Run(Text(sample), cached).rows, plain.rows);
    Settings reseeded = cached;
    reseeded.emplace_back("pipeline.seed", "9");
    EXPECT_EQ(Run(Text(sample), reseeded).rows == plain.rows, sample.empty()) << sample;
  }
}

TEST_F(Sample, StripesThatCannotBeReadAreLeftOutAsWithoutIt) {
  const fs::path broken = folder_ / "broken";
  fs::copy(folder_ / "t", broken, fs::copy_options::recursive);
  const Table opened = OpenTable(broken.string());
  const Split bad = opened.splits[2];
  const auto& stripe =
      opened.files[bad.file_index]->tail().footer.stripes(static_cast<int>(bad.stripe));
  std::fstream out(opened.files[bad.file_index]->source().name(),
                   std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(static_cast<std::streamoff>(stripe.offset()));
  out << std::string(stripe.index_length() + stripe.data_length(), '\xff');
  out.close();
  std::vector<uint64_t> expected = Run(Text(kThird)).rows;
  std::erase_if(expected, [&](uint64_t row) {
    return row >= bad.first_row && row < bad.first_row + bad.rows;
  });
  for (const char* layout : {"direct", "flatmap"}) {
    const CheckpointOptions checkpoint{(folder_ / "skipped").string(), 1, false};
    const Sampled got = Run(Text(kThird),
                            {{"source.table", broken.string()},
                             {"source.on_corrupt", "skip"},
                             {"pipeline.layout", layout}},
                            checkpoint);
    EXPECT_EQ(got.rows, expected) << layout;
    EXPECT_EQ(got.progress.skipped_stripes, 1u);
    EXPECT_EQ(got.progress.skipped_rows, bad.rows);
    EXPECT_EQ(ReadCheckpoint(checkpoint.path).delivered.first_epoch, 1u);
    fs::remove(checkpoint.path);
  }
}

// The point of it: ids of rows that do not stay are not decoded.
TEST_F(Sample, RowsThatDoNotStayAreNotDecoded) {
  const auto decoded_bytes = [](const std::string& operators) {
    const PipelineSpec spec = ParsePipeline(Text(operators), "p.toml", folder_ / "t");
    RunCounts counts;
    std::atomic<uint32_t> spare[1] = {0};
    OperatorContext context;
    context.spec = &spec;
    context.counts = &counts;
    context.slab_spare = spare;
    context.table = std::make_shared<const Table>(OpenTable(spec.table));
    Element element;
    const Split& split = context.table->splits[1];
    element.rows = split.rows;
    element.origin = {0, split.id, split.first_row, split.rows, split.rows};
    element.payload = Split(split);
    for (const StageSpec& stage : spec.stages) {
      for (const OperatorSpec& op : stage.operators) {
        if (EntryOf(op).takes >= ElementForm::kDecoded) continue;
        OperatorPlan plan;
        plan.spec = op;
        plan.account = UINT32_MAX;
        Element made;
        MakeOperator(plan, context)->Process(std::move(element), [&](Element&& out) {
          made = std::move(out);
        });
        element = std::move(made);
      }
    }
    EXPECT_TRUE(element.payload.As<dwrf::DecodedStripe>().sliced);
    return element.bytes;
  };
  EXPECT_LT(decoded_bytes("{ sample = 0.1 }, "), decoded_bytes("") / 4);
}

TEST_F(Sample, MistakesAreTold) {
  const std::pair<std::string, std::string> cases[] = {
      {"{ sample = 1.5 }, ", "sample is the share of rows that stay, from 0 to 1"},
      {"{ sample = -0.1 }, ", "sample is the share of rows that stay, from 0 to 1"},
      {"{ sample = \"0.1\" }, ", "expected a number for sample"},
      {"{ sample = 0.1, sed = 1 }, ", "unknown key 'sed' in operator sample, did you mean 'seed'?"},
      {"{ sampel = 0.1 }, ", "unknown operator 'sampel', did you mean 'sample'?"},
      {"\"sample\", ", "'sample' needs a rate: write { sample = 0.1 }"},
      {"\"decode\", { sample = 0.1 }, ", "operator sample cannot follow decode"},
      {"{ sample = 0.1 }, { sample = 0.1 }, ", "operator sample.2 cannot follow sample"},
  };
  for (const auto& [operators, expected] : cases) {
    const std::string got = ErrorOf(Text(operators));
    EXPECT_NE(got.find(expected), std::string::npos) << operators << ": " << got;
  }
}

}  // namespace
}  // namespace headrace::reader
