// Kept batches: the same as computed ones, within the budget to the byte, never a damaged or a half
// one.
#include "reader/pipeline/cache/batch_cache.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "reader/batch/dedup_rows.h"
#include "reader/pipeline/cache/batch_bytes.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

void FillPresence(uint64_t rows, std::mt19937_64& random, PresenceBits* present) {
  present->words.assign((rows + 63) / 64, 0);
  for (uint64_t row = 0; row < rows; ++row) {
    if (random() % 4 == 0) continue;
    present->words[row / 64] |= uint64_t{1} << row % 64;
    ++present->count;
  }
}

FlatMapBatch RandomBatch(uint64_t rows, uint64_t split, uint64_t first, uint64_t settles,
                         std::mt19937_64& random) {
  FlatMapBatch batch;
  batch.rows = rows;
  batch.split_id = split;
  batch.first_row = first;
  for (uint64_t row = 0; rows != settles && row < rows; ++row) batch.row_ids.push_back(first + row);
  batch.spans.push_back({0, split, first, settles, rows});
  for (uint64_t i = random() % 4; i > 0; --i) {
    DenseColumn& column = batch.dense.emplace_back();
    column.name = "dense:" + std::to_string(i);
    FillPresence(rows, random, &column.present);
    column.values.resize(rows, 0);
    for (uint64_t row = 0; row < rows; ++row)
      if (column.present.Get(row)) column.values[row] = static_cast<float>(random() % 1000);
  }
  for (uint64_t i = random() % 4; i > 0; --i) {
    SparseColumn& column = batch.sparse.emplace_back();
    column.name = "sparse:" + std::to_string(i);
    column.weighted = random() % 2 == 0;
    FillPresence(rows, random, &column.present);
    column.offsets.resize(rows + 1, 0);
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t count = column.present.Get(row) ? random() % 5 : 0;
      for (uint64_t k = 0; k < count; ++k) {
        column.values.push_back(static_cast<int64_t>(random()));
        if (column.weighted) column.weights.push_back(0.5f);
      }
      column.offsets[row + 1] = static_cast<uint32_t>(column.values.size());
    }
  }
  // Groups of one column, as decoding makes them, and one that transforms left without a column.
  for (size_t i = 0; rows > 0 && i < batch.sparse.size(); ++i) {
    if (random() % 2 == 0) continue;
    const size_t columns[] = {i};
    Deduplicate(&batch, batch.sparse[i].name, columns, DedupScope::kBatch);
  }
  if (!batch.sparse.empty() && random() % 4 == 0) batch.sparse.erase(batch.sparse.begin());
  ScalarColumn& label = batch.scalars.emplace_back();
  label.name = "label";
  label.is_float = random() % 2 == 0;
  if (label.is_float) {
    label.floats.resize(rows, 1.5f);
  } else {
    label.integers.resize(rows, 7);
  }
  return batch;
}

std::vector<uint8_t> BytesOf(const FlatMapBatch& batch) {
  Array<uint8_t> bytes;
  AppendBatch(batch, &bytes);
  return {bytes.begin(), bytes.end()};
}

class BatchCacheTest : public testing::TestWithParam<CacheTier> {
 protected:
  BatchCacheTest() : folder_(fs::temp_directory_path() / ("hrc" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~BatchCacheTest() override { fs::remove_all(folder_); }
  CacheOptions Options(uint64_t budget = 1 << 30) const {
    CacheOptions options;
    options.after = "transform";
    options.tier = GetParam();
    options.budget_bytes = budget;
    if (options.tier == CacheTier::kDisk) options.folder = folder_.string();
    return options;
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(folder_)) bytes += file.file_size();
    return bytes;
  }
  fs::path folder_;
};

TEST(BatchBytes, RandomBatchesComeBack) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 200; ++i) {
    const uint64_t rows = random() % 150;
    const FlatMapBatch batch = RandomBatch(rows, i, random() % 1000, rows + random() % 3, random);
    const std::vector<uint8_t> bytes = BytesOf(batch);
    std::span<const uint8_t> left(bytes);
    const FlatMapBatch again = TakeBatch(&left);
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(BytesOf(again), bytes);
    EXPECT_EQ(again.spans, batch.spans);
  }
}

