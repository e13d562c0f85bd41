// Splits are admitted while they fit, in any number of threads.
#include "reader/pipeline/memory_ledger.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/block_pool.h"
#include "base/error.h"
#include "probes/account/account.h"

namespace headrace::reader {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Works like a stage: holds `bytes` for a moment and learns that it did.
void Work(MemoryCharge* charge, uint64_t bytes) {
  const BlockPool::ThreadPeak peak;
  BlockPool& pool = BlockPool::Get();
  pool.Give(pool.Take(bytes));
  charge->Worked(peak.bytes(), peak.net());
}

TEST(MemoryLedger, TheFirstSplitGoesAloneAndTheOthersWhileTheyFit) {
  StopSignal stop;
  MemoryLedger ledger({.budget_bytes = uint64_t{1} << 30});
  auto first = ledger.Admit(100, &stop, 0);
  bool second_in = false;
  std::thread second([&] {
    auto charge = ledger.Admit(100, &stop, 0);
    second_in = true;
  });
  Work(first.get(), 10 * kMiB);
  EXPECT_FALSE(second_in);
  first.reset();
  second.join();
  EXPECT_TRUE(second_in);
  std::vector<std::shared_ptr<MemoryCharge>> in;
  const uint64_t fit = ledger.limit_bytes() * 85 / 100 / (10 * kMiB * 115 / 100);
  for (uint64_t i = 0; i < fit; ++i) in.push_back(ledger.Admit(100, &stop, 0));
  std::thread waits([&] { EXPECT_EQ(ledger.Admit(100, &stop, 0), nullptr); });
  stop.Stop();
  ledger.Stop();
  waits.join();
}

TEST(MemoryLedger, TheAccountHasWhatSplitsTookAndHowLongTheyWaitedForIt) {
  ASSERT_EQ(hr_account_open("memory"), 0);
  StopSignal stop;
  {
    MemoryLedger ledger({.budget_bytes = uint64_t{1} << 30});
    ledger.set_account(hr_resource("memory budget", HR_MEMORY, 100));
    for (int alone = 0; alone < 2; ++alone) Work(ledger.Admit(100, &stop, 0).get(), 10 * kMiB);
    const hr_resource_entry& account = hr_segment_()->resources[0];
    EXPECT_EQ(account.acquisitions_count, 0u) << "what they need was not known";
    std::vector<std::shared_ptr<MemoryCharge>> in;
    const uint64_t need = 10 * kMiB * 115 / 100;
    const uint64_t fit = ledger.room_bytes() / need;
    for (uint64_t i = 0; i < fit; ++i) in.push_back(ledger.Admit(100, &stop, 0));
    std::thread waits([&] { ledger.Admit(100, &stop, 0).reset(); });
    while (ledger.held_back() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    in.clear();
    waits.join();
    EXPECT_EQ(account.acquisitions_count, fit + 1);
    EXPECT_NEAR(static_cast<double>(account.moved_bytes), static_cast<double>((fit + 1) * need),
                0.01 * static_cast<double>(fit * need));
    const double ticks = static_cast<double>(hr_segment_()->header.ticks_per_second);
    EXPECT_GE(static_cast<double>(account.wait_ticks) / ticks, 0.020);
    EXPECT_GE(static_cast<double>(account.hold_ticks) / ticks, 0.020 * static_cast<double>(fit));
  }
  hr_account_close();
}

TEST(MemoryLedger, NeverMoreThanTheLimitIsAlive) {
  StopSignal stop;
  MemoryLedger ledger({.budget_bytes = uint64_t{512} << 20});
  Work(ledger.Admit(1000, &stop, 0).get(), 40 * kMiB);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> most{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (int i = 0; i < 30; ++i) {
        const uint64_t rows = 100 + random() % 900;
        const auto charge = ledger.Admit(rows, &stop, 0);
        BlockPool& pool = BlockPool::Get();
        const Block block = pool.Take(rows * 40 * kMiB / 1000);
        const uint64_t alive = pool.held_bytes();
        for (uint64_t before = most;
             alive > before && !most.compare_exchange_weak(before, alive);) {
        }
        pool.Give(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, ledger.limit_bytes());
}

// Whether a split of `rows` rows is admitted now, by asking for it until it is in or is seen to
// wait.
bool FitsNow(MemoryLedger* ledger, uint64_t rows, SplitWork work = SplitWork::kWhole) {
  StopSignal stop;
  std::shared_ptr<MemoryCharge> charge;
  std::atomic<bool> is_in{false};
  std::thread asks([&] {
    charge = ledger->Admit(rows, &stop, 0, work);
    is_in = true;
  });
  for (int i = 0; i < 30'000 && !is_in && ledger->held_back() == 0; ++i) stop.SleepFor(1'000'000);
  EXPECT_TRUE(is_in || ledger->held_back() == 1) << "neither in nor waiting";
  stop.Stop();
  ledger->Hold().reset();  // wakes it
  asks.join();
  return charge != nullptr;
}

TEST(MemoryLedger, SplitsWithoutRowsComeAndGo) {
  StopSignal stop;
  MemoryLedger ledger({.budget_bytes = uint64_t{1} << 30});
  for (int i = 0; i < 3; ++i) ASSERT_NE(ledger.Admit(0, &stop, 0), nullptr);
  // Nothing was learnt of them: the first two with rows still go alone.
  for (int i = 0; i < 2; ++i) {
    auto alone = ledger.Admit(100, &stop, 0);
    EXPECT_FALSE(FitsNow(&ledger, 100));
    Work(alone.get(), kMiB);
  }
  auto one = ledger.Admit(100, &stop, 0);
  EXPECT_TRUE(FitsNow(&ledger, 100));
}

TEST(MemoryLedger, SplitsThatDoLessTellNothingOfTheOthers) {
  StopSignal stop;
  MemoryLedger ledger({.budget_bytes = uint64_t{1} << 30});
  for (int i = 0; i < 4; ++i) {
    auto less = ledger.Admit(100, &stop, 0);
    Work(less.get(), kMiB);
    if (i % 2 == 0) less->DoesLess();
    if (i % 2 == 1) less->FoundInCache();
  }
  for (int i = 0; i < 2; ++i) {
    auto alone = ledger.Admit(100, &stop, 0);
    EXPECT_FALSE(FitsNow(&ledger, 100));
    Work(alone.get(), ledger.limit_bytes() / 3);
  }
  auto one = ledger.Admit(100, &stop, 0);
  EXPECT_TRUE(FitsNow(&ledger, 100));
  EXPECT_FALSE(FitsNow(&ledger, 200)) << "two more of a third and a margin do not fit";
}

TEST(MemoryLedger, WhatACacheHoldsIsMeasuredForItself) {
  StopSignal stop;
  MemoryLedger ledger({.budget_bytes = uint64_t{1} << 30});
  for (int i = 0; i < 2; ++i) {
    auto cached = ledger.Admit(100, &stop, 0, SplitWork::kCached);
    cached->FoundInCache();
    Work(cached.get(), kMiB);
  }
  auto cached = ledger.Admit(100, &stop, 0, SplitWork::kCached);
  EXPECT_TRUE(FitsNow(&ledger, 100, SplitWork::kCached));
  EXPECT_FALSE(FitsNow(&ledger, 100)) << "no whole one was seen";
  cached.reset();
  auto whole = ledger.Admit(100, &stop, 0);
  EXPECT_FALSE(FitsNow(&ledger, 100, SplitWork::kCached)) << "beside one that may need anything";
}

TEST(MemoryLedger, WhatCanNeverFitIsAnErrorThatNamesWhatCould) {
  EXPECT_THROW(MemoryLedger({.budget_bytes = kMiB}), Error);
  StopSignal stop;
  MemoryLedger ledger({.budget_bytes = uint64_t{256} << 20});
  Work(ledger.Admit(10, &stop, 0).get(), 20 * kMiB);
  try {
    ledger.Admit(1000, &stop, 0);
    FAIL() << "admitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources);
    EXPECT_NE(error.fix().find("set pipeline.memory to 6"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::reader
