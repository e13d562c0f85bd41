#include "probes/calibration/calibration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

namespace headrace::probes {
namespace {

CalibrationOptions Quick() {
  CalibrationOptions options;
  options.folder = testing::TempDir();
  options.file_bytes = 16 << 20;
  options.memory_bytes = 16 << 20;
  options.part_ns = 20'000'000;
  options.max_threads = 2;
  return options;
}

TEST(Calibration, MeasuresEveryPartOrSaysWhyNot) {
  double last = 0;
  CalibrationOptions options = Quick();
  options.progress = [&](double fraction, const std::string& part) {
    EXPECT_GE(fraction, last - 1e-9) << part;
    EXPECT_LE(fraction, 1);
    last = fraction;
  };
  const Calibration calibration = Calibrate(options);
  std::map<std::string, int> points;
  for (const Ceiling& c : calibration.ceilings) {
    SCOPED_TRACE(c.metric + " " + c.subject);
    points[c.metric]++;
    EXPECT_GT(c.repetitions_count, 0);
    EXPECT_LE(c.minimum, c.value);
    EXPECT_LE(c.value, c.maximum);
    if (c.metric == "counter_drift_ratio") continue;
    EXPECT_GT(c.minimum, 0);
  }
  std::set<std::string> skipped;
  for (const CalibrationSkip& skip : calibration.skips) {
    EXPECT_FALSE(skip.reason.empty());
    EXPECT_FALSE(skip.fix.empty());
    skipped.insert(skip.part);
  }
  EXPECT_EQ(points["memory_read_bytes_per_s"], 2);
  EXPECT_EQ(points["memory_copy_bytes_per_s"], 2);
  EXPECT_EQ(points["decompress_bytes_per_s"], 4);
  EXPECT_EQ(points["hash_bytes_per_s"], 2);
  EXPECT_EQ(points["decrypt_bytes_per_s"], 2);
  EXPECT_GE(points["clock_read_ns"], 2);
  if (!skipped.contains("storage")) {
    EXPECT_EQ(points["storage_read_bytes_per_s"], 12);
    EXPECT_EQ(points["storage_read_latency_ns"], 12);
    EXPECT_EQ(points["storage_write_bytes_per_s"], 1);
  }
  for (const auto& entry : std::filesystem::directory_iterator(options.folder)) {
    EXPECT_EQ(entry.path().string().find("headrace-calibrate"), std::string::npos) << entry.path();
  }
}

TEST(Calibration, AFolderThatIsNotThereIsASkipWithAFix) {
  CalibrationOptions options = Quick();
  options.folder = "/nonexistent";
  Calibration calibration;
  CalibrateStorage(options, &calibration);
  EXPECT_TRUE(calibration.ceilings.empty());
  ASSERT_EQ(calibration.skips.size(), 1u);
  EXPECT_EQ(calibration.skips[0].reason, "statfs /nonexistent: No such file or directory");
  EXPECT_NE(calibration.skips[0].fix.find("--folder"), std::string::npos);
}

TEST(Calibration, BestOfRepetitionsWithItsRange) {
  Calibration calibration;
  double figure = 0;
  const auto next = [&] { return ++figure; };
  Repeat({}, true, 0, next, &calibration);
  Repeat({}, false, 0, next, &calibration);
  EXPECT_EQ(calibration.ceilings[0].value, 3);  // of 1, 2, 3
  EXPECT_EQ(calibration.ceilings[0].minimum, 1);
  EXPECT_EQ(calibration.ceilings[0].repetitions_count, 3);
  EXPECT_EQ(calibration.ceilings[1].value, 4);  // of 4, 5, 6
  EXPECT_EQ(calibration.ceilings[1].maximum, 6);
}

TEST(Calibration, StopsWhenInterrupted) {
  CalibrationOptions options = Quick();
  options.interrupted = [] { return true; };
  for (const Ceiling& c : Calibrate(options).ceilings) {
    EXPECT_TRUE(c.metric.starts_with("counter_")) << c.metric;
  }
}

}  // namespace
}  // namespace headrace::probes
