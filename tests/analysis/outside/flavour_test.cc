// By what a program loads, by names of threads and by functions.
#include "analysis/outside/flavour.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/outside/outside.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

// A program in whose main thread that function was seen, with another thread of that name.
Outside WithFunction(const std::string& thread, const std::string& stack) {
  OutsideRun run(10, 1.2);
  run.Process(100, 1, "python", "python train.py").OnCpu(100, "python (main)", 0.7);
  run.OnCpu(100, thread, 0.2);
  StackRow row;
  row.kind = "python";
  row.process_id = 100;
  row.thread = "MainThread";
  row.folded = "MainThread;main (train.py:9, loop 8);" + stack;
  row.samples_count = 90;
  row.time_ns = 9'000'000'000;
  run.view.stacks.push_back(row);
  return LookFromOutside(run.view);
}

// JAX has threads of names that TensorFlow's have.
TEST(Flavour, JaxIsNotTensorflow) {
  const auto flavour = [](const std::string& thread, const std::string& stack) {
    return WithFunction(thread, stack).flavour;
  };
  EXPECT_EQ(flavour("tf_Compute", "f (tensorflow/python/eager/def_function.py:3)"),
            OutsideFlavour::kTensorflow);
  EXPECT_EQ(flavour("tf_Compute", "f (jax/_src/api.py:3)"), OutsideFlavour::kPlain);
  EXPECT_EQ(flavour("tf_XLAEigen", "f (flax/core.py:3)"), OutsideFlavour::kPlain);
}

// Importing torch imports its loader; that program may load by a pool.
TEST(Flavour, WhoImportsTorchTrainsAndNeedHaveNoDataLoader) {
  Outside seen = WithFunction("pool", "<module> (torch/utils/data/__init__.py:3)");
  EXPECT_EQ(seen.flavour, OutsideFlavour::kPlain);
  EXPECT_STREQ(seen.ConsumerName(), "trainer");
  seen = WithFunction("pool", "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725)");
  EXPECT_EQ(seen.flavour, OutsideFlavour::kTorch);
  seen = WithFunction("pool", "__next__ (/opt/site-packages/torch/utils/data/dataloader.py:7)");
  EXPECT_EQ(seen.flavour, OutsideFlavour::kTorch) << "of an older Python, by its whole path";
  seen = WithFunction("pool", "main (torchlike/file.py:3)");
  EXPECT_STREQ(seen.ConsumerName(), "consumer");
}

}  // namespace
}  // namespace headrace::analysis
