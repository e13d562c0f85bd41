// What a trainer's main thread does between its steps: validation, saving, reports, and what a
// library calls back.
#include "analysis/outside/beside_training.h"

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
std::optional<BesideTraining> Beside(const std::vector<std::pair<std::string, double>>& functions) {
  RunView view;
  for (const auto& [frames, seconds] : functions) Sample("MainThread", frames, seconds, &view);
  return LookBesideTraining(view, {100});
}

bool IsDoing(const std::optional<BesideTraining>& found, const std::string& what) {
  return found && found->doing == what;
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
        Beside({{below + kForward, 5}, {below + kLoader, 1}, {kBackward, 3}, {kMain, 4}});
    ASSERT_TRUE(IsDoing(found, "validating"));
    EXPECT_EQ(found->place.name, function.substr(0, function.find(", loop")) +
                                     (function.find(", loop") == std::string::npos ? "" : ")"));
    EXPECT_NEAR(found->place.ratio, 6.0 / 9, 0.01)
        << "what is neither loading nor training is left out";
  }
}

TEST(Validation, IsNotNamedWhereItIsNoneOrLittle) {
  const auto of = [](const std::string& function, double forward_s, double loader_s,
                     double backward_s) {
    const std::string below = kMain + ";" + function;
    return IsDoing(
        Beside(
            {{below + kForward, forward_s}, {below + kLoader, loader_s}, {kBackward, backward_s}}),
        "validating");
  };
  const std::string evaluate = "evaluate (train.py:12, loop 11)";
  EXPECT_TRUE(of(evaluate, 5, 1, 4));
  EXPECT_TRUE(of(evaluate, 6, 0, 4)) << "over what it holds in memory";
  EXPECT_TRUE(of(evaluate, 2, 1, 6)) << "beside the step";
  EXPECT_FALSE(of(evaluate, 1, 1, 8)) << "hardly worth a word";
  EXPECT_TRUE(of(evaluate, 0.9, 0.2, 1)) << "few samples";
  EXPECT_FALSE(of(evaluate, 0.5, 0.1, 1.2)) << "too few samples";
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

TEST(Validation, IsTheLimitWhereItIsSeenOften) {
  const std::string below = kMain + ";evaluate (train.py:12, loop 11)";
  const auto is_most = [&](double seconds) {
    const auto found = Beside({{below + kForward, 0.6 * seconds}, {kBackward, 0.4 * seconds}});
    return found && found->IsMost();
  };
  EXPECT_TRUE(is_most(10));
  EXPECT_FALSE(is_most(2));
}

TEST(BesideTraining, SamplesNeverSayAll) {
  BesideTraining beside{"saving", "saving", "save less often", {"", 0.62}};
  EXPECT_EQ(beside.Words("it", ""), "62 % of what it does is saving");
  beside.place.ratio = 0.99;
  EXPECT_EQ(beside.Words("it", "save (train.py:9)"),
            "nearly all of what it does is saving, in save (train.py:9)");
}

TEST(Validation, IsPartOfWhatThePageSays) {
  RunView view = WithStacks(Loader(2, 0.93, 0.05, 0.1, 0, 0.88), 3, 0, 0.5);
  Sample("MainThread",
         "<module> (train.py:40);main (train.py:30);Trainer._evaluate "
         "(transformers/trainer.py:3310);Linear.forward (torch/nn/modules/linear.py:1)",
         6, &view);
  const Outside seen = LookFromOutside(view);
  ASSERT_TRUE(seen.beside_training);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kConsumer);
}

TEST(Saving, IsNamedByWhatPeopleCallIt) {
  const std::string lightning =
      "<module> (train.py:40, no loop);Trainer.fit (lightning/pytorch/trainer/trainer.py:584);"
      "_TrainingEpochLoop.advance (lightning/pytorch/loops/training_epoch_loop.py:375)";
  struct {
    std::string main, saves, name;
  } const kCases[] = {
      {kMain, ";save_checkpoint (train.py:12, no loop);save (torch/serialization.py:1004)",
       "save_checkpoint (train.py:12)"},
      {kMain, ";save (torch/serialization.py:1004);_save (torch/serialization.py:1313)",
       "main (train.py:30)"},
      {kMain, ";Runs.dump_state (train.py:12, no loop)", "Runs.dump_state (train.py:12)"},
      {lightning,
       ";_call_callback_hooks (lightning/pytorch/trainer/call.py:228);"
       "ModelCheckpoint.on_train_batch_end (lightning/pytorch/callbacks/model_checkpoint.py:485);"
       "ModelCheckpoint._save_checkpoint (lightning/pytorch/callbacks/model_checkpoint.py:600);"
       "_atomic_save (lightning/fabric/utilities/cloud_io.py:98)",
       "ModelCheckpoint.on_train_batch_end (lightning/pytorch/callbacks/model_checkpoint.py:485)"}};
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.saves);
    const std::string trains = each.main + ";Tensor.backward (torch/_tensor.py:623)";
    const auto found = Beside({{each.main + each.saves, 6}, {trains, 4}});
    ASSERT_TRUE(IsDoing(found, "saving"));
    EXPECT_EQ(found->place.name, each.name);
    EXPECT_NEAR(found->place.ratio, 0.6, 0.01);
    EXPECT_TRUE(found->IsMost());
    const auto part = Beside({{each.main + each.saves, 4}, {trains, 6}});
    EXPECT_TRUE(IsDoing(part, "saving") && !part->IsMost());
    EXPECT_FALSE(Beside({{each.main + each.saves, 2}, {trains, 8}})) << "little";
    EXPECT_FALSE(Beside({{each.main + each.saves, 0.9}, {trains, 0.5}})) << "few samples";
  }
}

