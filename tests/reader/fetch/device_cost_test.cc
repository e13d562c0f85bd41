#include "reader/fetch/device_cost.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "reader/fetch/read_plan.h"

namespace headrace::reader {
namespace {

std::vector<DevicePoint> PointsOf(const DeviceCost& cost, double noise, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
  std::vector<DevicePoint> points;
  for (const double bytes : {4096.0, 65536.0, 1048576.0}) {
    const double ns = (cost.ns_per_request + cost.ns_per_byte * bytes) * factor(random);
    points.push_back({bytes, bytes / ns * 1e9});
  }
  return points;
}

TEST(DeviceCost, TheFitFindsTheLine) {
  const DeviceCost devices[] = {{8e6, 6.7}, {100e3, 0.5}, {5e3, 1}, {1000, 0}, {0, 2}};
  for (const DeviceCost& device : devices) {
    const auto exact = FitDeviceCost(PointsOf(device, 0, 1));
    ASSERT_TRUE(exact.has_value());
    EXPECT_NEAR(exact->ns_per_request, device.ns_per_request, 1e-6 * device.ns_per_request + 1e-6);
    EXPECT_NEAR(exact->ns_per_byte, device.ns_per_byte, 1e-6 * device.ns_per_byte + 1e-6);
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const auto rough = FitDeviceCost(PointsOf(device, 0.05, seed));
      EXPECT_GE(rough->ns_per_request, 0);
      EXPECT_GE(rough->ns_per_byte, 0);
      EXPECT_NEAR(rough->ns_per_request, device.ns_per_request,
                  0.15 * device.ns_per_request + 0.15 * 4096 * device.ns_per_byte);
    }
  }
  const DevicePoint one_size[] = {{4096, 1e6}, {4096, 2e6}};
  EXPECT_FALSE(FitDeviceCost(one_size).has_value());
  EXPECT_FALSE(FitDeviceCost({}).has_value());
}

TEST(DeviceCost, TheGapIsWhatARequestCostsInBytes) {
  EXPECT_EQ((DeviceCost{8e6, 10}.BestGapBytes()), 800'000u);
  EXPECT_EQ((DeviceCost{0, 10}.BestGapBytes()), 0u);
  EXPECT_EQ((DeviceCost{100, 0}.BestGapBytes()), uint64_t{1} << 40);
  EXPECT_EQ((DeviceCost{0, 0}.BestGapBytes()), 0u);
  const DeviceCost remote = CostOfThrottle(
      {.bytes_per_second = 1e9, .iops = 1000, .latency_ns = 16'000'000, .seek_ns = 1}, 16);
  EXPECT_DOUBLE_EQ(remote.ns_per_request, 1'000'000 + 1'000'000 + 1);
  EXPECT_DOUBLE_EQ(remote.ns_per_byte, 1);
}

// The gap of a device gives the plan that the device serves in the least time: no other gap is
// better.
TEST(DeviceCost, NoOtherGapIsFaster) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<ByteRange> ranges;
    for (uint64_t at = 0; ranges.size() < 50;) {
      ranges.push_back({at, 1 + random() % 50000});
      at += ranges.back().length + (random() % 4 == 0 ? 0 : random() % 300000);
    }
    const DeviceCost cost{static_cast<double>(random() % 1'000'000),
                          1 + 0.01 * static_cast<double>(random() % 1000)};
    const auto time_with = [&](uint64_t gap) {
      const ReadPlan plan = PlanReads(ranges, {.max_gap_bytes = gap});
      return cost.ns_per_request * static_cast<double>(plan.reads.size()) +
             cost.ns_per_byte * static_cast<double>(plan.read_bytes);
    };
    const double best = time_with(cost.BestGapBytes());
    // A gap is a whole number of bytes: a byte per read is its error.
    for (const uint64_t gap : {0, 1000, 16 << 10, 64 << 10, 128 << 10, 1 << 20})
      EXPECT_LE(best, time_with(gap) + 50 * cost.ns_per_byte) << "seed " << seed << ", gap " << gap;
  }
}

}  // namespace
}  // namespace headrace::reader
