// [projection] outputs, from the pipeline file to the tensors: only they arrive, and each row holds
// what it holds without outputs, whatever the threads and the cuts of batches.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "base/error.h"
#include "reader/pipeline/pipeline.h"
#include "workloads/generator.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;

// Per row number, the ids of two features as text.
class Collector final : public reader::Consumer {
 public:
  std::map<uint64_t, std::string> rows;
  std::vector<std::string> sparse_keys, dense_names;

  void Step(reader::Element&& batch, reader::StopSignal*) override {
    const auto& tensors = batch.payload.As<reader::TensorBatch>();
    sparse_keys = tensors.sparse.keys;
    dense_names = tensors.dense_names;
    for (const std::string key : {"crop", "twin"}) {
      const auto& keys = tensors.sparse.keys;
      const auto place =
          static_cast<size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
      ASSERT_LT(place, keys.size()) << key;
      for (uint64_t row = 0; row < tensors.rows; ++row) {
        std::string& text = rows[tensors.row_ids[row]];
        text += key;
        const size_t list = place * tensors.rows + row;
        for (int64_t i = tensors.sparse.offsets[list]; i < tensors.sparse.offsets[list + 1]; ++i)
          text += " " + std::to_string(tensors.sparse.values[static_cast<size_t>(i)]);
      }
    }
  }
};

// Lets the test keep what the pipeline owns.
class Borrowed final : public reader::Consumer {
 public:
  explicit Borrowed(Collector* to) : to_(to) {}
  void Step(reader::Element&& batch, reader::StopSignal* stop) override {
    to_->Step(std::move(batch), stop);
  }

 private:
  Collector* to_;
};

Collector RunPipeline(const std::string& text, const fs::path& folder) {
  Collector collector;
  reader::Pipeline pipeline(reader::ParsePipeline(text, "p.toml", folder),
                            std::make_unique<Borrowed>(&collector));
  pipeline.Run();
  return collector;
}

std::string Text(const std::string& feature, const std::string& outputs, int parallelism,
                 int batch_rows) {
  std::ostringstream text;
  text << "pipeline = { batch_rows = " << batch_rows << ", seed = 5 }\n"
       << "source = { table = \".\" }\n"
       << "stage = [{ name = \"read\", operators = [\"fetch\", \"decompress\", \"decode\", "
          "\"extract\", \"transform\"], parallelism = "
       << parallelism << " }, { name = \"join\", operators = [\"batch\", \"tensorize\"] }]\n"
       << "projection = { maps = { sparse = [" << feature << "] }" << outputs << " }\n";
  const std::string input = "inputs = [\"sparse:" + feature + "\"]\n";
  text << "[[transform]]\nop = \"random_crop\"\noutput = \"crop\"\ncount = 3\n"
       << input << "[[transform]]\nop = \"sigrid_hash\"\noutput = \"hash\"\nmax = 1000\n"
       << input << "[[transform]]\nop = \"sigrid_hash\"\noutput = \"twin\"\nmax = 1000\n"
       << input << "[[transform]]\nop = \"ngram\"\noutput = \"dead\"\n"
       << input;
  return text.str();
}

TEST(Outputs, OnlyTheyArriveWithTheSameValues) {
  std::string pattern = (fs::temp_directory_path() / "outputs_test.XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  WorkloadSpec spec = ForModel("rm1", 0.02, 1000, 7);
  spec.stripe_rows = 200;
  const GeneratedTable table = GenerateTable(spec, folder / "table");
  std::string feature;
  for (const Feature& candidate : table.features)
    if (candidate.kind == reader::FeatureKind::kSparse) feature = std::to_string(candidate.key);
  const Collector all = RunPipeline(Text(feature, "", 1, 128), folder / "table");
  EXPECT_EQ(all.sparse_keys,
            (std::vector<std::string>{"sparse:" + feature, "crop", "hash", "twin", "dead"}));
  EXPECT_EQ(all.rows.size(), 1000u);
  for (const int parallelism : {1, 3}) {
    const Collector some = RunPipeline(
        Text(feature, ", outputs = [\"crop\", \"twin\"]", parallelism, 77), folder / "table");
    EXPECT_EQ(some.sparse_keys, (std::vector<std::string>{"crop", "twin"}));
    EXPECT_EQ(some.rows, all.rows);
  }
  try {
    RunPipeline(Text(feature, ", outputs = [\"corp\"]", 1, 64), folder / "table");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'crop'?"), std::string::npos)
        << error.what();
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace headrace::workloads
