// [[cache]] together with [dedup]: batches come back with their groups, not expanded, and the rows
// are those of a run without either.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "reader/pipeline/cache/cache_operators.h"
#include "reader/pipeline/pipeline.h"
#include "tests/seed.h"
#include "workloads/generator.h"
#include "workloads/trainer.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

// What a run delivered: its rows, and of deduplicated groups the ids that were sent, and the rows
// that they stand for.
struct Outcome {
  workloads::RowChecksums sums;
  uint64_t batches_with_groups = 0, unique_rows = 0, unique_ids = 0;
  std::string notes;
};

class Watcher final : public Consumer {
 public:
  explicit Watcher(Outcome* outcome)
      : outcome_(outcome), trainer_(ConsumerSpec(), &outcome->sums) {}
  void Step(Element&& batch, StopSignal* stop) override {
    if (const auto* tensors = batch.payload.Get<TensorBatch>()) {
      outcome_->batches_with_groups += !tensors->groups.empty();
      for (const InverseKeyedJaggedTensor& group : tensors->groups) {
        outcome_->unique_rows += group.unique.rows;
        outcome_->unique_ids += group.unique.values.size();
      }
    }
    trainer_.Step(std::move(batch), stop);
  }

 private:
  Outcome* outcome_;
  workloads::Trainer trainer_;
};

