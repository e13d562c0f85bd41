// Batches through the pipeline: sizes and rows are exact, and with file order the order of rows is
// one and the same, whatever the threads, the cuts, the window and the interruptions.
#include "reader/batch/rebatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "reader/batch/tensorize.h"
#include "reader/pipeline/delivery/checkpoint.h"
#include "reader/pipeline/pipeline.h"
#include "reader/pipeline/queue.h"
#include "tests/seed.h"
#include "workloads/generator.h"
#include "workloads/trainer.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;
using workloads::RowChecksums;
using workloads::Trainer;

constexpr uint64_t kRows = 1500, kStripeRows = 200;

struct Shape {
  std::string order = "file";
  int parallelism = 1;
  uint64_t worker_rows = 0, batch_rows = 128, shuffle_rows = 0, reorder_window = 0, prefetch = 0;
  double sampling = 0.6;
  uint64_t epochs = 1, seed = 5;
};

// What the consumer got: row numbers in order, sizes of batches, sums over the rows' contents.
struct Got {
  std::vector<uint64_t> rows, sizes;
  RowChecksums sums;
};

class Batches : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (fs::temp_directory_path() / "rebatch_test.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    workloads::WorkloadSpec spec = workloads::ForModel("rm1", 0.02, kRows, 7);
    spec.stripe_rows = kStripeRows;
    const auto table = workloads::GenerateTable(spec, folder_ / "table");
    for (const workloads::Feature& feature : table.features) {
      auto& keys = keys_[static_cast<int>(feature.kind)];
      if (keys.size() < 3) keys.push_back(feature.key);
    }
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::string Text(const Shape& shape) {
    const auto list = [](FeatureKind kind) {
      std::string text;
      for (const int64_t key : keys_[static_cast<int>(kind)]) text += std::to_string(key) + ",";
      return text;
    };
    const bool serial = shape.order == "file";
    const auto stage = [&](const char* name, const std::string& operators, int parallelism) {
      return std::string("[[stage]]\nname = \"") + name + "\"\noperators = [" + operators +
             "]\nqueue = 3\nparallelism = " + std::to_string(parallelism) + "\n";
    };
    std::string text = "[pipeline]\norder = \"" + shape.order + "\"\n";
    for (const auto& [key, value] :
         std::map<std::string, uint64_t>{{"batch_rows", shape.batch_rows},
                                         {"worker_rows", shape.worker_rows},
                                         {"shuffle_rows", shape.shuffle_rows},
                                         {"reorder_window", shape.reorder_window},
                                         {"prefetch", shape.prefetch},
                                         {"seed", shape.seed}})
      text += key + " = " + std::to_string(value) + "\n";
    text += "[source]\ntable = \".\"\nepochs = " + std::to_string(shape.epochs) +
            "\n[projection]\nlabel = \"label\"\n[projection.maps]\ndense = [" +
            list(FeatureKind::kDense) + "]\nsparse = [" + list(FeatureKind::kSparse) +
            "]\nweighted = [" + list(FeatureKind::kWeightedSparse) + "]\n";
    text += stage("read", "\"fetch\"", shape.parallelism) +
            stage("decode", "\"decompress\", \"decode\", \"extract\"", shape.parallelism) +
            stage("transform", "\"transform\"", shape.parallelism) +
            stage("join", std::string(shape.shuffle_rows > 0 ? "\"shuffle\", " : "") + "\"batch\"",
                  serial ? 1 : shape.parallelism) +
            stage("tensorize", "\"tensorize\"", shape.parallelism);
    if (shape.worker_rows > 0) text += stage("client", "\"rebatch\"", 1);
    text += "[[transform]]\nop = \"sampling\"\nrate = " + std::to_string(shape.sampling) + "\n";
    return text;
  }

  class Collector final : public Consumer {
   public:
    Collector(Got* got, int fail_at) : got_(got), fail_at_(fail_at), trainer_({}, &got->sums) {}
    void Step(Element&& batch, StopSignal* stop) override {
      if (fail_at_-- == 0) throw Error(ExitCode::kFailure, "the accelerator is gone");
      const auto& tensors = batch.payload.As<TensorBatch>();
      Validate(tensors);
      got_->rows.insert(got_->rows.end(), tensors.row_ids.begin(), tensors.row_ids.end());
      got_->sizes.push_back(tensors.rows);
      trainer_.Step(std::move(batch), stop);
    }
    std::string SaveState() override {
      std::string state(got_->rows.size() * 8, '\0');
      if (!state.empty()) std::memcpy(state.data(), got_->rows.data(), state.size());
      return trainer_.SaveState() + "|" + state;
    }
    void LoadState(const std::string& state) override {
      const size_t bar = state.find('|');
      trainer_.LoadState(state.substr(0, bar));
      got_->rows.resize((state.size() - bar - 1) / 8);
      std::memcpy(got_->rows.data(), state.data() + bar + 1, state.size() - bar - 1);
    }

   private:
    static void Validate(const TensorBatch& tensors) {
      reader::Validate(tensors.sparse);
      reader::Validate(tensors.weighted_sparse);
      ASSERT_EQ(tensors.row_ids.size(), tensors.rows);
      ASSERT_EQ(tensors.labels.size(), tensors.rows);
      ASSERT_EQ(tensors.dense.size(), tensors.rows * tensors.dense_names.size());
      uint64_t rows = 0;
      for (const RowSpan& span : tensors.spans) rows += span.rows;
      ASSERT_EQ(rows, tensors.rows);
    }
    Got* got_;
    int fail_at_;
    Trainer trainer_;
  };

  static Got Run(const Shape& shape, const CheckpointOptions& checkpoint = {}, int fail_at = -1) {
    Got got;
    Pipeline pipeline(ParsePipeline(Text(shape), "p.toml", folder_ / "table"),
                      std::make_unique<Collector>(&got, fail_at), {}, checkpoint);
    pipeline.Run();
    return got;
  }

  static inline fs::path folder_;
  static inline std::map<int, std::vector<int64_t>> keys_;
};

