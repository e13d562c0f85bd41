#include "analysis/run/outliers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <string>

#include "analysis/statistics/statistics.h"

namespace headrace::analysis {
namespace {

constexpr double kSecondNs = 1e9;

void Put(RunView* view, const std::string& metric, const std::string& cause, double value,
         const std::string& subject = "") {
  MeasurementRow row;
  row.metric = metric;
  row.cause = cause;
  row.subject = subject;
  row.value = row.last_value = value;
  view->measurements.push_back(row);
}

void PutHost(RunView* view, const std::string& metric, double value) {
  HostRow row;
  row.metric = metric;
  row.last_value = value;
  view->hosts.push_back(row);
}

// A run of 10 s on two cores that a quiet machine made; `jitter` is from 0 to 1.
RunView Quiet(int64_t id, double jitter) {
  RunView view;
  view.run.run_id = id;
  view.run.duration_ns = static_cast<int64_t>(10 * kSecondNs);
  Put(&view, "pressure_window_ns", "", 10.2 * kSecondNs);
  Put(&view, "pressure_ns", "cpu some", (0.20 + 0.01 * jitter) * kSecondNs);
  Put(&view, "pressure_ns", "io some", (0.01 + 0.005 * jitter) * kSecondNs);
  Put(&view, "pressure_ns", "cpu some", 9 * kSecondNs, "/a/group");  // not the machine's
  Put(&view, "steal_ns", "", 0.02 * jitter * kSecondNs);
  Put(&view, "host_page_faults_count", "major", std::floor(3 * jitter));
  Put(&view, "cgroup_throttled_ns", "", 0, "/a");
  Put(&view, "host_cpu_ns", "user", (12 + 0.1 * jitter) * kSecondNs);
  Put(&view, "host_cpu_ns", "system", 1 * kSecondNs);
  Put(&view, "host_cpu_ns", "idle", 7.4 * kSecondNs);
  Put(&view, "disk_requests_count", "read", 1000, "vda");
  Put(&view, "disk_request_ns", "read", 1000 * (0.4e6 + 0.01e6 * jitter), "vda");
  PutHost(&view, "host_cores", 2);
  PutHost(&view, "process_cpu_ns", 12 * kSecondNs);
  PutHost(&view, "collector_cpu_ns", 0.2 * kSecondNs);
  view.fetched_bytes = 1'000'000'000;
  view.device_bytes = 0;
  return view;
}

void Set(RunView* view, const std::string& metric, const std::string& cause, double value) {
  for (MeasurementRow& row : view->measurements) {
    if (row.metric == metric && row.cause == cause) {
      row.value = row.last_value = value;
      return;
    }
  }
  Put(view, metric, cause, value);
}

// Pairs of quiet runs, all with about 1000 rows/s.
struct Bench {
  explicit Bench(size_t count, uint64_t seed = 1) {
    Random random(seed);
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<int64_t>(2 * i + 1);
      runs.push_back(Quiet(id, random.Uniform()));
      const RunView* a = &runs.back();
      runs.push_back(Quiet(id + 1, random.Uniform()));
      pairs.push_back(
          {{a, 1000 + 4 * random.Normal()}, {&runs.back(), 1030 + 4 * random.Normal()}});
    }
  }
  std::deque<RunView> runs;
  std::vector<OutlierPair> pairs;
};

TEST(RobustScore, OfKnownValues) {
  // Median 3, absolute deviations 2 1 0 1 97: MAD 1.
  const std::vector<double> scores = RobustScores(std::vector<double>{1, 2, 3, 4, 100});
  EXPECT_NEAR(scores[4], 97 / 1.4826, 1e-9);
  EXPECT_NEAR(scores[0], -2 / 1.4826, 1e-9);
  const std::vector<double> equal = RobustScores(std::vector<double>{5, 5, 5});
  EXPECT_EQ(equal[0], 0);
  const std::vector<double> one = RobustScores(std::vector<double>{5, 5, 5, 5, 5, 9});
  EXPECT_GT(one[5], 4) << "the others are equal";
  EXPECT_EQ(one[0], 0);
  const std::vector<double> missing = RobustScores(std::vector<double>{1, std::nan(""), 2, 3});
  EXPECT_EQ(missing[1], 0);
  EXPECT_TRUE(RobustScores({}).empty());
}

TEST(OutliersOfPairs, QuietRunsHaveFew) {
  // One of twenty sets has one; a comparison has three: A, B, and the ratios.
  size_t comparisons = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Bench bench(12, seed);
    comparisons += !FindOutliers(bench.pairs).empty();
  }
  EXPECT_LE(comparisons, 200 * 0.15 + 15);
}