class CachedGroups : public testing::Test {
 protected:
  CachedGroups() {
    std::string pattern = (fs::temp_directory_path() / "cached_groups.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CachedGroups() override { fs::remove_all(folder_); }

  fs::path table() const { return folder_ / "t"; }
  fs::path pipeline() const { return table() / "pipeline.toml"; }
  fs::path kept() const { return folder_ / "kept"; }

  void Generate(uint64_t rows, uint64_t stripe_rows, bool clustered, uint64_t seed) const {
    fs::remove_all(table());
    workloads::WorkloadSpec spec = workloads::ForModel("rm1", 0.02, rows, seed);
    spec.stripe_rows = stripe_rows;
    spec.clustered = clustered;
    workloads::GenerateTable(spec, table());
  }
  // Replaces text of the pipeline file, or adds at its end where `from` is empty.
  void Edit(const std::string& from, const std::string& to) const {
    std::string text = ReadWholeFile(pipeline().string());
    const size_t at = from.empty() ? text.size() : text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(pipeline(), std::ios::trunc) << text;
  }

  Outcome Run(const Settings& settings) const {
    Outcome outcome;
    Pipeline pipeline(LoadPipeline(this->pipeline().string(), settings),
                      std::make_unique<Watcher>(&outcome));
    pipeline.Run();
    for (const std::string& note : pipeline.notes()) outcome.notes += note + "\n";
    return outcome;
  }

  uint64_t KeptBytes() const {
    uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(kept())) bytes += file.file_size();
    return bytes;
  }
  size_t KeptFingerprints() const {
    std::set<std::string> found;
    for (const auto& file : fs::directory_iterator(kept()))
      found.insert(file.path().filename().string().substr(0, 16));
    return found.size();
  }
  Settings OnDisk(Settings settings, const std::string& after = "transform") const {
    for (const auto& [key, value] : Settings{
             {"cache.after", after}, {"cache.tier", "disk"}, {"cache.folder", kept().string()}})
      settings.emplace_back(key, value);
    return settings;
  }

  fs::path folder_;
};

TEST_F(CachedGroups, RowsAreThoseWithoutACacheAndWithoutGroups) {
  std::mt19937_64 random(TestSeed());
  const auto one_of = [&](std::initializer_list<const char*> choices) {
    return std::string(choices.begin()[random() % choices.size()]);
  };
  for (int trial = 0; trial < 16; ++trial) {
    Generate(200 + random() % 1500, 100 + random() % 600, random() % 4 != 0, random() >> 1);
    Settings settings = {{"source.epochs", "2"},
                         {"pipeline.batch_rows", one_of({"64", "100", "512"})},
                         {"pipeline.layout", one_of({"direct", "flatmap"})},
                         {"pipeline.order", one_of({"any", "file"})},
                         {"pipeline.dictionary", one_of({"auto", "off", "always"})},
                         {"decode.parallelism", one_of({"1", "2"})}};
    if (random() % 2 == 0) Edit("", "\n[[filter]]\ncolumn = \"label\"\nin = [1]\n");
    if (random() % 2 == 0) Edit("", "\n[[transform]]\nop = \"sampling\"\nrate = 0.6\n");
    const bool shuffles = random() % 2 == 0;
    if (shuffles) {
      Edit("\"batch\", \"tensorize\"", "\"shuffle\", \"batch\", \"tensorize\"");
      settings.emplace_back("pipeline.shuffle_rows", "300");
    }
    const Outcome plain = Run(settings);
    settings.emplace_back("dedup.mode", one_of({"on", "auto"}));
    settings.emplace_back("dedup.scope", one_of({"neighbours", "batch"}));
    const std::string after = one_of({"extract", "transform"});
    // A cache behind the transforms takes whole stripes, among whose rows more are equal.
    if (after == "transform") settings.emplace_back("pipeline.layout", "flatmap");
    const Outcome grouped = Run(settings);
    fs::remove_all(kept());
    Settings cached = settings;
    if (random() % 2 == 0) {
      cached = OnDisk(cached, after);
    } else {
      cached.emplace_back("cache.after", after);
    }
    cached.emplace_back("cache.budget", one_of({"1GiB", "300KiB", "20KiB", "0"}));
    cached.emplace_back("cache.allow_random", "true");
    std::string said = "trial " + std::to_string(trial);
    for (const auto& [key, value] : cached) said += " " + key + "=" + value;
    SCOPED_TRACE(said);
    for (int run = 0; run < 2; ++run) {  // the second finds what the first kept on disk
      const Outcome outcome = Run(cached);
      EXPECT_EQ(outcome.sums.rows, plain.sums.rows);
      EXPECT_EQ(outcome.sums.multiset, plain.sums.multiset);
      // In file order, whatever was kept: the same batches, so the same unique rows.
      const bool in_order =
          std::count(settings.begin(), settings.end(),
                     std::pair<std::string, std::string>("pipeline.order", "file"));
      if (!in_order) continue;
      EXPECT_EQ(outcome.sums.ordered, plain.sums.ordered);
      EXPECT_EQ(outcome.batches_with_groups, grouped.batches_with_groups);
      EXPECT_EQ(outcome.unique_ids, grouped.unique_ids);
      EXPECT_EQ(outcome.unique_rows, grouped.unique_rows);
    }
    if (HasFailure()) return;
  }
}

TEST_F(CachedGroups, AreKeptUnexpanded) {
  Generate(2000, 500, true, 5);
  Run(OnDisk({}));
  const uint64_t expanded = KeptBytes();
  for (const std::string after : {"extract", "transform"}) {
    fs::remove_all(kept());
    const Settings settings = OnDisk({{"dedup.mode", "on"}}, after);
    const Outcome first = Run(settings);
    EXPECT_GT(first.batches_with_groups, 0u);
    EXPECT_LT(KeptBytes(), expanded * 0.8) << after;
    const Outcome again = Run(settings);
    EXPECT_EQ(again.batches_with_groups, first.batches_with_groups);
    EXPECT_EQ(again.unique_ids, first.unique_ids);
    EXPECT_EQ(again.sums.multiset, first.sums.multiset);
  }
}

// Entries with other groups, or with other unique rows, are other entries; how groups were chosen
// is no part of them.
TEST_F(CachedGroups, TheFingerprintCoversTheGroups) {
  Generate(2000, 500, true, 5);
  const Outcome plain = Run({});
  struct {
    const char* name;
    Settings settings;
    size_t fingerprints;  // in the folder afterwards
  } const cases[] = {
      {"no groups", {}, 1},
      {"groups", {{"dedup.mode", "on"}}, 2},
      {"the same, chosen otherwise", {{"dedup.mode", "on"}, {"dedup.min_factor", "7"}}, 2},
      {"none pays", {{"dedup.mode", "auto"}, {"dedup.min_factor", "1000"}}, 2},
      {"compared with all rows", {{"dedup.mode", "on"}, {"dedup.scope", "batch"}}, 3},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(Run(OnDisk(each.settings)).sums.multiset, plain.sums.multiset) << each.name;
    EXPECT_EQ(KeptFingerprints(), each.fingerprints) << each.name;
  }
  const std::string keys = ReadWholeFile(pipeline().string());
  const size_t at = keys.find("\nsparse = [") + 11;
  const std::string first = keys.substr(at, keys.find_first_of(",]", at) - at);
  Edit("", "\n[dedup]\nmode = \"on\"\ngroups = [[\"sparse:" + first + "\"]]\n");
  EXPECT_EQ(Run(OnDisk({})).sums.multiset, plain.sums.multiset);
  EXPECT_EQ(KeptFingerprints(), 4u);
}

TEST_F(CachedGroups, ADamagedEntryIsMadeAgain) {
  std::mt19937_64 random(TestSeed());
  Generate(1000, 500, true, 5);
  const Settings settings = OnDisk({{"dedup.mode", "on"}});
  const Outcome first = Run(settings);
  for (int i = 0; i < 10; ++i) {
    std::vector<fs::path> entries;
    for (const auto& file : fs::directory_iterator(kept())) entries.push_back(file.path());
    ASSERT_EQ(entries.size(), 2u);
    const fs::path& entry = entries[random() % 2];
    const uint64_t size = fs::file_size(entry);
    if (i % 2 == 0) {
      fs::resize_file(entry, random() % size);
    } else {
      std::fstream file(entry, std::ios::binary | std::ios::in | std::ios::out);
      const auto place = static_cast<std::streamoff>(random() % size);
      file.seekg(place);
      const char byte = static_cast<char>(file.get() ^ 1 << random() % 8);
      file.seekp(place);
      file.put(byte);
    }
    EXPECT_EQ(Run(settings).sums.multiset, first.sums.multiset) << i;
  }
}

}  // namespace
}  // namespace headrace::reader