TEST_F(Batches, SizesAreExactAndOrderIsOne) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  Shape plain;
  plain.epochs = 2;
  const Got expected = Run(plain);
  EXPECT_EQ(expected.rows.size(), expected.sums.rows);
  for (int parallelism = 1; parallelism <= 4; ++parallelism) {
    Shape shape = plain;
    shape.parallelism = parallelism;
    shape.batch_rows = 1 + random() % 600;
    shape.worker_rows = 1 + random() % shape.batch_rows;
    shape.reorder_window = random() % 4;
    shape.prefetch = random() % 5;
    SCOPED_TRACE(testing::Message() << "parallelism " << parallelism << ", rows "
                                    << shape.worker_rows << " to " << shape.batch_rows);
    const Got got = Run(shape);
    EXPECT_EQ(got.rows, expected.rows);
    EXPECT_EQ(got.sums.ordered, expected.sums.ordered);
    for (size_t i = 0; i + 1 < got.sizes.size(); ++i) ASSERT_EQ(got.sizes[i], shape.batch_rows);
    EXPECT_EQ(got.sizes.back(), (got.rows.size() - 1) % shape.batch_rows + 1);
    shape.order = "any";
    shape.reorder_window = 0;
    const Got any = Run(shape);
    EXPECT_EQ(any.sums.rows, expected.sums.rows);
    EXPECT_EQ(any.sums.multiset, expected.sums.multiset);
    for (size_t i = 0; i + 1 < any.sizes.size(); ++i) ASSERT_EQ(any.sizes[i], shape.batch_rows);
  }
}

