#include "reader/batch/id_dictionary.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace headrace::reader {
namespace {

std::shared_ptr<const IdDictionary> Of(std::vector<int64_t> entries, uint64_t uses = 5) {
  return std::make_shared<const IdDictionary>(Array<int64_t>(entries), uses);
}

TEST(IdDictionary, TheWorkedExample) {
  FlatMapBatch batch;
  batch.rows = 3;
  SparseColumn& column = batch.sparse.emplace_back();
  column.values = {0, 1, 1, 0, 0};
  column.dictionary = Of({7, 9});
  bool computed = false;
  column.dictionary = column.dictionary->Changed(
      1,
      [](std::span<int64_t> ids) {
        for (int64_t& id : ids) id *= 10;
      },
      &computed);
  EXPECT_TRUE(computed);
  FlatMapBatch copy = batch.Clone();
  for (FlatMapBatch* one : {&batch, &copy}) {
    EXPECT_EQ(one->sparse[0].values, (std::vector<int64_t>{0, 1, 1, 0, 0}));
    LookUpIds(one);
    EXPECT_EQ(one->sparse[0].values, (std::vector<int64_t>{70, 90, 90, 70, 70}));
    EXPECT_EQ(one->sparse[0].dictionary, nullptr);
    LookUpIds(one);  // they are ids now
    EXPECT_EQ(one->sparse[0].values, (std::vector<int64_t>{70, 90, 90, 70, 70}));
  }
}

TEST(IdDictionary, AChangeIsMadeOnceForAllThreads) {
  const auto dictionary = Of({1, 2, 3});
  std::atomic<int> made{0}, said{0};
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<const IdDictionary>> results(8);
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      auto now = dictionary;
      for (uint64_t key = 1; key <= 3; ++key) {
        bool computed = false;
        now = now->Changed(
            key,
            [&](std::span<int64_t> ids) {
              ++made;
              for (int64_t& id : ids) id = 2 * id + static_cast<int64_t>(key);
            },
            &computed);
        said += computed;
      }
      results[t] = now;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 3);
  EXPECT_EQ(said, 3);
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_EQ(results[0]->entries()[2], 2 * (2 * (2 * 3 + 1) + 2) + 3);
  EXPECT_EQ(dictionary->entries()[2], 3);
}

TEST(IdDictionary, OtherChangesAreOthers) {
  const auto dictionary = Of({1});
  bool computed = false;
  const auto a = dictionary->Changed(
      1, [](std::span<int64_t> ids) { ids[0] = 10; }, &computed);
  const auto b = dictionary->Changed(
      2, [](std::span<int64_t> ids) { ids[0] = 20; }, &computed);
  EXPECT_TRUE(computed);
  EXPECT_EQ(a->entries()[0], 10);
  EXPECT_EQ(b->entries()[0], 20);
}

TEST(IdDictionary, PaysWithFewerEntriesThanValues) {
  EXPECT_TRUE(Of({1, 2}, 3)->Pays(1, 1));
  EXPECT_FALSE(Of({1, 2}, 2)->Pays(1, 1));
  EXPECT_FALSE(Of({1, 2}, 3)->Pays(1, 2));  // half the values were cut
  EXPECT_TRUE(Of({1, 2}, IdDictionary::kAlways)->Pays(0, 9));
}

}  // namespace
}  // namespace headrace::reader
