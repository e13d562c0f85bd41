#include "collectors/measurement_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/collectors/times.h"

namespace headrace::collectors {
namespace {

using probes::Measurement;

MeasurementSink::Names Names(std::optional<int64_t> operator_id = 5) {
  return {[](int64_t pid) { return pid * 10; },
          [operator_id](int64_t, uint32_t) { return operator_id; }};
}

Measurement Of(std::string_view metric, double value, std::string subject = "") {
  Measurement m;
  m.metric = metric;
  m.value = value;
  m.labels.subject = std::move(subject);
  return m;
}

// One reading of one measurement.
void Read(MeasurementSink* sink, int64_t now_ns, const Measurement& m,
          const std::string& probe = "p") {
  sink->BeginRead(probe, now_ns);
  sink->Add(m);
  sink->EndRead();
}

TEST(MeasurementSink, CountersHaveTotalsAndGrowth) {
  MeasurementSink sink(Names());
  Read(&sink, kSecond, Of("probe_read_ns", 10));
  MeasurementBatch batch = sink.Take(kSecond, true, false);
  ASSERT_EQ(batch.definitions.size(), 1u);
  EXPECT_EQ(batch.metrics.size(), 1u);
  EXPECT_EQ(batch.metrics[0].unit, "ns");
  EXPECT_EQ(batch.totals[0].last, 10);
  ASSERT_EQ(batch.intervals.size(), 1u);
  EXPECT_EQ(batch.intervals[0].value, 10);
  EXPECT_EQ(batch.intervals[0].start_ns, 0);
  EXPECT_EQ(batch.intervals[0].duration_ns, kSecond);
  Read(&sink, 2 * kSecond, Of("probe_read_ns", 25));
  batch = sink.Take(2 * kSecond, true, false);
  EXPECT_TRUE(batch.definitions.empty());
  EXPECT_EQ(batch.totals[0].last, 25);
  EXPECT_EQ(batch.intervals[0].value, 15);
  Read(&sink, 3 * kSecond, Of("probe_read_ns", 25));
  batch = sink.Take(3 * kSecond, true, false);
  EXPECT_TRUE(batch.totals.empty()) << "nothing changed, nothing is written";
}

TEST(MeasurementSink, GrowthOfASeldomReadProbeIsOfTheTimeSinceItsLastReading) {
  MeasurementSink sink(Names());
  constexpr int64_t kReadNs = 5'000'000;  // reading takes so long before what was read is taken
  const auto read = [&](int64_t second, double value, const char* subject, const char* probe) {
    Read(&sink, second * kSecond - kReadNs, Of("probe_read_ns", value, subject), probe);
  };
  Read(&sink, 0, Of("probe_read_ns", 0), "often");
  Read(&sink, 0, Of("probe_read_ns", 0, "x"), "seldom");
  Read(&sink, 0, Of("probe_read_ns", 0, "late"), "often late");
  sink.MarkStart();
  // Read every third second: it grows by 5 a second, but tells nothing of the second three.
  const std::map<int64_t, double> seldom = {{3, 15}, {6, 15}, {9, 45}};
  for (int64_t second = 1; second <= 9; ++second) {
    read(second, 1.0 * static_cast<double>(second), "", "often");
    read(second, second < 5 ? 0 : 100, "late", "often late");
    if (seldom.contains(second)) read(second, seldom.at(second), "x", "seldom");
    const MeasurementBatch batch = sink.Take(second * kSecond, true, false);
    for (const auto& row : batch.intervals) {
      SCOPED_TRACE(second);
      EXPECT_EQ(row.start_ns + row.duration_ns, second * kSecond);
      const bool is_seldom = row.value > 10 && row.value < 100;
      EXPECT_EQ(row.duration_ns, (is_seldom ? 3 : 1) * kSecond) << row.value;
      if (row.value == 100) {
        EXPECT_EQ(second, 5) << "not spread over the time without any";
      }
    }
    const size_t expected = 1 + (second == 3 || second == 9) + (second == 5);
    EXPECT_EQ(batch.intervals.size(), expected) << second;
  }
}

TEST(MeasurementSink, WhatWasCountedBeforeTheStartIsNotOfTheRun) {
  MeasurementSink sink(Names());
  Read(&sink, 0, Of("probe_read_ns", 1000));
  Read(&sink, 0, Of("host_tasks_count", 3), "q");  // a gauge holds
  sink.MarkStart();
  Read(&sink, kSecond, Of("probe_read_ns", 1030));
  Read(&sink, kSecond, Of("probe_read_ns", 7, "new"));
  MeasurementBatch batch = sink.Take(kSecond, true, false);
  ASSERT_EQ(batch.totals.size(), 3u);
  std::map<std::string, double> totals;
  for (const MeasurementRow& row : batch.definitions) {
    for (const MeasurementTotal& total : batch.totals) {
      if (total.id == row.id) totals[row.metric + row.subject] = total.last;
    }
  }
  EXPECT_EQ(totals["probe_read_ns"], 30);
  EXPECT_EQ(totals["probe_read_nsnew"], 7);
  EXPECT_EQ(totals["host_tasks_count"], 3);
  for (const auto& interval : batch.intervals) EXPECT_LE(interval.value, 30);
}

TEST(MeasurementSink, ACounterThatBeginsAgainGoesOn) {
  MeasurementSink sink(Names());
  Read(&sink, kSecond, Of("probe_read_ns", 100));
  Read(&sink, 2 * kSecond, Of("probe_read_ns", 7));
  const MeasurementBatch batch = sink.Take(2 * kSecond, true, false);
  EXPECT_EQ(batch.totals[0].last, 107);
}

TEST(MeasurementSink, LabelsThatComeTwiceInOneReadAreAdded) {
  MeasurementSink sink(Names());
  sink.BeginRead("p", kSecond);
  sink.Add(Of("probe_read_ns", 3, "a"));
  sink.Add(Of("probe_read_ns", 4, "a"));
  sink.Add(Of("probe_read_ns", 5, "b"));
  sink.EndRead();
  const MeasurementBatch batch = sink.Take(kSecond, true, false);
  ASSERT_EQ(batch.totals.size(), 2u);
  EXPECT_EQ(batch.totals[0].last + batch.totals[1].last, 12);
  EXPECT_NE(batch.totals[0].last, batch.totals[1].last);
}

TEST(MeasurementSink, TwoProbesOfOneMetricAreKeptApart) {
  MeasurementSink sink(Names());
  Read(&sink, kSecond, Of("probe_read_ns", 3), "one");
  Read(&sink, kSecond, Of("probe_read_ns", 4), "two");
  EXPECT_EQ(sink.Take(kSecond, true, false).totals.size(), 2u);
}

TEST(MeasurementSink, GaugesHaveATimeWeightedMeanAndARange) {
  MeasurementSink sink(Names());
  Read(&sink, kSecond, Of("store_bytes", 100));
  Read(&sink, 2 * kSecond, Of("store_bytes", 200));
  Read(&sink, 5 * kSecond, Of("store_bytes", 50));
  const MeasurementBatch batch = sink.Take(5 * kSecond, true, false);
  const MeasurementTotal& t = batch.totals[0];
  EXPECT_EQ(t.weight_ns, 4 * kSecond);
  EXPECT_DOUBLE_EQ(t.weighted_sum / static_cast<double>(t.weight_ns), (200 + 3 * 50) / 4.0);
  EXPECT_EQ(t.minimum, 50);
  EXPECT_EQ(t.maximum, 200);
  EXPECT_NEAR(batch.intervals[0].value, 350 / 3.0, 1e-9);
}

TEST(MeasurementSink, AGaugeThatIsAMeanCountsForItsTimeFromTheFirstOn) {
  MeasurementSink sink(Names());
  Measurement busy = Of("host_busy_cores", 2);
  busy.mean_of_ns = kSecond;
  Read(&sink, kSecond, busy);
  busy.value = 5;
  busy.mean_of_ns = 2 * kSecond;
  Read(&sink, 3 * kSecond, busy);
  const MeasurementBatch batch = sink.Take(3 * kSecond, true, false);
  EXPECT_EQ(batch.totals[0].weight_ns, 3 * kSecond);
  EXPECT_DOUBLE_EQ(batch.totals[0].weighted_sum, (2.0 + 2 * 5) * kSecond);
}

TEST(MeasurementSink, AGaugeThatIsReadSeldomStandsForTheTimeSinceItWasReadBefore) {
  MeasurementSink sink(Names());
  Read(&sink, 0, Of("gpu_use_ratio", 0.5));
  sink.Take(0, true, false);
  // Read at the second and the fifth second of five; of another device at the last only.
  for (int64_t second = 1; second <= 5; ++second) {
    if (second == 2) Read(&sink, second * kSecond, Of("gpu_use_ratio", 0.4));
    if (second == 5) {
      sink.BeginRead("p", second * kSecond);
      sink.Add(Of("gpu_use_ratio", 0.9));
      sink.Add(Of("gpu_use_ratio", 0.1, "new"));
      sink.EndRead();
    }
    const MeasurementBatch batch = sink.Take(second * kSecond, true, false);
    ASSERT_EQ(batch.intervals.size(), second == 2 ? 1u : second == 5 ? 2u : 0u);
    for (const auto& row : batch.intervals) {
      EXPECT_EQ(row.duration_ns, (second == 2 ? 2 : 3) * kSecond);
      EXPECT_EQ(row.start_ns + row.duration_ns, second * kSecond);
    }
  }
}

// That nothing was counted is a figure where a counter stands for itself; of each device, thread
// and cause there is, it would be a row without a word.
TEST(MeasurementSink, ACounterWithoutLabelsIsStoredAsAMeasuredZero) {
  MeasurementSink sink(Names());
  Read(&sink, kSecond, Of("process_read_bytes", 0));
  Read(&sink, kSecond, Of("probe_read_ns", 0, "a probe"), "q");
  const MeasurementBatch batch = sink.Take(kSecond, true, false);
  ASSERT_EQ(batch.definitions.size(), 1u);
  EXPECT_EQ(batch.definitions[0].metric, "process_read_bytes");
  ASSERT_EQ(batch.totals.size(), 1u);
  EXPECT_EQ(batch.totals[0].last, 0);
  EXPECT_TRUE(batch.intervals.empty());
}

TEST(MeasurementSink, AnOperatorNotKnownYetWaits) {
  std::optional<int64_t> known;
  MeasurementSink sink(
      {[](int64_t pid) { return pid; }, [&known](int64_t, uint32_t) { return known; }});
  Measurement m = Of("probe_read_ns", 9);
  m.labels.pid = 3;
  m.labels.operator_index = 2;
  Read(&sink, kSecond, m);
  EXPECT_TRUE(sink.Take(kSecond, true, false).definitions.empty());
  known = 8;
  MeasurementBatch batch = sink.Take(2 * kSecond, true, false);
  ASSERT_EQ(batch.definitions.size(), 1u);
  EXPECT_EQ(batch.definitions[0].operator_id, 8);
  EXPECT_EQ(batch.definitions[0].process_id, 3);
  EXPECT_EQ(batch.totals[0].last, 9);

  MeasurementSink other(Names(std::nullopt));
  Read(&other, kSecond, m);
  batch = other.Take(kSecond, true, true);
  ASSERT_EQ(batch.definitions.size(), 1u) << "at the end it is stored without";
  EXPECT_FALSE(batch.definitions[0].operator_id.has_value());
}

TEST(MeasurementSink, UnlistedAndUnmeasuredValuesAreNoNumbers) {
  MeasurementSink sink(Names());
  Read(&sink, kSecond, Of("no_such_metric_count", 1));
  Read(&sink, kSecond, Of("probe_read_ns", std::nan("")));
  Read(&sink, kSecond, Of("probe_read_ns", std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(sink.Take(kSecond, true, true).totals.empty());
  EXPECT_EQ(sink.losses().at("measurements of metrics that are not listed").lost, 1);
}

TEST(MeasurementSink, HistogramsComeWithFineOnlyAndHaveNoCourse) {
  MeasurementSink sink(Names());
  Measurement m = Of("probe_reads_count", 4);
  m.labels.bucket = 64;
  Read(&sink, kSecond, m);
  EXPECT_TRUE(sink.Take(kSecond, false, false).totals.empty());
  const MeasurementBatch batch = sink.Take(2 * kSecond, true, false);
  EXPECT_EQ(batch.totals.size(), 1u);
  EXPECT_TRUE(batch.intervals.empty());
  EXPECT_EQ(batch.definitions[0].bucket, 64);
}

TEST(MeasurementSink, WhatGoesBeyondTheLimitsIsCounted) {
  MeasurementSink::Limits limits;
  limits.measurements = 3;
  limits.courses = 1;
  limits.stacks = 2;
  MeasurementSink sink(Names(), limits);
  sink.BeginRead("p", kSecond);
  for (int i = 0; i < 5; i++) sink.Add(Of("probe_read_ns", i + 1, "s" + std::to_string(i)));
  for (int i = 0; i < 5; i++) {
    probes::StackSample stack;
    stack.kind = "cpu";
    stack.folded = "main;f" + std::to_string(i);
    stack.samples = 1;
    sink.AddStack(stack);
  }
  sink.Lost("events", 7, 70);
  sink.EndRead();
  const MeasurementBatch batch = sink.Take(kSecond, true, false);
  EXPECT_EQ(batch.totals.size(), 3u);
  EXPECT_EQ(batch.intervals.size(), 1u);
  EXPECT_EQ(batch.stacks.size(), 2u);
  const auto losses = sink.losses();
  EXPECT_EQ(losses.at("measurements beyond the limit of a run").lost, 2);
  EXPECT_EQ(losses.at("courses of measurements beyond the limit of a run").lost, 2);
  EXPECT_EQ(losses.at("stacks beyond the limit of a run").lost, 3);
  EXPECT_EQ(losses.at("events").lost, 7);
  EXPECT_EQ(losses.at("events").total, 70);
}

TEST(MeasurementSink, ThreadsHaveCoursesOfTheirOwn) {
  MeasurementSink::Limits limits;
  limits.courses = 1;
  limits.thread_courses = 2;
  MeasurementSink sink(Names(), limits);
  sink.BeginRead("p", kSecond);
  for (int i = 0; i < 3; i++) sink.Add(Of("probe_read_ns", i + 1, "s" + std::to_string(i)));
  for (int i = 0; i < 3; i++) {
    Measurement m = Of("probe_read_ns", i + 1);
    const std::string thread = "t" + std::to_string(i);
    m.labels.thread = thread;
    sink.Add(m);
  }
  sink.EndRead();
  EXPECT_EQ(sink.Take(kSecond, true, false).intervals.size(), 3u);
  const auto losses = sink.losses();
  EXPECT_EQ(losses.at("courses of measurements beyond the limit of a run").lost, 2);
  EXPECT_EQ(losses.at("courses of threads beyond the limit of a run").lost, 1);
}

TEST(MeasurementSink, LossesOfSeveralProbesAddUp) {
  MeasurementSink sink(Names());
  for (int read = 1; read <= 2; read++) {
    for (const char* probe : {"one", "two"}) {
      sink.BeginRead(probe, read * kSecond);
      sink.Lost("threads", read * 5, std::nullopt);
      sink.EndRead();
    }
  }
  EXPECT_EQ(sink.losses().at("threads").lost, 20) << "since the start, of each";
}

}  // namespace
}  // namespace headrace::collectors