struct Case {
  const char* name;
  std::function<void(RunView*)> happen;
  const char* key;   // of the first cause
  const char* text;  // part of it
};

const Case kCases[] = {
    {"quota", [](RunView* v) { Set(v, "cgroup_throttled_ns", "", 2.1 * kSecondNs); },
     "cpu_throttled", "the CPU quota stopped it for 21.0 % of the time (usually 0.0 %)"},
    {"steal", [](RunView* v) { Set(v, "steal_ns", "", 4.2 * kSecondNs); }, "steal",
     "the hypervisor took 0.42 cores"},
    {"CPU pressure", [](RunView* v) { Set(v, "pressure_ns", "cpu some", 5.1 * kSecondNs); },
     "cpu_pressure", "waited for a CPU in 50.0 % of the time"},
    {"IO pressure", [](RunView* v) { Set(v, "pressure_ns", "io some", 2 * kSecondNs); },
     "io_pressure", "IO"},
    {"memory pressure", [](RunView* v) { Set(v, "pressure_ns", "memory some", kSecondNs); },
     nullptr, ""},  // of this run alone: what is usual is not known
    {"page faults", [](RunView* v) { Set(v, "host_page_faults_count", "major", 5000); },
     "major_faults", "500 page faults a second"},
    {"another process",
     [](RunView* v) {
       Set(v, "host_cpu_ns", "user", 16 * kSecondNs);
       Set(v, "host_cpu_ns", "idle", 3.4 * kSecondNs);
     },
     "others_cpu", "other processes used 0.47 cores"},
    {"slow device", [](RunView* v) { Set(v, "disk_request_ns", "read", 1000 * 9e6); },
     "device_latency", "a read of the device took 9 ms"},
    {"colder cache", [](RunView* v) { v->device_bytes = 600'000'000; }, "from_device",
     "60.0 % of the bytes it asked for came from a device"},
};

TEST(OutliersOfPairs, ASlowRunIsExplainedByWhatWasRecordedInIt) {
  for (const Case& one : kCases) {
    Bench bench(10);
    bench.pairs[3].a.value = 700;
    one.happen(&bench.runs[6]);
    const std::vector<Outlier> outliers = FindOutliers(bench.pairs);
    ASSERT_EQ(outliers.size(), 1u) << one.name;
    const Outlier& outlier = outliers[0];
    EXPECT_EQ(outlier.pair, 3u) << one.name;
    EXPECT_EQ(outlier.side, OutlierSide::kA) << one.name;
    EXPECT_EQ(outlier.run_id, 7) << one.name;
    EXPECT_LT(outlier.score, -OutlyingScore(10)) << one.name;
    EXPECT_EQ(outlier.text.rfind("A of pair 4 (run 7) has 3", 0), 0u) << outlier.text;
    if (one.key == nullptr) {
      EXPECT_TRUE(outlier.causes.empty()) << one.name << ": " << outlier.text;
      EXPECT_NE(outlier.text.find("unexplained"), std::string::npos) << outlier.text;
      continue;
    }
    ASSERT_FALSE(outlier.causes.empty()) << one.name << ": " << outlier.text;
    EXPECT_EQ(outlier.causes[0].key, one.key) << one.name;
    EXPECT_NE(outlier.text.find(one.text), std::string::npos) << one.name << ": " << outlier.text;
  }
}