TEST_F(Batches, ShufflingKeepsRowsInTheirWindow) {
  Shape shape;
  shape.epochs = 2;
  const Got plain = Run(shape);
  shape.shuffle_rows = 333;  // windows and stripes cross
  const Got once = Run(shape);
  EXPECT_EQ(once.sums.multiset, plain.sums.multiset);
  EXPECT_NE(once.rows, plain.rows);
  ASSERT_EQ(once.rows.size(), plain.rows.size());
  for (size_t i = 0; i < once.rows.size(); ++i)
    ASSERT_EQ(once.rows[i] / shape.shuffle_rows, plain.rows[i] / shape.shuffle_rows) << i;
  const size_t half = once.rows.size() / 2;
  EXPECT_FALSE(std::equal(once.rows.begin(), once.rows.begin() + static_cast<ptrdiff_t>(half),
                          once.rows.begin() + static_cast<ptrdiff_t>(half)))
      << "both epochs have one order";
  for (int parallelism = 2; parallelism <= 4; ++parallelism) {
    shape.parallelism = parallelism;
    shape.worker_rows = 50;
    EXPECT_EQ(Run(shape).sums.ordered, once.sums.ordered);
  }
  shape.seed = 6;
  EXPECT_NE(Run(shape).rows, once.rows);
  shape.seed = 5;
  shape.order = "any";
  EXPECT_EQ(Run(shape).sums.multiset, plain.sums.multiset);
}

TEST_F(Batches, RowsThatAreAllDroppedAreSettledToo) {
  for (const double sampling : {0.0, 0.002}) {
    for (const char* order : {"any", "file"}) {
      for (const uint64_t worker_rows : {0, 40}) {
        Shape shape;
        shape.order = order;
        shape.sampling = sampling;
        shape.worker_rows = worker_rows;
        shape.shuffle_rows = worker_rows * 7;
        const CheckpointOptions checkpoint{(folder_ / "dropped").string(), 1, true};
        const Got got = Run(shape, checkpoint);
        EXPECT_LT(got.rows.size(), 20u);
        const Checkpoint saved = ReadCheckpoint(checkpoint.path);
        EXPECT_EQ(saved.delivered.first_epoch, 1u) << sampling << " " << order;
        EXPECT_TRUE(saved.delivered.epochs.empty());
        fs::remove(checkpoint.path);
      }
    }
  }
}

// A consumer that fails again and again; each run goes on from the checkpoint. In file order the
// rows come exactly as in a run that never failed, shuffled ones too.
TEST_F(Batches, ResumedRunsDeliverWhatIsMissing) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (const char* order : {"file", "any"}) {
    for (const uint64_t shuffle_rows : {0, 270}) {
      Shape shape;
      shape.order = order;
      shape.epochs = 2;
      shape.shuffle_rows = shuffle_rows;
      Got expected = Run(shape);
      const CheckpointOptions checkpoint{(folder_ / "resumed").string(), 1 + random() % 3, true};
      Got got;
      int failures = 0;
      for (;; ++failures) {
        ASSERT_LT(failures, 60);
        // The way rows are put together, and the number of threads, may change between the runs.
        shape.batch_rows = 30 + random() % 100;
        shape.worker_rows = random() % 2 == 0 ? 0 : 1 + random() % shape.batch_rows;
        shape.parallelism = 1 + static_cast<int>(random() % 3);
        try {
          got = Run(shape, checkpoint, 4 + static_cast<int>(random() % 4));
          break;
        } catch (const Error& error) {
          ASSERT_NE(std::string(error.what()).find("the accelerator is gone"), std::string::npos)
              << error.what();
        }
      }
      EXPECT_GT(failures, 0);
      if (std::string(order) == "any") {
        std::sort(got.rows.begin(), got.rows.end());
        std::sort(expected.rows.begin(), expected.rows.end());
      } else {
        EXPECT_EQ(got.sums.ordered, expected.sums.ordered);
      }
      EXPECT_EQ(got.rows, expected.rows);
      EXPECT_EQ(got.sums.rows, expected.sums.rows);
      EXPECT_EQ(got.sums.multiset, expected.sums.multiset);
      EXPECT_TRUE(Run(shape, checkpoint).sizes.empty()) << "a finished run has nothing to deliver";
      fs::remove(checkpoint.path);
    }
  }
}