// A library's loop calls the step and the saving by functions of its own: neither is set-up.
TEST(Saving, IsSeenBesideAStepOfALibrarysTrainer) {
  const std::string loop =
      "<module> (train.py:40, no loop);Trainer.train (transformers/trainer.py:2300);"
      "Trainer._inner_training_loop (transformers/trainer.py:2600);";
  const auto found =
      Beside({{loop + "Trainer._maybe_log_save_evaluate (transformers/trainer.py:3000);"
                      "Trainer._save_checkpoint (transformers/trainer.py:3377);"
                      "save (torch/serialization.py:944)",
               6},
              {loop + "Trainer.training_step (transformers/trainer.py:3700);"
                      "Linear.forward (torch/nn/modules/linear.py:134)",
               4}});
  ASSERT_TRUE(IsDoing(found, "saving"));
  EXPECT_EQ(found->place.name, "Trainer._save_checkpoint (transformers/trainer.py:3377)");
  EXPECT_NEAR(found->place.ratio, 0.6, 0.01);
}

TEST(Saving, IsNotNamedWhereItIsNone) {
  for (const std::string saves :
       {";log_softmax (torch/nn/functional.py:2250)", ";log_prob (train.py:12, no loop)",
        ";train_and_save (train.py:12, no loop)",
        ";Trainer._maybe_log_save_evaluate (transformers/trainer.py:9)",
        ";restore_checkpoint (train.py:12, no loop)", ";Queue.put (queue.py:140)",
        ";embed_and_save (train.py:12, no loop);Linear.forward (torch/nn/modules/linear.py:125)",
        ";checkpoint (torch/utils/checkpoint.py:488)",
        ";log (wandb/sdk/wandb_run.py:1800);Linear.forward (torch/nn/modules/linear.py:125)",
        ";_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725);save_item (train.py:9, "
        "no loop)"}) {
    SCOPED_TRACE(saves);
    EXPECT_FALSE(Beside({{kMain + saves, 6}, {kBackward, 4}}));
  }
}

// What a library for reports reads is loaded.
TEST(Reporting, IsNoReading) {
  for (const std::string reads :
       {";DictReader.__next__ (csv.py:110)", ";imread (matplotlib/image.py:1500)"}) {
    SCOPED_TRACE(reads);
    RunView view;
    Sample("MainThread", kMain + reads, 6, &view);
    Sample("MainThread", kBackward, 4, &view);
    EXPECT_FALSE(LookBesideTraining(view, {100}));
    const std::optional<PythonTime> time = LookAtPython(view, {100}, false);
    ASSERT_TRUE(time);
    EXPECT_NEAR(time->step_s, 4, 0.01);
  }
}

TEST(Writing, TheLongerKindHasItsOwnShare) {
  const auto found = Beside({{kMain + ";save (torch/serialization.py:1004)", 3},
                             {kMain + ";writerow (csv.py:154)", 4},
                             {kBackward, 3}});
  ASSERT_TRUE(IsDoing(found, "reporting"));
  EXPECT_NEAR(found->place.ratio, 0.4, 0.01);
}

