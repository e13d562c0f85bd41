// What a trainer's main thread does between its steps: validation, and what a library calls back.
#include "analysis/outside/validation.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/outside/outside.h"
#include "analysis/outside/python_time.h"
#include "analysis/run/python_frames.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

const std::string kMain = "<module> (train.py:40, no loop);main (train.py:30, loop 28)";
const std::string kForward = ";Linear.forward (torch/nn/modules/linear.py:125)";
const std::string kBackward = kMain + ";Tensor.backward (torch/_tensor.py:623)";

// Of main threads in these functions, each for that long.
std::optional<PythonPlace> Validation(
    const std::vector<std::pair<std::string, double>>& functions) {
  RunView view;
  for (const auto& [frames, seconds] : functions) Sample("MainThread", frames, seconds, &view);
  const std::optional<PythonTime> time = LookAtPython(view, {100}, false);
  return time ? time->validation : std::nullopt;
}

const std::string kLoader = ";_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725)";

TEST(Validation, IsNamedByTheFunctionThatValidates) {
  for (const std::string function :
       {"evaluate (train.py:12, loop 11)", "run_validation (train.py:12, loop 11)",
        "Trainer.eval_epoch (train.py:12, loop 11)", "test (train.py:12, loop 11)",
        "Trainer._evaluate (transformers/trainer.py:3310)",
        "_EvaluationLoop.run (lightning/pytorch/loops/evaluation_loop.py:140)"}) {
    SCOPED_TRACE(function);
    const std::string below = kMain + ";" + function;
    const auto found =
        Validation({{below + kForward, 5}, {below + kLoader, 1}, {kBackward, 3}, {kMain, 4}});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, function.substr(0, function.find(", loop")) +
                               (function.find(", loop") == std::string::npos ? "" : ")"));
    EXPECT_NEAR(found->ratio, 6.0 / 9, 0.01) << "what is neither loading nor training is left out";
  }
}

TEST(Validation, IsNotNamedWhereItIsNoneOrLittle) {
  const auto of = [](const std::string& function, double forward_s, double loader_s,
                     double backward_s) {
    const std::string below = kMain + ";" + function;
    return Validation(
        {{below + kForward, forward_s}, {below + kLoader, loader_s}, {kBackward, backward_s}});
  };
  const std::string evaluate = "evaluate (train.py:12, loop 11)";
  EXPECT_TRUE(of(evaluate, 5, 1, 4));
  EXPECT_TRUE(of(evaluate, 6, 0, 4)) << "over what it holds in memory";
  EXPECT_FALSE(of(evaluate, 3, 1, 6)) << "less than half";
  EXPECT_FALSE(of(evaluate, 8, 1.9, 0.1)) << "it only validates";
  EXPECT_FALSE(of(evaluate, 0.8, 0.1, 0.5)) << "few samples";
  EXPECT_FALSE(of("ActorCritic.evaluate (ppo.py:12, no loop)", 6, 0, 4)) << "a loss of it";
  EXPECT_FALSE(of("validate_record (train.py:12, no loop)", 0, 6, 4)) << "of records";
  EXPECT_FALSE(of("train_and_evaluate (train.py:12, loop 11)", 6, 1, 3));
  EXPECT_FALSE(of("EvalHarness.train (train.py:12, loop 11)", 6, 1, 3));
  EXPECT_FALSE(of("Trainer._maybe_log_save_evaluate (transformers/trainer.py:9)", 6, 1, 3));
  EXPECT_FALSE(of("evaluate (numexpr/necompiler.py:9)", 6, 1, 3));
  EXPECT_FALSE(
      of("_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725);"
         "eval_transform (train.py:12, no loop)",
         6, 1, 3))
      << "a transform";
}

TEST(Validation, IsPartOfWhatThePageSays) {
  RunView view = WithStacks(Loader(2, 0.93, 0.05, 0.1, 0, 0.88), 3, 0, 0.5);
  Sample("MainThread",
         "<module> (train.py:40);main (train.py:30);Trainer._evaluate "
         "(transformers/trainer.py:3310);Linear.forward (torch/nn/modules/linear.py:1)",
         6, &view);
  const Outside seen = LookFromOutside(view);
  ASSERT_TRUE(seen.python && seen.python->validation);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
}

// One function of Keras takes batches and trains. What it calls back is told apart from it.
TEST(Validation, WhatKerasCallsBackIsTheStepWhereItIsMostOfFit) {
  const std::string fit =
      "<module> (train.py:40, no loop);TensorFlowTrainer.fit "
      "(keras/src/backend/tensorflow/trainer.py:400)";
  const std::string calls =
      fit +
      ";CallbackList.on_train_batch_end (keras/src/callbacks/callback_list.py:198)"
      ";Plots.on_train_batch_end (train.py:12, no loop);Image.save (PIL/Image.py:2712)";
  const std::string trains =
      fit + ";Function.__call__ (tensorflow/python/eager/polymorphic_function/x.py:833)";
  for (const double called_s : {8.0, 1.0}) {
    SCOPED_TRACE(called_s);
    RunView view;
    Sample("MainThread", calls, called_s, &view);
    Sample("MainThread", trains, 2, &view);
    const std::optional<PythonTime> time = LookAtPython(view, {100}, false);
    ASSERT_EQ(time.has_value(), called_s > 2);
    if (!time) continue;
    EXPECT_NEAR(time->step_s, 8, 0.01);
    EXPECT_NEAR(time->unknown_s, 2, 0.01) << "it takes batches or trains";
    EXPECT_NEAR(time->loads_s, 0, 0.01);
    EXPECT_EQ(time->step_function, "Plots.on_train_batch_end (train.py:12)");
  }
}

// So does what it validates with.
TEST(Validation, WhatKerasEvaluatesMayTakeBatchesOrCompute) {
  RunView view;
  Sample("MainThread",
         "<module> (train.py:40, loop 38);TensorFlowTrainer.evaluate "
         "(keras/src/backend/tensorflow/trainer.py:500);Function.__call__ "
         "(tensorflow/python/eager/polymorphic_function/x.py:833)",
         9, &view);
  EXPECT_FALSE(LookAtPython(view, {100}, false));
}

}  // namespace
}  // namespace headrace::analysis