TEST_F(Batches, AnotherRunsCheckpointIsRefused) {
  const Shape shape;
  CheckpointOptions checkpoint{(folder_ / "other").string(), 4, false};
  Run(shape, checkpoint);
  const auto refusal = [&](const Shape& other, bool resume) {
    checkpoint.resume = resume;
    try {
      Run(other, checkpoint);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal(shape, false).find("add --resume"), std::string::npos);
  Shape other = shape;
  other.seed = 6;
  EXPECT_NE(refusal(other, true).find("another seed"), std::string::npos);
  other = shape;
  other.sampling = 0.5;
  EXPECT_NE(refusal(other, true).find("another list of transforms"), std::string::npos);
  other = shape;
  other.batch_rows = 7;
  EXPECT_EQ(refusal(other, true), "accepted");
  Checkpoint of_rank = ReadCheckpoint(checkpoint.path);
  of_rank.delivered.closed = {1, 7};
  WriteCheckpoint(checkpoint.path, of_rank);
  EXPECT_NE(refusal(shape, true).find("of one of several ranks"), std::string::npos);
}

TEST(Checkpoint, DamageIsRefused) {
  Checkpoint checkpoint;
  checkpoint.fingerprint = {1, 2, 3, 4};
  checkpoint.splits = 70;
  checkpoint.batches = 9;
  checkpoint.rows = 900;
  checkpoint.consumer_state = std::string("sums\0and more", 13);
  checkpoint.delivered.first_epoch = 2;
  checkpoint.delivered.epochs[2] = {{5, 1}, {{100, 20}, {130, 1}, {6900, 4}}};
  checkpoint.delivered.epochs[4] = {{0, 0}, {}};
  const std::string text = SerializeCheckpoint(checkpoint);
  const Checkpoint read = ParseCheckpoint(text, "a.ckpt");
  EXPECT_EQ(read.fingerprint, checkpoint.fingerprint);
  EXPECT_EQ(read.delivered, checkpoint.delivered);
  EXPECT_EQ(read.consumer_state, checkpoint.consumer_state);
  EXPECT_EQ(read.batches, 9u);
  EXPECT_EQ(read.rows, 900u);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_THROW(ParseCheckpoint(text.substr(0, length), "a.ckpt"), Error) << length;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THROW(ParseCheckpoint(damaged, "a.ckpt"), Error) << at;
  }
  EXPECT_THROW(ParseCheckpoint(text + "x", "a.ckpt"), Error);
}

TensorBatch BatchOfRows(uint64_t first, uint64_t rows) {
  TensorBatch batch;
  batch.rows = rows;
  batch.first_row = first;
  batch.dense_names = {"first"};
  for (uint64_t row = 0; row < rows; ++row) {
    batch.row_ids.push_back(first + row);
    batch.dense.push_back(static_cast<float>(first + row));
  }
  batch.sparse.rows = batch.weighted_sparse.rows = rows;
  batch.sparse.offsets = {0};
  batch.weighted_sparse.offsets = {0};
  batch.spans = {{0, 0, first, rows, rows}};
  return batch;
}