TEST(BatchBytes, DamagedBytesAreRefusedOrABatchThatKeepsItsPromises) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint8_t> bytes = BytesOf(RandomBatch(70, 1, 0, 70, random));
  for (int i = 0; i < 5000; ++i) {
    std::vector<uint8_t> damaged = bytes;
    if (i % 5 == 0) damaged.resize(random() % damaged.size());
    for (uint64_t k = random() % 3; k > 0 && !damaged.empty(); --k)
      damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
    std::span<const uint8_t> left(damaged);
    try {
      TakeBatch(&left);  // validates
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
    }
  }
}

TEST_P(BatchCacheTest, ASplitIsThereOnceAllItsRowsAre) {
  std::mt19937_64 random(TestSeed());
  BatchCache cache(Options(), 17);
  const FlatMapBatch a = RandomBatch(40, 3, 100, 40, random);
  const FlatMapBatch b = RandomBatch(0, 3, 140, 10, random);  // all ten rows were dropped
  const FlatMapBatch c = RandomBatch(48, 3, 150, 50, random);
  EXPECT_EQ(cache.Find(3), nullptr);
  cache.Add(3, 100, c);
  cache.Add(3, 100, a);
  EXPECT_EQ(cache.Find(3), nullptr);
  cache.Add(3, 100, b);
  const auto found = cache.Find(3);
  ASSERT_TRUE(found);
  const std::vector<FlatMapBatch> batches = found->Read();
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(BytesOf(batches[0]), BytesOf(a));
  EXPECT_EQ(BytesOf(batches[1]), BytesOf(b));
  EXPECT_EQ(BytesOf(batches[2]), BytesOf(c));
  EXPECT_EQ(cache.Find(4), nullptr);
  const CacheFigures figures = cache.figures();
  EXPECT_EQ(figures.hits, 1u);
  EXPECT_EQ(figures.misses, 3u);
  EXPECT_EQ(figures.kept, 1u);
  EXPECT_EQ(figures.bytes, found->bytes.size());
}

TEST_P(BatchCacheTest, TheBudgetIsKeptToTheByte) {
  std::mt19937_64 random(TestSeed());
  const FlatMapBatch batch = RandomBatch(100, 0, 0, 100, random);
  const uint64_t entry = BytesOf(batch).size() + 64;
  for (const uint64_t budget : {3 * entry, 3 * entry - 1}) {
    fs::remove_all(folder_);
    BatchCache cache(Options(budget), 1);
    for (uint64_t split = 0; split < 5; ++split) {
      FlatMapBatch one = batch.Clone();
      cache.Add(split, 100, one);
      EXPECT_LE(cache.figures().bytes, budget);
    }
    EXPECT_EQ(cache.figures().kept, budget / entry);
    EXPECT_EQ(cache.figures().no_room, 5 - budget / entry);
    EXPECT_EQ(cache.figures().bytes, budget / entry * entry);
    EXPECT_TRUE(cache.Find(0));
    EXPECT_FALSE(cache.Find(4));
    if (GetParam() == CacheTier::kDisk) {
      EXPECT_EQ(BytesOnDisk(), budget / entry * entry);
    }
  }
}

TEST_P(BatchCacheTest, ManyThreadsFillIt) {
  std::mt19937_64 random(TestSeed());
  std::vector<FlatMapBatch> halves;
  for (uint64_t split = 0; split < 40; ++split)
    for (int half = 0; half < 2; ++half)
      halves.push_back(RandomBatch(50, split, split * 100 + half * 50, 50, random));
  BatchCache cache(Options(1 << 20), 1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < halves.size(); i += 4) {
        cache.Add(halves[i].split_id, 100, halves[i]);
        cache.Find(i % 40);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t split = 0; split < 40; ++split) {
    const auto found = cache.Find(split);
    ASSERT_TRUE(found) << split;
    EXPECT_EQ(BytesOf(found->Read()[1]), BytesOf(halves[2 * split + 1]));
  }
}

