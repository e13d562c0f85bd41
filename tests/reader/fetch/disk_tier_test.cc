#include "reader/fetch/disk_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "reader/fetch/fetch.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uint64_t kHeader = 64, kLine = 24;
constexpr uint64_t kStreams = 40;  // of the test's stripes: stream s begins at byte s * 1000

std::string RandomBytes(uint64_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

uint64_t LengthOf(uint64_t stream) { return 1 + stream * 977 % 1000; }

// The chosen streams of a stripe.
dwrf::StripePlan PlanOf(const std::vector<uint64_t>& streams, uint32_t stripe = 0) {
  dwrf::StripePlan plan;
  plan.stripe_index = stripe;
  for (const uint64_t stream : streams)
    plan.streams.push_back({1, 0, dwrf::StreamKind::kData, stream * 1000, LengthOf(stream), true});
  return plan;
}

class DiskTierTest : public testing::Test {
 protected:
  void SetUp() override {
    static int count = 0;
    folder_ = fs::temp_directory_path() /
              ("headrace_tier_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    bytes_ = RandomBytes(kStreams * 1000, 1);
    source_ = MemorySource("t/part-00000.dwrf", bytes_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<DiskTier> Open(uint64_t budget, TierPolicy policy = TierPolicy::kLru) const {
    TierOptions options;
    options.budget_bytes = budget;
    options.policy = policy;
    options.folder = folder_.string();
    return std::make_unique<DiskTier>(options, std::nullopt,
                                      std::vector<const Source*>{source_.get()});
  }
  // How many of the streams came from the tier; all of them are right.
  uint64_t Take(DiskTier* tier, const std::vector<uint64_t>& streams, uint32_t stripe = 0) const {
    const dwrf::StripePlan plan = PlanOf(streams, stripe);
    const FetchedStripe fetched = Fetch(plan, *source_, {}, tier);
    for (size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(std::string(fetched.stored[i].begin(), fetched.stored[i].end()),
                bytes_.substr(plan.streams[i].offset, plan.streams[i].length))
          << "stream " << streams[i];
    }
    EXPECT_EQ(fetched.tier.hits + fetched.tier.misses, streams.size());
    return fetched.tier.hits;
  }
  std::vector<fs::path> Entries() const {
    std::vector<fs::path> entries;
    for (const auto& file : fs::directory_iterator(folder_))
      if (file.path().extension() == ".streams") entries.push_back(file.path());
    std::sort(entries.begin(), entries.end());
    return entries;
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& entry : Entries()) bytes += fs::file_size(entry);
    return bytes;
  }

  fs::path folder_;
  std::string bytes_;
  std::shared_ptr<const Source> source_;
};

TEST_F(DiskTierTest, TakesFromTheFolderWhatItHasAndReadsTheRest) {
  {
    const auto tier = Open(1 << 20);
    EXPECT_EQ(Take(tier.get(), {3, 1, 7}), 0u);
    EXPECT_EQ(Take(tier.get(), {3, 1, 7}), 3u);
    EXPECT_EQ(Take(tier.get(), {7}), 1u);
    EXPECT_EQ(Take(tier.get(), {1, 2, 3, 30}), 2u) << "of another projection";
    EXPECT_EQ(Take(tier.get(), {30, 7, 2}), 3u) << "from two entries";
    EXPECT_EQ(Take(tier.get(), {1}, 1), 0u) << "of another stripe";
    EXPECT_EQ(tier->figures().kept, 3u);
    EXPECT_EQ(tier->bytes(), BytesOnDisk());
    EXPECT_EQ(tier->bytes(), 3 * kHeader + 6 * kLine + LengthOf(1) * 2 + LengthOf(2) + LengthOf(3) +
                                 LengthOf(7) + LengthOf(30));
  }
  const auto tier = Open(1 << 20);
  EXPECT_EQ(tier->bytes(), BytesOnDisk());
  EXPECT_EQ(Take(tier.get(), {1, 2, 3, 7, 30}), 5u) << "the next run finds it";
  EXPECT_TRUE(tier->notes().empty());
}

// Against a list that is searched from end to end; stripe s has the one stream s.
TEST_F(DiskTierTest, BehavesAsThePolicySaysAndKeepsTheBudget) {
  std::mt19937_64 random(TestSeed());
  for (const TierPolicy policy : {TierPolicy::kPinned, TierPolicy::kLru}) {
    for (int round = 0; round < 12; ++round) {
      const uint64_t budget = 1 + random() % 6000;
      auto tier = Open(budget, policy);
      std::deque<uint64_t> expected;  // the one used last first
      const auto used = [&] {
        uint64_t bytes = 0;
        for (const uint64_t stream : expected) bytes += kHeader + kLine + LengthOf(stream);
        return bytes;
      };
      for (int i = 0; i < 150; ++i) {
        const uint64_t stream = random() % 12, size = kHeader + kLine + LengthOf(stream);
        const auto place = std::find(expected.begin(), expected.end(), stream);
        const bool here = place != expected.end();
        ASSERT_EQ(Take(tier.get(), {stream}, static_cast<uint32_t>(stream)), here ? 1u : 0u);
        if (here && policy == TierPolicy::kLru) {
          expected.erase(place);
          expected.push_front(stream);
        } else if (!here) {
          if (size <= budget && policy == TierPolicy::kLru) {
            while (used() + size > budget) expected.pop_back();
          }
          if (used() + size <= budget) expected.push_front(stream);
        }
        ASSERT_EQ(tier->bytes(), used());
        ASSERT_LE(tier->bytes(), budget);
      }
      ASSERT_EQ(BytesOnDisk(), used());
      tier.reset();
      tier = Open(budget, policy);
      ASSERT_EQ(tier->bytes(), used());
      for (const uint64_t stream : expected)
        ASSERT_EQ(Take(tier.get(), {stream}, static_cast<uint32_t>(stream)), 1u);
      tier.reset();
      fs::remove_all(folder_);
    }
  }
}

TEST_F(DiskTierTest, APinnedTierIsFilledWithWhatFits) {
  const uint64_t budget = kHeader + 3 * kLine + LengthOf(1) + LengthOf(2) + LengthOf(4) + 30;
  const auto tier = Open(budget, TierPolicy::kPinned);
  EXPECT_EQ(Take(tier.get(), {1, 2, 3, 4}), 0u);
  EXPECT_EQ(Take(tier.get(), {1, 2, 3, 4}), 3u) << "3 is too long for what is left";
  EXPECT_LE(tier->bytes(), budget);
  EXPECT_EQ(tier->figures().kept, 1u);
}

// Whatever happens to an entry, its bytes are right or come from the storage.
TEST_F(DiskTierTest, DamagedEntriesAreDroppedAndReadAgain) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint64_t> streams = {0, 1, 2, 5, 9, 20, 33};
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    {
      const auto tier = Open(1 << 20);
      Take(tier.get(), streams);
    }
    ASSERT_EQ(Entries().size(), 1u);
    const fs::path entry = Entries()[0];
    const uint64_t size = fs::file_size(entry);
    switch (round % 5) {
      case 0: {
        std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
        const auto at = static_cast<std::streamoff>(random() % size);
        file.seekg(at);
        const int byte = file.get();
        file.seekp(at);
        file.put(static_cast<char>(byte ^ (1 << random() % 8)));
        break;
      }
      case 1:
        fs::resize_file(entry, random() % size);
        break;
      case 2:
        fs::resize_file(entry, size + 1 + random() % 5000);
        break;
      case 3: {  // as a crash of the machine leaves it: the length, and zeros from a page on
        fs::resize_file(entry, random() % size / 512 * 512);
        fs::resize_file(entry, size);
        break;
      }
      default:
        std::ofstream(entry, std::ios::binary) << RandomBytes(random() % 300, random());
    }
    const auto tier = Open(1 << 20);
    EXPECT_EQ(tier->bytes(), BytesOnDisk());
    EXPECT_EQ(Take(tier.get(), streams), 0u);
    EXPECT_EQ(tier->figures().rejected, 1u);
    ASSERT_EQ(tier->notes().size(), 1u);
    EXPECT_THAT(tier->notes()[0], HasSubstr("dropped 1 damaged entries"));
    EXPECT_EQ(tier->bytes(), BytesOnDisk());
    EXPECT_EQ(Take(tier.get(), streams), streams.size());
  }
}

// An entry that disappears under a run is a miss; one that is damaged meanwhile, too.
TEST_F(DiskTierTest, EntriesThatOthersRemoveAreReadAgain) {
  const auto tier = Open(1 << 20);
  Take(tier.get(), {1, 2});
  fs::remove(Entries()[0]);
  EXPECT_EQ(Take(tier.get(), {1, 2}), 0u);
  EXPECT_EQ(tier->figures().rejected, 1u);
  EXPECT_EQ(Take(tier.get(), {1, 2}), 2u);
  EXPECT_EQ(tier->bytes(), BytesOnDisk());
}

// Two reads, as what lies between them is long: the second finds damage, and the first is not used.
TEST_F(DiskTierTest, AnEntryIsTakenAsAWholeOrNotAtAll) {
  bytes_ = RandomBytes(400'000, 2);
  source_ = MemorySource("t/part-00000.dwrf", bytes_);
  dwrf::StripePlan plan;
  plan.streams.push_back({1, 0, dwrf::StreamKind::kData, 0, 100, true});
  plan.streams.push_back({1, 1, dwrf::StreamKind::kData, 100, 300'000, true});
  plan.streams.push_back({1, 2, dwrf::StreamKind::kData, 300'100, 100, true});
  const auto tier = Open(1 << 20);
  Fetch(plan, *source_, {}, tier.get());
  plan.streams.erase(plan.streams.begin() + 1);
  EXPECT_EQ(Fetch(plan, *source_, {}, tier.get()).tier.hits, 2u);
  {
    std::fstream file(Entries()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(bytes_[300'199] ^ 1));
  }
  const FetchedStripe fetched = Fetch(plan, *source_, {}, tier.get());
  EXPECT_EQ(fetched.tier.hits, 0u);
  EXPECT_EQ(tier->figures().rejected, 1u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::string(fetched.stored[i].begin(), fetched.stored[i].end()),
              bytes_.substr(plan.streams[i].offset, 100));
}

TEST_F(DiskTierTest, AStreamAskedForTwiceIsFoundTwice) {
  const auto tier = Open(1 << 20);
  EXPECT_EQ(Take(tier.get(), {1, 2, 1}), 0u);
  EXPECT_EQ(Take(tier.get(), {1, 2, 1}), 3u);
  EXPECT_EQ(tier->figures().kept, 1u);
}

TEST_F(DiskTierTest, ItIsForItsOwnerAlone) {
  const auto tier = Open(1 << 20);
  Take(tier.get(), {1, 2});
  for (const fs::path& path : {folder_, folder_ / "tier.lock", Entries()[0]})
    EXPECT_EQ(fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << path;
}

// Headers that claim much over few bytes, with checksums that fit.
TEST_F(DiskTierTest, AHostileEntryAllocatesNothing) {
  {
    const auto tier = Open(1 << 20);
    Take(tier.get(), {1, 2});
  }
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 20, uint64_t{1} << 60, UINT64_MAX}) {
    {
      std::fstream file(Entries()[0], std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(32);
      file.write(reinterpret_cast<const char*>(&count), sizeof count);
    }
    const auto tier = Open(1 << 20);
    EXPECT_EQ(Take(tier.get(), {1, 2}), 0u);
    EXPECT_EQ(tier->figures().rejected, 1u);
  }
}

TEST_F(DiskTierTest, ForeignFilesAreLeftAloneAndLeftOversRemoved) {
  fs::create_directories(folder_);
  const std::string good = "0123456789abcdef-0123456789abcdef-0-0.streams";
  const std::vector<std::string> foreign = {
      "a.streams",       "0123456789ABCDEF-0123456789abcdef-0-0.streams",
      "notes.txt",       "0123456789abcdef-0123456789abcdef-00-0.streams",
      good + ".tmp",     good + ".tmp12x",
      "part-00000.dwrf", "0123456789abcdef-0123456789abcdef-4294967296-0.streams",
      good + ".bak"};
  for (const std::string& name : foreign) std::ofstream(folder_ / name) << "mine";
  fs::create_directory(folder_ / "0123456789abcdef-0123456789abcdef-1-0.streams");
  fs::create_symlink("notes.txt", folder_ / "0123456789abcdef-0123456789abcdef-2-0.streams");
  std::ofstream(folder_ / (good + ".tmp123")) << "half";
  const auto tier = Open(500);
  EXPECT_EQ(tier->bytes(), 0u);
  for (uint64_t stream = 0; stream < 20; ++stream) Take(tier.get(), {stream});
  for (const std::string& name : foreign) EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  EXPECT_TRUE(fs::is_directory(folder_ / "0123456789abcdef-0123456789abcdef-1-0.streams"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "0123456789abcdef-0123456789abcdef-2-0.streams"));
  EXPECT_FALSE(fs::exists(folder_ / (good + ".tmp123")));
}

TEST_F(DiskTierTest, OneAtATimeHasTheFolder) {
  auto tier = Open(1 << 20);
  try {
    Open(1 << 20);
    FAIL() << "two have it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("another process has this folder as its tier"));
    EXPECT_THAT(error.what(), HasSubstr("source.tier.folder"));
  }
  tier.reset();
  Open(1 << 20);
}

TEST_F(DiskTierTest, AnOlderFileOfTheSameNameIsNotTakenForIt) {
  {
    const auto tier = Open(1 << 20);
    Take(tier.get(), {1, 2});
  }
  const std::string other = "0123456789abcdef-0123456789abcdef-0-0.streams";
  std::ofstream(folder_ / other) << "of another table";
  bytes_ = RandomBytes(kStreams * 1000, 2);
  source_ = MemorySource("t/part-00000.dwrf", bytes_);
  const auto tier = Open(1 << 20);
  EXPECT_EQ(Take(tier.get(), {1, 2}), 0u);
  EXPECT_EQ(tier->figures().removed, 1u);
  EXPECT_EQ(tier->figures().rejected, 0u);
  EXPECT_TRUE(fs::exists(folder_ / other)) << "it is in the budget, and in nobody's way yet";
  EXPECT_EQ(tier->bytes(), BytesOnDisk());
}

TEST_F(DiskTierTest, ASmallerBudgetDropsWhatWasNotUsedForLong) {
  {
    const auto tier = Open(1 << 20);
    for (uint32_t stripe = 0; stripe < 5; ++stripe) Take(tier.get(), {10}, stripe);
  }
  // As used 0, 4, 1, 2, 3.
  const std::vector<fs::path> entries = Entries();
  const auto now = fs::last_write_time(entries[0]);
  const int age[] = {5, 3, 2, 1, 4};
  for (int i = 0; i < 5; ++i)
    fs::last_write_time(entries[static_cast<size_t>(i)], now - std::chrono::minutes(age[i]));
  const auto tier = Open(3 * (kHeader + kLine + LengthOf(10)) + 50, TierPolicy::kPinned);
  EXPECT_EQ(tier->bytes(), 3 * (kHeader + kLine + LengthOf(10)));
  EXPECT_EQ(tier->bytes(), BytesOnDisk());
  for (const uint32_t stripe : {1u, 2u, 3u}) EXPECT_EQ(Take(tier.get(), {10}, stripe), 1u);
  for (const uint32_t stripe : {0u, 4u}) EXPECT_EQ(Take(tier.get(), {10}, stripe), 0u);
}

TEST_F(DiskTierTest, ThreadsShareIt) {
  const auto tier = Open(40'000);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 300; ++i) {
        std::vector<uint64_t> streams;
        for (uint64_t s = 0; s < kStreams; ++s)
          if (random() % 3 == 0) streams.push_back(s);
        Take(tier.get(), streams, static_cast<uint32_t>(random() % 4));
        EXPECT_LE(tier->bytes(), 40'000u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tier->figures().rejected, 0u) << tier->notes()[0];
  EXPECT_EQ(tier->bytes(), BytesOnDisk());
}

TEST_F(DiskTierTest, AKilledProcessLeavesNothingHalf) {
  std::mt19937_64 random(TestSeed());
  std::vector<uint64_t> all(kStreams);
  for (uint64_t s = 0; s < kStreams; ++s) all[s] = s;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      const auto tier = Open(400'000);
      for (uint32_t i = 0;; ++i) Take(tier.get(), all, i % 100);
    }
    usleep(static_cast<useconds_t>(1000 + random() % 20000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto tier = Open(400'000, TierPolicy::kPinned);  // displaces nothing
    for (const auto& file : fs::directory_iterator(folder_))
      EXPECT_THAT(file.path().extension(), testing::AnyOf(".streams", ".lock")) << file.path();
    EXPECT_EQ(tier->bytes(), BytesOnDisk());
    EXPECT_LE(tier->bytes(), 400'000u);
    uint64_t hits = 0;
    for (uint32_t stripe = 0; stripe < 100; ++stripe) hits += Take(tier.get(), all, stripe);
    EXPECT_EQ(tier->figures().rejected, 0u);
    std::printf("%llu streams\n", static_cast<unsigned long long>(hits));
  }
}

TEST_F(DiskTierTest, AFullDiskEndsFillingAndNothingElse) {
  fs::create_directories(folder_);
  if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=200k") != 0)
    GTEST_SKIP() << "mounting a small file system is not allowed here";
  struct Unmount {
    ~Unmount() { umount2(path.c_str(), MNT_DETACH); }
    fs::path path;
  } unmount{folder_};
  std::vector<uint64_t> all(kStreams);
  for (uint64_t s = 0; s < kStreams; ++s) all[s] = s;  // 20 kB
  const auto tier = Open(1 << 20);
  for (uint32_t stripe = 0; stripe < 30; ++stripe) EXPECT_EQ(Take(tier.get(), all, stripe), 0u);
  EXPECT_GE(tier->figures().kept, 4u);
  EXPECT_LE(tier->figures().kept, 10u);
  ASSERT_EQ(tier->notes().size(), 1u);
  EXPECT_THAT(tier->notes()[0], HasSubstr("nothing more came into the tier after"));
  EXPECT_THAT(tier->notes()[0], HasSubstr("No space left"));
  EXPECT_EQ(Take(tier.get(), all, 0), kStreams);
  EXPECT_EQ(tier->bytes(), BytesOnDisk()) << "nothing half is left";
}

}  // namespace
}  // namespace headrace::reader
