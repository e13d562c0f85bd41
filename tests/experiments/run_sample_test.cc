#include "experiments/run_sample.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"
#include "workloads/generator.h"

namespace headrace::experiments {
namespace {

// A table of thousands of files takes a second to open.
TEST(RunSamples, AreTakenFromTheTableThatTheRunHasOpen) {
  char name[] = "/tmp/headrace-run-sample-XXXXXX";
  const std::string folder = mkdtemp(name);
  workloads::WorkloadSpec generated = workloads::ForModel("rm1", 0.0625, 1500, 1);
  generated.partitions = 2;
  workloads::GenerateTable(generated, folder + "/table");
  const auto load = [&](const reader::Settings& settings) {
    return reader::LoadPipeline(folder + "/table/pipeline.toml", settings);
  };
  const reader::PipelineSpec spec = load({});
  const reader::PipelineSpec throttled = load({{"source.throttle.bandwidth", "1MB/s"}});
  const reader::Table table = reader::OpenTable(spec.table, spec.io);
  EXPECT_FALSE(TakeRunSamples(throttled, table, {}).empty());
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/table"))
    std::filesystem::remove(entry.path());
  EXPECT_FALSE(TakeRunSamples(spec, table, {}).empty()) << "it opened files again";
  EXPECT_TRUE(TakeRunSamples(throttled, table, {}).empty()) << "a sample took the run's bandwidth";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headrace::experiments