class DiskCacheTest : public BatchCacheTest {};

std::string OnlyFile(const fs::path& folder) {
  for (const auto& file : fs::directory_iterator(folder)) return file.path().string();
  return "";
}

TEST_P(DiskCacheTest, AnotherProcessFindsIt) {
  std::mt19937_64 random(TestSeed());
  const FlatMapBatch batch = RandomBatch(64, 5, 0, 64, random);
  BatchCache(Options(), 99).Add(5, 64, batch);
  BatchCache again(Options(), 99);
  ASSERT_TRUE(again.Find(5));
  EXPECT_EQ(BytesOf(again.Find(5)->Read()[0]), BytesOf(batch));
  EXPECT_FALSE(BatchCache(Options(), 98).Find(5));  // of another pipeline
}

TEST_P(DiskCacheTest, ADamagedFileIsAMissAndGoes) {
  std::mt19937_64 random(TestSeed());
  const FlatMapBatch batch = RandomBatch(64, 5, 0, 64, random);
  for (int damage = 0; damage < 40; ++damage) {
    fs::remove_all(folder_);
    BatchCache(Options(), 99).Add(5, 64, batch);
    const std::string path = OnlyFile(folder_);
    const uint64_t size = fs::file_size(path);
    if (damage % 4 == 0) {
      fs::resize_file(path, random() % size);
    } else if (damage % 4 == 1) {
      std::ofstream(path, std::ios::binary) << "something else";
    } else {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      const auto at = static_cast<std::streamoff>(random() % size);
      file.seekg(at);
      const char byte = static_cast<char>(file.get() ^ 1 << random() % 8);
      file.seekp(at);
      file.put(byte);
    }
    BatchCache cache(Options(), 99);
    EXPECT_FALSE(cache.Find(5)) << damage;
    EXPECT_EQ(cache.figures().rejected, 1u);
    EXPECT_EQ(cache.figures().bytes, 0u);
    EXPECT_FALSE(fs::exists(path));
    cache.Add(5, 64, batch);  // made again
    EXPECT_TRUE(cache.Find(5));
  }
}

TEST_P(DiskCacheTest, OtherPipelinesMakeRoomAndStrangersFilesStay) {
  std::mt19937_64 random(TestSeed());
  const FlatMapBatch batch = RandomBatch(64, 5, 0, 64, random);
  const uint64_t entry = BytesOf(batch).size() + 64;
  BatchCache(Options(2 * entry), 1).Add(5, 64, batch);
  std::ofstream(folder_ / "mine.txt") << "mine";
  BatchCache cache(Options(2 * entry), 2);
  EXPECT_EQ(cache.figures().bytes, entry);
  cache.Add(5, 64, batch);
  cache.Add(6, 64, batch);
  EXPECT_EQ(cache.figures().bytes, 2 * entry);
  EXPECT_TRUE(cache.Find(5));
  EXPECT_TRUE(cache.Find(6));
  EXPECT_TRUE(fs::exists(folder_ / "mine.txt"));
  EXPECT_FALSE(BatchCache(Options(2 * entry), 1).Find(5));
}

TEST_P(DiskCacheTest, ASmallerBudgetThanBeforeIsKept) {
  std::mt19937_64 random(TestSeed());
  const FlatMapBatch batch = RandomBatch(64, 5, 0, 64, random);
  const uint64_t entry = BytesOf(batch).size() + 64;
  {
    BatchCache cache(Options(4 * entry), 1);
    for (uint64_t split = 0; split < 4; ++split) cache.Add(split, 64, batch);
    BatchCache(Options(5 * entry), 2).Add(0, 64, batch);
  }
  BatchCache cache(Options(2 * entry + 1), 1);
  EXPECT_EQ(cache.figures().bytes, 2 * entry);
  EXPECT_EQ(BytesOnDisk(), 2 * entry);
  EXPECT_TRUE(cache.Find(0));
  EXPECT_TRUE(cache.Find(1));
  EXPECT_FALSE(cache.Find(2));
  EXPECT_EQ(cache.figures().rejected, 0u);
}