TEST(Reporting, IsKnownByItsLibrary) {
  for (const std::string reports :
       {";log (wandb/sdk/wandb_run.py:1800)", ";writerow (csv.py:154)",
        ";Figure.draw (matplotlib/figure.py:3154)",
        ";SummaryWriter.add_histogram (torch/utils/tensorboard/writer.py:480)"}) {
    SCOPED_TRACE(reports);
    const auto found = Beside({{kMain + reports, 6}, {kBackward, 4}});
    EXPECT_TRUE(IsDoing(found, "reporting"));
    EXPECT_EQ(found->place.name, "main (train.py:30)") << "of the program";
  }
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

TEST(Saving, OfWhatKerasCallsBackIsNamedAlsoBesideALongerFit) {
  const std::string fit =
      "<module> (train.py:40, no loop);train_and_save (train.py:30, no loop);"
      "export_checkpoint (train.py:20, no loop);TensorFlowTrainer.fit "
      "(keras/src/backend/tensorflow/trainer.py:400);";
  RunView view;
  Sample("MainThread",
         fit +
             "CallbackList.on_train_batch_end (keras/src/callbacks/callback_list.py:198);"
             "ModelCheckpoint.on_train_batch_end (keras/src/callbacks/model_checkpoint.py:225);"
             "ModelCheckpoint._save_model (keras/src/callbacks/model_checkpoint.py:338)",
         4, &view);
  Sample("MainThread", fit + "quick_execute (tensorflow/python/eager/execute.py:53)", 6, &view);
  const auto found = LookBesideTraining(view, {100});
  ASSERT_TRUE(IsDoing(found, "saving"));
  EXPECT_NEAR(found->place.ratio, 0.4, 0.01);
  EXPECT_EQ(found->place.name,
            "ModelCheckpoint.on_train_batch_end (keras/src/callbacks/model_checkpoint.py:225)");
}

TEST(EagerSteps, AreSeenByFunctionsThatAGraphDoesNotCall) {
  const std::string fit =
      "<module> (train.py:40, no loop);main (train.py:30, no loop);TensorFlowTrainer.fit "
      "(keras/src/backend/tensorflow/trainer.py:399);";
  const std::string step =
      "TensorFlowTrainer._make_function.<locals>.one_step_on_data "
      "(keras/src/backend/tensorflow/trainer.py:134);TensorFlowTrainer.train_step "
      "(keras/src/backend/tensorflow/trainer.py:84)";
  const std::string calls =
      "Function.__call__ "
      "(tensorflow/python/eager/polymorphic_function/polymorphic_function.py:833)";
  const std::string traces =
      calls + ";func_graph_from_py_func (tensorflow/python/framework/func_graph.py:1060)";
  const auto look = [&](const std::string& most) {
    RunView view;
    Sample("MainThread", fit + most, 4, &view);
    Sample("MainThread", fit + calls, 1, &view);
    return LookBesideTraining(view, {100});
  };
  for (const std::string& eager : {step, calls + ";" + step, step + ";" + traces}) {
    SCOPED_TRACE(eager);
    const auto found = look(eager);
    ASSERT_TRUE(IsDoing(found, "running eagerly"));
    EXPECT_NEAR(found->place.ratio, 0.8, 0.01);
    EXPECT_EQ(found->place.name, "main (train.py:30)");
  }
  EXPECT_FALSE(IsDoing(look(traces + ";" + step), "running eagerly"));
  EXPECT_FALSE(look(calls));
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

TEST(Compiling, IsNamedByWhoAsksForIt) {
  const std::string tensorflow =
      ";Function.__call__ (tensorflow/python/eager/polymorphic_function/"
      "polymorphic_function.py:869);call_function (tensorflow/python/eager/polymorphic_function/"
      "tracing_compilation.py:132)";
  const std::string traces =
      ";_maybe_define_function (tensorflow/python/eager/polymorphic_function/"
      "tracing_compilation.py:274);func_graph_from_py_func "
      "(tensorflow/python/framework/func_graph.py:1060);update (train.py:9, no loop)";
  const auto found = Beside({{kMain + tensorflow + traces, 9.5}, {kMain + tensorflow, 0.5}});
  ASSERT_TRUE(IsDoing(found, "tracing and compiling"));
  EXPECT_EQ(found->place.name, "main (train.py:30)");
  EXPECT_NEAR(found->place.ratio, 0.95, 0.01);
  EXPECT_TRUE(found->IsMost());
  EXPECT_FALSE(Beside({{kMain + tensorflow + traces, 2}, {kMain + tensorflow, 8}}));
  EXPECT_TRUE(IsDoing(Beside({{kMain + ";cache_miss (jax/_src/pjit.py:300);compile_or_get_cached "
                                       "(jax/_src/compiler.py:400)",
                               7},
                              {kMain + ";cache_miss (jax/_src/pjit.py:300)", 3}}),
                      "tracing and compiling"));
  // What looks up or runs compiled programs compiles nothing.
  const std::string looks_up =
      tensorflow +
      ";trace_function (tensorflow/python/eager/polymorphic_function/"
      "tracing_compilation.py:178);_maybe_define_function "
      "(tensorflow/python/eager/polymorphic_function/tracing_compilation.py:270)";
  const std::string runs =
      ";Net.forward (net.py:9, no loop);_fn (torch/_dynamo/eval_frame.py:745);forward "
      "(torch/_functorch/aot_autograd.py:1201);run (torch/_inductor/compile_fx.py:1500)";
  for (const std::string& other : {looks_up, runs}) {
    EXPECT_FALSE(Beside({{kMain + other, 8}, {kBackward, 2}})) << other;
  }
  // The first time is much of a short recording.
  const auto half = Beside({{kMain + tensorflow + traces, 6}, {kMain + tensorflow, 4}});
  EXPECT_TRUE(half && !half->IsMost());
  // Of a loader's it is loading.
  EXPECT_FALSE(Beside({{kMain + kLoader +
                            ";cache_miss (jax/_src/pjit.py:300);compile_or_get_cached "
                            "(jax/_src/compiler.py:400)",
                        7},
                       {kMain + ";cache_miss (jax/_src/pjit.py:300)", 3}}));
}

}  // namespace
}  // namespace headrace::analysis
