// The engine on synthetic elements: exactness at every parallelism, live resize, stopping, errors.
#include "reader/pipeline/pipeline.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "workloads/trainer.h"

namespace headrace::reader {
namespace {

using workloads::RowChecksums;
using workloads::Trainer;

std::string Text(const std::string& order, int p1, int p2, int queue, uint64_t elements) {
  return "pipeline = { order = \"" + order +
         "\" }\nsource = { synthetic = { elements = " + std::to_string(elements) +
         " } }\nconsumer = { step = \"0\" }\nstage = [\n  { name = \"a\", operators = [{ sleep = "
         "\"50us\", cv = 1.0 }], parallelism = " +
         std::to_string(p1) + ", queue = " + std::to_string(queue) +
         " },\n  { name = \"b\", operators = [{ sleep = \"50us\", cv = 1.0 }, { spin = \"10us\" "
         "}], parallelism = " +
         std::to_string(p2) + ", queue = " + std::to_string(queue) + " },\n]\n";
}

RowChecksums RunText(const std::string& text) {
  RowChecksums sums;
  Pipeline pipeline(ParsePipeline(text, "t.toml", "/"),
                    std::make_unique<Trainer>(ConsumerSpec(), &sums));
  pipeline.Run();
  return sums;
}

TEST(Pipeline, ResultsDoNotDependOnParallelism) {
  constexpr uint64_t kElements = 400;
  const RowChecksums expected = RunText(Text("file", 1, 1, 4, kElements));
  EXPECT_EQ(expected.rows, kElements);
  for (int p1 : {1, 2, 5}) {
    for (int p2 : {1, 3}) {
      for (int queue : {1, 7}) {
        SCOPED_TRACE(testing::Message() << p1 << " x " << p2 << ", queue " << queue);
        const RowChecksums any = RunText(Text("any", p1, p2, queue, kElements));
        EXPECT_EQ(any.rows, expected.rows);
        EXPECT_EQ(any.multiset, expected.multiset);
        const RowChecksums file = RunText(Text("file", p1, p2, queue, kElements));
        EXPECT_EQ(file.rows, expected.rows);
        EXPECT_EQ(file.ordered, expected.ordered) << "order = \"file\" changed the order";
      }
    }
  }
}

TEST(Pipeline, ResizingWhileRunningLosesAndRepeatsNothing) {
  constexpr uint64_t kElements = 3000;
  const RowChecksums expected = RunText(Text("file", 1, 1, 64, kElements));
  for (const char* order : {"any", "file"}) {
    RowChecksums sums;
    Pipeline pipeline(ParsePipeline(Text(order, 2, 2, 4, kElements), "t.toml", "/"),
                      std::make_unique<Trainer>(ConsumerSpec(), &sums));
    std::atomic<bool> done{false};
    std::thread resizer([&] {
      for (uint32_t i = 0; !done; ++i) {
        pipeline.SetParallelism(i % 2 == 0 ? "a" : "b", 1 + i * 7 % 6);
        pipeline.SetQueueCapacity(i % 3 == 0 ? "a" : "b", 1 + i * 5 % 9);
        SleepUntilNs(MonotonicNs() + 1'000'000);
      }
    });
    pipeline.Run();
    done = true;
    resizer.join();
    EXPECT_EQ(sums.rows, expected.rows);
    EXPECT_EQ(sums.multiset, expected.multiset);
    if (std::string(order) == "file") {
      EXPECT_EQ(sums.ordered, expected.ordered);
    }
  }
}

// Without input the consumer gets the first batch again and again, and the stages fill their queues
// and stand still.
TEST(Pipeline, RepeatsTheFirstBatchForTheCeiling) {
  const std::string text =
      "source = { synthetic = { rows = 8 }, epochs = 0 }\nstage = [\n"
      "  { name = \"a\", operators = [{ spin = \"1us\" }], queue = 3 },\n]\n";
  static constexpr size_t kSteps = 50;
  class Marking final : public Consumer {
   public:
    std::function<void()> on_last;
    std::vector<uint64_t> seeds;

    void Step(Element&& batch, StopSignal* /*stop*/) override {
      EXPECT_EQ(batch.rows, 8u);
      // Synthetic elements come without a payload: what is there the next time is what was put
      // there.
      if (seeds.empty()) {
        EXPECT_TRUE(batch.payload.empty());
        batch.payload = TensorBatch();
        mark_ = batch.payload.Get<TensorBatch>();
      } else {
        EXPECT_EQ(batch.payload.Get<TensorBatch>(), mark_);
        // Another draw for each, as of a pipeline that goes on.
        EXPECT_NE(batch.seed, seeds.back());
      }
      seeds.push_back(batch.seed);
      if (seeds.size() == kSteps) on_last();
    }

   private:
    const TensorBatch* mark_ = nullptr;
  };
  PipelineSpec spec = ParsePipeline(text, "t.toml", "/");
  spec.repeat_first_batch = true;
  auto made = std::make_unique<Marking>();
  Marking& consumer = *made;
  Pipeline pipeline(spec, std::move(made));
  consumer.on_last = [&] { pipeline.RequestStop(); };
  pipeline.Run();
  EXPECT_EQ(consumer.seeds.size(), kSteps);
  EXPECT_EQ(pipeline.progress().batches, kSteps);
  EXPECT_EQ(pipeline.progress().rows, 8 * kSteps);
}

TEST(Pipeline, StopsWithoutWaitingForWhateverSleeps) {
  const std::string text =
      "source = { synthetic = {}, epochs = 0 }\nstage = [\n"
      "  { name = \"a\", operators = [{ sleep = \"1h\" }] },\n  { name = \"b\", operators = [{ "
      "read = \"1GiB\", rate = \"1kB/s\" }] },\n]\n";
  Pipeline pipeline(ParsePipeline(text, "t.toml", "/"),
                    std::make_unique<Trainer>(ConsumerSpec(), nullptr));
  int64_t asked = 0;
  std::thread stopper([&] {
    SleepUntilNs(MonotonicNs() + 100'000'000);
    asked = MonotonicNs();
    pipeline.RequestStop();
  });
  pipeline.Run();
  stopper.join();
  // Milliseconds on a quiet machine; both sleeps are far longer than any machine is busy.
  EXPECT_LT(MonotonicNs() - asked, 300'000'000'000);
}

TEST(Pipeline, TheFirstErrorStopsEverythingAndNamesTheStage) {
  class Failing final : public Consumer {
    void Step(Element&&, StopSignal*) override {
      if (++steps_ == 3) throw Error(ExitCode::kBadData, "bad batch");
    }
    int steps_ = 0;
  };
  Pipeline pipeline(ParsePipeline(Text("any", 2, 2, 4, 100000), "t.toml", "/"),
                    std::make_unique<Failing>());
  try {
    pipeline.Run();
    FAIL() << "the error was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("consumer"), std::string::npos) << error.what();
  }
}

TEST(Pipeline, ALockLetsOneThreadPassAtATime) {
  const std::string text =
      "source = { synthetic = { elements = 40 } }\nconsumer = { step = \"0\" }\n"
      "stage = [{ name = \"a\", operators = [{ lock = \"2ms\", hold = \"sleep\" }], parallelism = "
      "4 }]\n";
  const int64_t start = MonotonicNs();
  RunText(text);
  EXPECT_GE(MonotonicNs() - start, 40 * 2'000'000);
}

TEST(Pipeline, ADeviceKeepsItsRateWhateverTheParallelism) {
  const std::string text =
      "source = { synthetic = { elements = 50 } }\nconsumer = { step = \"0\" }\n"
      "stage = [{ name = \"a\", operators = [{ read = \"100kB\", rate = \"25MB/s\" }], parallelism "
      "= 4 }]\n";
  const int64_t start = MonotonicNs();
  RunText(text);
  // 5 MB at 25 MB/s are 200 ms; a debt of at most 5 ms may be caught up.
  EXPECT_GE(MonotonicNs() - start, 194'000'000);
}

TEST(Pipeline, ThreadsThatTheSystemDoesNotGiveAreNotWaitedFor) {
  RowChecksums sums;
  Pipeline pipeline(ParsePipeline(Text("any", 1, 1, 4, 2000), "t.toml", "/"),
                    std::make_unique<Trainer>(ConsumerSpec(), &sums));
  std::thread runs([&] { pipeline.Run(); });
  while (pipeline.progress().batches == 0) SleepUntilNs(MonotonicNs() + 1'000'000);
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 46), 0);  // no address space for it
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  try {
    pipeline.SetParallelism("a", 8);
    ADD_FAILURE() << "threads were made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources);
    EXPECT_NE(std::string(error.what()).find("the system gives no thread more"), std::string::npos)
        << error.what();
  }
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  EXPECT_EQ(pipeline.parallelism("a"), 1u);
  runs.join();
  EXPECT_EQ(sums.rows, 2000u);
}

TEST(Pipeline, BadSettingsAreRefused) {
  Pipeline pipeline(
      ParsePipeline("source = { synthetic = { elements = 1 } }\nstage = [{ name = \"a\", operators "
                    "= [{ spin = \"1us\" }], max_parallelism = 2 }]\n",
                    "t.toml", "/"),
      std::make_unique<Trainer>(ConsumerSpec(), nullptr));
  EXPECT_THROW(pipeline.SetParallelism("b", 1), Error);
  EXPECT_THROW(pipeline.SetParallelism("a", 0), Error);
  EXPECT_THROW(pipeline.SetParallelism("a", 3), Error);
  EXPECT_THROW(pipeline.SetQueueCapacity("a", 0), Error);
  pipeline.SetParallelism("a", 2);
  EXPECT_EQ(pipeline.parallelism("a"), 2u);
  pipeline.Run();
}

TEST(Cost, DrawsHaveTheirMeanAndVariation) {
  for (const auto& [distribution, cv] : {std::pair{Distribution::kUniform, 0.4},
                                         {Distribution::kExponential, 1.0},
                                         {Distribution::kLognormal, 0.5}}) {
    const Cost cost{1000, distribution, cv};
    double sum = 0, squares = 0;
    constexpr int kDraws = 200000;
    for (int i = 0; i < kDraws; ++i) {
      const double x = cost.Draw(static_cast<uint64_t>(i), 7);
      ASSERT_GE(x, 0);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kDraws, deviation = std::sqrt(squares / kDraws - mean * mean);
    EXPECT_NEAR(mean, 1000, 10);
    EXPECT_NEAR(deviation / mean, cv, 0.02);
  }
}

}  // namespace
}  // namespace headrace::reader