// Where any order will do, only pieces are joined: a batch of the right size is not copied.
TEST(Rebatcher, WholeBatchesPassByPiecesInAnyOrder) {
  for (const bool keeps_order : {true, false}) {
    Rebatcher rebatcher(4, keeps_order);
    std::vector<uint64_t> sizes, rows;
    std::vector<const float*> places;
    const auto take = [&](TensorBatch&& batch) {
      sizes.push_back(batch.rows);
      places.push_back(batch.dense.data());
      uint64_t settled = 0;
      for (const RowSpan& span : batch.spans) settled += span.rows;
      EXPECT_EQ(settled, batch.rows);
      for (uint64_t row = 0; row < batch.rows; ++row) {
        rows.push_back(batch.RowId(row));
        EXPECT_EQ(batch.dense[row], static_cast<float>(batch.RowId(row)));
      }
    };
    const float* second = nullptr;
    uint64_t first = 0;
    for (const uint64_t size : {4, 3, 4, 3, 4}) {
      TensorBatch batch = BatchOfRows(first, size);
      first += size;
      if (first == 11) second = batch.dense.data();
      rebatcher.Add(std::move(batch), take);
    }
    rebatcher.Finish(take);
    EXPECT_EQ(sizes, (std::vector<uint64_t>{4, 4, 4, 4, 2}));
    EXPECT_EQ(std::find(places.begin(), places.end(), second) != places.end(), !keeps_order);
    EXPECT_EQ(std::is_sorted(rows.begin(), rows.end()), keeps_order);
    std::sort(rows.begin(), rows.end());
    for (uint64_t row = 0; row < 18; ++row) EXPECT_EQ(rows.at(row), row);
  }
}

// What it keeps of a lent batch stays as it was, and the producer has its memory back.
TEST(Rebatcher, KeepsNothingThatIsLent) {
  Rebatcher rebatcher(4);
  auto memory = std::make_shared<Array<float>>(Array<float>{0, 1, 2});
  TensorBatch batch = BatchOfRows(0, 3);
  batch.dense = Array<float>::Borrow({memory->data(), memory->size()}, memory);
  batch.is_lent = true;
  std::weak_ptr<Array<float>> watch = memory;
  memory.reset();
  const auto take = [](TensorBatch&& joined) {
    EXPECT_FALSE(joined.is_lent);
    for (uint64_t row = 0; row < joined.rows; ++row)
      EXPECT_EQ(joined.dense[row], static_cast<float>(row));
  };
  rebatcher.Add(std::move(batch), take);
  EXPECT_TRUE(watch.expired());
  rebatcher.Add(BatchOfRows(3, 1), take);
}

TEST(Queue, AReorderWindowBoundsWhatWaits) {
  struct Item {
    uint64_t sequence = 0;
  };
  Queue<Item> queue(100, true, UINT32_MAX, 3);
  ASSERT_TRUE(queue.Put({1}, UINT32_MAX));
  ASSERT_TRUE(queue.Put({2}, UINT32_MAX));
  std::atomic<bool> entered{false};
  std::thread early([&] {
    queue.Put({3}, UINT32_MAX);  // three places behind the due one: waits until 0 has left
    entered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(entered);
  EXPECT_EQ(queue.size(), 2u);
  ASSERT_TRUE(queue.Put({0}, UINT32_MAX));
  for (uint64_t expected = 0; expected < 4; ++expected) {
    Item item;
    ASSERT_EQ(queue.Get(&item, UINT32_MAX, queue.Ticket()), QueueStatus::kOk);
    EXPECT_EQ(item.sequence, expected);
  }
  early.join();
}

TEST(Queue, WhoTakesMayWakeOthersLater) {
  struct Item {
    uint64_t sequence = 0;
  };
  Queue<Item> queue(1, false, UINT32_MAX);
  ASSERT_TRUE(queue.Put({0}, UINT32_MAX));
  std::thread waiting([&] { EXPECT_TRUE(queue.Put({1}, UINT32_MAX)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Item item;
  Queue<Item>::Wakeup wakeup;
  ASSERT_EQ(queue.Get(&item, UINT32_MAX, queue.Ticket(), &wakeup), QueueStatus::kOk);
  EXPECT_TRUE(wakeup.room);
  EXPECT_FALSE(wakeup.more) << "without an order, who puts wakes";
  queue.Notify(wakeup);
  waiting.join();
  EXPECT_EQ(queue.size(), 1u);
}

}  // namespace
}  // namespace headrace::reader