// What is encrypted in the table is not in the cache.
TEST_P(DiskCacheTest, OnlyTheOwnerReadsWhatIsKept) {
  std::mt19937_64 random(TestSeed());
  CacheOptions options = Options();
  options.folder = (folder_ / "a" / "b" / "").string();
  const FlatMapBatch batch = RandomBatch(64, 5, 0, 64, random);
  BatchCache(options, 1).Add(5, 64, batch);
  EXPECT_EQ(fs::status(folder_ / "a" / "b").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(OnlyFile(folder_ / "a" / "b")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

// Killed at any moment, a filling process leaves whole entries or none, and the next one goes on.
TEST_P(DiskCacheTest, AKilledProcessLeavesNothingHalf) {
  std::mt19937_64 random(TestSeed());
  std::vector<FlatMapBatch> batches;
  for (uint64_t split = 0; split < 2000; ++split)
    batches.push_back(RandomBatch(200, split, split * 200, 200, random));
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      BatchCache cache(Options(), 7);
      for (const FlatMapBatch& batch : batches) cache.Add(batch.split_id, 200, batch);
      _exit(0);
    }
    usleep(static_cast<useconds_t>(1000 + random() % 30000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    BatchCache cache(Options(), 7);
    for (const auto& file : fs::directory_iterator(folder_))
      EXPECT_EQ(file.path().extension(), ".batches") << file.path();
    uint64_t there = 0;
    for (const FlatMapBatch& batch : batches) {
      const auto found = cache.Find(batch.split_id);
      if (!found) continue;
      ++there;
      EXPECT_EQ(BytesOf(found->Read()[0]), BytesOf(batch));
    }
    EXPECT_EQ(cache.figures().rejected, 0u);
    std::printf("%llu entries\n", static_cast<unsigned long long>(there));
  }
}

TEST_P(DiskCacheTest, AFullDiskEndsKeepingAndNothingElse) {
  fs::create_directories(folder_);
  if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "mounting a small file system is not allowed here";
  struct Unmount {
    ~Unmount() { umount2(path.c_str(), MNT_DETACH); }
    fs::path path;
  } unmount{folder_};
  std::mt19937_64 random(TestSeed());
  BatchCache cache(Options(), 1);
  FlatMapBatch batch;
  batch.rows = 20000;
  batch.spans.push_back({0, 0, 0, 20000, 20000});
  ScalarColumn& column = batch.scalars.emplace_back();
  column.name = "label";
  column.integers.resize(20000, 1);  // 160 kB an entry
  for (uint64_t split = 0; split < 20; ++split) cache.Add(split, 20000, batch);
  const CacheFigures figures = cache.figures();
  EXPECT_GE(figures.kept, 4u);
  EXPECT_LE(figures.kept, 6u);
  EXPECT_NE(cache.note().find("the cache keeps nothing more after"), std::string::npos)
      << cache.note();
  EXPECT_NE(cache.note().find("No space left"), std::string::npos) << cache.note();
  EXPECT_TRUE(cache.Find(0));
  EXPECT_EQ(BytesOnDisk(), figures.bytes);  // nothing half is left
}

INSTANTIATE_TEST_SUITE_P(Tiers, BatchCacheTest,
                         testing::Values(CacheTier::kMemory, CacheTier::kDisk),
                         [](const auto& info) {
                           return info.param == CacheTier::kDisk ? "Disk" : "Memory";
                         });
INSTANTIATE_TEST_SUITE_P(Disk, DiskCacheTest, testing::Values(CacheTier::kDisk),
                         [](const auto&) { return "Disk"; });

}  // namespace
}  // namespace headrace::reader