TEST(OutliersOfPairs, WithoutAnythingUnusualIsUnexplained) {
  Bench bench(10);
  bench.pairs[3].b.value = 700;
  const std::vector<Outlier> outliers = FindOutliers(bench.pairs);
  ASSERT_EQ(outliers.size(), 1u);
  EXPECT_TRUE(outliers[0].causes.empty());
  EXPECT_NE(outliers[0].text.find("less rows/s than usual: unexplained"), std::string::npos)
      << outliers[0].text;
}

TEST(OutliersOfPairs, WhatSlowsDownDoesNotExplainAFastRun) {
  Bench bench(10);
  bench.pairs[3].a.value = 1400;
  Set(&bench.runs[6], "steal_ns", "", 4 * kSecondNs);
  const std::vector<Outlier> outliers = FindOutliers(bench.pairs);
  ASSERT_EQ(outliers.size(), 1u);
  EXPECT_TRUE(outliers[0].causes.empty()) << outliers[0].text;
  // For a metric where more is worse, it explains the outlier.
  const std::vector<Outlier> cost = FindOutliers(bench.pairs, {"CPU per row", false});
  ASSERT_EQ(cost.size(), 1u);
  ASSERT_FALSE(cost[0].causes.empty());
  EXPECT_EQ(cost[0].causes[0].key, "steal");
  EXPECT_NE(cost[0].text.find("more CPU per row than usual"), std::string::npos) << cost[0].text;
}

TEST(OutliersOfPairs, APairCanStandApartThoughItsRunsDoNot) {
  // Sides drift together; in one pair B did not follow.
  Bench bench(12);
  Random random(2);
  for (size_t i = 0; i < bench.pairs.size(); ++i) {
    const double level = 1000 + 40 * static_cast<double>(i);
    bench.pairs[i].a.value = level + random.Normal();
    bench.pairs[i].b.value = 1.03 * level + random.Normal();
  }
  bench.pairs[5].b.value *= 0.9;
  Set(&bench.runs[11], "pressure_ns", "cpu some", 6 * kSecondNs);
  const std::vector<Outlier> outliers = FindOutliers(bench.pairs);
  ASSERT_EQ(outliers.size(), 1u);
  EXPECT_EQ(outliers[0].side, OutlierSide::kPair);
  EXPECT_EQ(outliers[0].pair, 5u);
  EXPECT_EQ(outliers[0].text.rfind("pair 6 has a ratio of -7.", 0), 0u) << outliers[0].text;
  ASSERT_FALSE(outliers[0].causes.empty());
  EXPECT_EQ(outliers[0].causes[0].text.rfind("B: tasks of the machine waited for a CPU", 0), 0u);
}

TEST(OutliersOfPairs, FewOrMissingRunsNameNone) {
  Bench few(5);
  few.pairs[0].a.value = 10;
  EXPECT_TRUE(FindOutliers(few.pairs).empty()) << "nothing is usual yet";
  EXPECT_TRUE(FindOutliers({}).empty());
  Bench missing(8);
  missing.pairs[2].a = {nullptr, std::nan("")};
  missing.pairs[3].a = {nullptr, 500};
  const std::vector<Outlier> outliers = FindOutliers(missing.pairs);
  ASSERT_EQ(outliers.size(), 1u);
  EXPECT_EQ(outliers[0].run_id, 0);
  EXPECT_EQ(outliers[0].text.rfind("A of pair 4 has 50 %", 0), 0u) << outliers[0].text;
}

TEST(OutliersOfPairs, SmallDistancesAreNone) {
  Bench bench(10);
  for (OutlierPair& pair : bench.pairs) pair.a.value = 1000, pair.b.value = 1000;
  bench.pairs[3].a.value = 1000.5;
  EXPECT_TRUE(FindOutliers(bench.pairs).empty()) << "half a per mille";
}

}  // namespace
}  // namespace headrace::analysis
