// The ladder of memory bandwidth: what is used when more or less of it was measured.
#include "analysis/run/memory_bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::analysis {
namespace {

MeasurementRow Row(const char* metric, double value, const char* source, const char* cause = "",
                   const char* operator_name = "") {
  MeasurementRow row;
  row.metric = metric;
  row.value = value;
  row.source = source;
  row.cause = cause;
  row.operator_name = operator_name;
  return row;
}

TEST(MemoryBandwidth, ByTheBestThatWasMeasured) {
  RunView run;
  run.run.duration_ns = 2'000'000'000;
  EXPECT_FALSE(MemoryBandwidthOf(run)) << "nothing known, and no 0";
  OperatorRow op;
  op.bytes_in_bytes = 300;
  op.bytes_out_bytes = 100;
  run.operators = {op, op};
  auto found = MemoryBandwidthOf(run);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_per_s.value(), 400);
  EXPECT_EQ(found->bytes_per_s.source(), Source::kEstimate);
  EXPECT_THAT(found->told_by, testing::HasSubstr("accounted"));
  EXPECT_FALSE(found->whole_machine);
  EXPECT_FALSE(found->ceiling_bytes_per_s);
  OperatorRow stored;  // of whole stripes: never read, so never moved
  stored.name = "fetch.stored";
  stored.kind = "stored";
  stored.bytes_out_bytes = 1'000'000;
  run.operators.push_back(stored);
  EXPECT_EQ(MemoryBandwidthOf(run)->bytes_per_s.value(), 400);

  run.measurements = {Row("llc_misses_count", 60, "counter", "", "decode"),
                      Row("llc_misses_count", 40, "counter", "", "read")};
  EXPECT_EQ(MemoryBandwidthOf(run)->bytes_per_s.value(), 3200) << "by operator, if only that";
  run.measurements.push_back(Row("llc_misses_count", 200, "counter"));
  found = MemoryBandwidthOf(run);
  EXPECT_EQ(found->bytes_per_s.value(), 6400) << "the process, not what its operators did again";
  EXPECT_EQ(found->bytes_per_s.source(), Source::kEstimate);
  EXPECT_THAT(found->told_by, testing::HasSubstr("LLC misses"));

  run.measurements.push_back(Row("memory_read_bytes", 6000, "counter", "memory controllers"));
  run.measurements.push_back(Row("memory_read_bytes", 1000, "counter", "memory controllers"));
  run.measurements.push_back(Row("memory_write_bytes", 3000, "counter", "memory controllers"));
  run.memory_ceiling_bytes_per_s = 50000;
  found = MemoryBandwidthOf(run);
  EXPECT_EQ(found->bytes_per_s.value(), 5000);
  EXPECT_EQ(found->bytes_per_s.source(), Source::kCounter);
  EXPECT_EQ(found->told_by, "memory controllers");
  EXPECT_TRUE(found->whole_machine);
  EXPECT_EQ(found->ceiling_bytes_per_s, 50000);

  run.measurements = {Row("memory_bytes", 10, "estimate", "SoC fabric")};
  EXPECT_EQ(MemoryBandwidthOf(run)->bytes_per_s.source(), Source::kEstimate);
  run.run.duration_ns = 0;
  EXPECT_FALSE(MemoryBandwidthOf(run));
}

}  // namespace
}  // namespace headrace::analysis
