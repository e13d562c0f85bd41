// The modelled device against its formula, by a clock that jumps.
#include "reader/source/throttle.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "probes/account/account.h"

namespace headrace::reader {
namespace {

constexpr ThrottleOptions kDisk{.bytes_per_second = 100e6, .seek_ns = 8'000'000};

TEST(DeviceModel, ASeekIsPaidUnlessTheReadGoesOn) {
  DeviceModel disk(kDisk);
  const auto first = disk.Serve(1000, 0, 1'000'000);
  EXPECT_EQ(first.begin_ns, 1000);
  EXPECT_EQ(first.end_ns, 1000 + 8'000'000 + 10'000'000);
  EXPECT_EQ(first.done_ns, first.end_ns);
  const auto next = disk.Serve(1000, 1'000'000, 1'000'000);  // waits, and does not seek
  EXPECT_EQ(next.begin_ns, first.end_ns);
  EXPECT_EQ(next.end_ns, first.end_ns + 10'000'000);
  const auto back = disk.Serve(next.end_ns + 5, 0, 0);  // finds the device idle
  EXPECT_EQ(back.begin_ns, next.end_ns + 5);
  EXPECT_EQ(back.end_ns, back.begin_ns + 8'000'000);
}

TEST(DeviceModel, LatencyDelaysTheDataAndNotTheDevice) {
  DeviceModel remote({.iops = 1000, .latency_ns = 20'000'000});
  EXPECT_EQ(remote.Serve(0, 0, 100).done_ns, 21'000'000);
  const auto second = remote.Serve(0, 5000, 100);
  EXPECT_EQ(second.begin_ns, 1'000'000);
  EXPECT_EQ(second.done_ns, 22'000'000);
}

TEST(DeviceModel, FractionsOfNanosecondsAddUp) {
  DeviceModel device({.bytes_per_second = 3e9});
  int64_t end = 0;
  for (uint64_t i = 0; i < 3'000'000; ++i) end = device.Serve(0, i, 1).end_ns;
  EXPECT_NEAR(static_cast<double>(end), 1e6, 2);
}

// A machine whose clock stands still but for sleeping.
struct Simulation {
  int64_t now_ns = 1'000'000;
  Throttle::Clock clock() {
    return {[this] { return now_ns; }, [this](int64_t until) { now_ns = std::max(now_ns, until); }};
  }
};

// In memory, with a depth.
class DeepSource final : public Source {
 public:
  DeepSource(uint64_t size, uint32_t depth) : bytes_(size), depth_(depth) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  uint32_t depth() const override { return depth_; }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    std::copy_n(bytes_.begin() + static_cast<long>(offset), out.size(), out.begin());
  }

 private:
  std::string name_ = "deep";
  std::vector<uint8_t> bytes_;
  uint32_t depth_;
};

int64_t TimeOf(const ThrottleOptions& options, uint32_t depth, size_t reads, size_t bytes) {
  Simulation simulation;
  const auto throttle = std::make_shared<Throttle>(options, simulation.clock());
  const auto source = Throttled(std::make_shared<DeepSource>(1 << 20, depth), throttle);
  std::vector<uint8_t> memory(bytes);
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < reads; ++i) requests.push_back({i * 2 * bytes, memory});
  ReadFigures figures;
  const int64_t begin = simulation.now_ns;
  source->ReadMany(requests, &figures);
  EXPECT_EQ(figures.requests, reads);
  EXPECT_EQ(figures.bytes, reads * bytes);
  return simulation.now_ns - begin;
}

TEST(Throttle, TimeIsThatOfTheFormula) {
  EXPECT_EQ(TimeOf(kDisk, 1, 100, 1000), 100 * (8'000'000 + 10'000));
  EXPECT_EQ(TimeOf(kDisk, 16, 100, 1000), 100 * (8'000'000 + 10'000)) << "one head";
  const ThrottleOptions remote{.iops = 1e5, .latency_ns = 1'000'000};
  EXPECT_EQ(TimeOf(remote, 1, 100, 10), 100 * 1'010'000);
  EXPECT_EQ(TimeOf(remote, 10, 100, 10), 10 * 1'010'000 + 9 * 10'000) << "ten share a latency";
  EXPECT_EQ(TimeOf(remote, 100, 100, 10), 100 * 10'000 + 1'000'000);
}

TEST(Throttle, FilesLieBehindEachOther) {
  Simulation simulation;
  const auto throttle = std::make_shared<Throttle>(kDisk, simulation.clock());
  const auto a = Throttled(std::make_shared<DeepSource>(100, 1), throttle);
  const auto b = Throttled(std::make_shared<DeepSource>(100, 1), throttle);
  std::vector<uint8_t> memory(50);
  const int64_t begin = simulation.now_ns;
  a->ReadAt(0, memory);
  b->ReadAt(50, memory);  // the same offset as the head's, in another file
  a->ReadAt(50, memory);
  EXPECT_EQ(simulation.now_ns - begin, 3 * (8'000'000 + 500));
}

TEST(Throttle, ThreadsShareTheDevice) {
  const auto throttle = std::make_shared<Throttle>(ThrottleOptions{.iops = 1000});
  const auto source = Throttled(std::make_shared<DeepSource>(1000, 1), throttle);
  const int64_t begin = MonotonicNs();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<uint8_t> memory(10);
      for (int i = 0; i < 10; ++i) source->ReadAt(0, memory);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(MonotonicNs() - begin, 40'000'000);
}

// A source whose own reads take time, on a clock that sleeping and reading move.
class SlowSource final : public Source {
 public:
  SlowSource(std::shared_ptr<const Source> inner, std::function<void()> pass)
      : inner_(std::move(inner)), pass_(std::move(pass)) {}
  const std::string& name() const override { return inner_->name(); }
  uint64_t size() const override { return inner_->size(); }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    inner_->ReadAt(offset, out);
    pass_();
  }

 private:
  std::shared_ptr<const Source> inner_;
  std::function<void()> pass_;
};

TEST(Throttle, TheAccountHasTheModelsTimeThoughTheReadsTakeTimeToo) {
  ASSERT_EQ(hr_account_open("throttle"), 0);
  Simulation simulation;
  const auto throttle = std::make_shared<Throttle>(kDisk, simulation.clock());
  throttle->set_account(hr_resource("disk", HR_DEVICE, 1));
  const auto source =
      Throttled(std::make_shared<SlowSource>(std::make_shared<DeepSource>(1000, 1),
                                             [&] { simulation.now_ns += 5'000'000; }),
                throttle);
  std::vector<uint8_t> memory(100);
  for (int i = 0; i < 10; ++i) source->ReadAt(static_cast<uint64_t>(i % 2) * 500, memory);
  const hr_segment* segment = hr_segment_();
  const hr_resource_entry& disk = segment->resources[0];
  const double ns_per_tick = 1e9 / static_cast<double>(segment->header.ticks_per_second);
  EXPECT_EQ(disk.acquisitions_count, 10u);
  EXPECT_EQ(disk.moved_bytes, 1000u);
  EXPECT_NEAR(static_cast<double>(disk.hold_ticks) * ns_per_tick, 10 * 8'001'000, 1e3);
  hr_account_close();
}

TEST(Throttle, PresetsAreKnownByName) {
  for (const char* name : {"disk", "ssd", "remote"}) EXPECT_TRUE(ThrottlePreset(name)->enabled());
  EXPECT_FALSE(ThrottlePreset("tape").has_value());
  EXPECT_FALSE(ThrottleOptions().enabled());
}

}  // namespace
}  // namespace headrace::reader
