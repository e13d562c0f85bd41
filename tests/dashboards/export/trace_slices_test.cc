#include "dashboards/export/trace_slices.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/seed.h"

namespace headrace::dashboards {
namespace {

TEST(TraceSlices, AreCutToWhatIsExported) {
  const struct {
    const char* name;
    int64_t begin, end;
    bool stays;
    int64_t cut_begin, cut_end;
  } cases[] = {
      {"inside", 120, 130, true, 120, 130},   {"over both ends", 0, 500, true, 100, 200},
      {"before", 0, 100, false, 0, 0},        {"none at the begin", 100, 100, true, 100, 100},
      {"after", 200, 300, false, 0, 0},       {"into the begin", 50, 150, true, 100, 150},
      {"backwards", 150, 10, true, 150, 150}, {"no length", 199, 199, true, 199, 199}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto cut = CutSlices({{c.begin, c.end, "s", {}}}, 100, 200);
    ASSERT_EQ(cut.size(), c.stays ? 1u : 0u);
    if (!c.stays) continue;
    EXPECT_EQ(cut[0].begin_ns, c.cut_begin);
    EXPECT_EQ(cut[0].end_ns, c.cut_end);
  }
}

TEST(TraceSlices, NestInEveryLaneAndNoneIsLost) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<TraceSlice> slices;
    const size_t count = random() % 40;
    for (size_t i = 0; i < count; ++i) {
      const auto begin = static_cast<int64_t>(random() % 50);
      slices.push_back({begin, begin + static_cast<int64_t>(random() % 20), "s", {}});
    }
    size_t placed = 0;
    for (const auto& lane : NestingLanes(slices)) {
      placed += lane.size();
      for (size_t i = 0; i < lane.size(); ++i) {
        for (size_t j = i + 1; j < lane.size(); ++j) {
          const TraceSlice &a = lane[i], &b = lane[j];
          ASSERT_LE(a.begin_ns, b.begin_ns);
          ASSERT_TRUE(b.begin_ns >= a.end_ns || b.end_ns <= a.end_ns)
              << a.begin_ns << "-" << a.end_ns << " and " << b.begin_ns << "-" << b.end_ns;
        }
      }
    }
    EXPECT_EQ(placed, count);
  }
}

TEST(TraceSlices, OneLaneIsEnoughForWhatNests) {
  EXPECT_EQ(NestingLanes({{0, 100, "run", {}},
                          {0, 10, "start", {}},
                          {10, 90, "steady", {}},
                          {20, 30, "edge", {}},
                          {90, 100, "end", {}}})
                .size(),
            1u);
  EXPECT_EQ(NestingLanes({{0, 10, "a", {}}, {5, 15, "b", {}}}).size(), 2u);
}

}  // namespace
}  // namespace headrace::dashboards
