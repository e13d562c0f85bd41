// Array against std::vector: the same calls at random, owned and borrowed.
#include "reader/batch/array.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "tests/seed.h"

namespace headrace::reader {
namespace {

// One random call on both; resize without a value is followed by setting the new elements.
template <typename T>
void Step(std::mt19937_64* random, Array<T>* array, std::vector<T>* vector) {
  const auto below = [&](uint64_t n) { return n == 0 ? 0 : (*random)() % n; };
  const auto value = static_cast<T>(below(1000));
  const size_t size = vector->size();
  switch (below(11)) {
    case 0: {
      const size_t wanted = below(8) == 0 ? below(20000) : below(200);
      array->resize(wanted);
      vector->resize(wanted);
      for (size_t i = size; i < wanted; ++i) (*array)[i] = (*vector)[i] = static_cast<T>(i);
      return;
    }
    case 1: {
      const size_t wanted = below(300);
      array->resize(wanted, value);
      vector->resize(wanted, value);
      return;
    }
    case 2:
      array->push_back(value);
      vector->push_back(value);
      return;
    case 3: {
      const size_t place = below(size + 1);
      std::vector<T> more(below(100));
      std::iota(more.begin(), more.end(), value);
      array->insert(array->begin() + place, more.begin(), more.end());
      vector->insert(vector->begin() + static_cast<ptrdiff_t>(place), more.begin(), more.end());
      return;
    }
    case 4: {
      const size_t first = below(size + 1), last = first + below(size - first + 1);
      array->erase(array->begin() + first, array->begin() + last);
      vector->erase(vector->begin() + static_cast<ptrdiff_t>(first),
                    vector->begin() + static_cast<ptrdiff_t>(last));
      return;
    }
    case 5: {
      const size_t count = below(150);
      array->assign(count, value);
      vector->assign(count, value);
      return;
    }
    case 6:
      if (below(4) != 0) return;
      array->clear();
      vector->clear();
      return;
    case 7:
      array->reserve(below(400));
      return;
    case 8: {
      Array<T> copy = array->Clone();
      ASSERT_EQ(copy, *vector);
      ASSERT_FALSE(copy.borrowed());
      if (below(2) == 0) *array = std::move(copy);
      return;
    }
    case 9: {
      Array<T> moved = std::move(*array);
      ASSERT_TRUE(array->empty());
      *array = std::move(moved);
      return;
    }
    default:
      if (size == 0) return;
      (*array)[below(size)] = (*vector)[0] = value;
      *array = Array<T>(*vector);
  }
}

template <typename T>
void EqualsVector(uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    auto slab = std::make_shared<std::vector<T>>(64 + random() % 64, T{7});
    const std::vector<T> before = *slab;
    const size_t first = random() % 32, count = random() % 32;
    Array<T> array;
    std::vector<T> vector;
    if (round % 2 == 0) {
      array = Array<T>::Borrow({slab->data() + first, count}, slab);
      vector.assign(count, T{7});
      ASSERT_TRUE(array.borrowed());
      ASSERT_EQ(slab.use_count(), 2);
    }
    for (int step = 0; step < 60; ++step) {
      Step(&random, &array, &vector);
      ASSERT_EQ(array.size(), vector.size());
      ASSERT_EQ(array, vector) << "round " << round << ", step " << step;
      ASSERT_EQ(array.empty(), vector.empty());
      if (vector.empty()) continue;
      ASSERT_EQ(array.front(), vector.front());
      ASSERT_EQ(array.back(), vector.back());
    }
    // Whatever was done, the slab's other elements are as before.
    for (size_t i = 0; i < before.size(); ++i) {
      if (i < first || i >= first + count) {
        ASSERT_EQ((*slab)[i], before[i]);
      }
    }
    array = {};
    ASSERT_EQ(slab.use_count(), 1) << "the slab is let go";
  }
}

TEST(Array, DoesWhatAVectorDoes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(testing::Message() << "HEADRACE_SEED=" << seed);
  EqualsVector<int64_t>(seed);
  EqualsVector<float>(seed + 1);
  EqualsVector<uint8_t>(seed + 2);
}

TEST(Array, BorrowedIsWrittenInPlaceAndCopiedWhenItGrows) {
  auto slab = std::make_shared<std::vector<int64_t>>(std::vector<int64_t>{1, 2, 3, 4});
  auto array = Array<int64_t>::Borrow({slab->data() + 1, 2}, slab);
  array[0] = 20;
  EXPECT_EQ((*slab)[1], 20);
  EXPECT_EQ(array.owner(), slab.get());
  array.push_back(30);
  EXPECT_FALSE(array.borrowed());
  EXPECT_EQ(array, (std::vector<int64_t>{20, 3, 30}));
  EXPECT_EQ(*slab, (std::vector<int64_t>{1, 20, 3, 4})) << "what stands behind it is not touched";
}

TEST(Array, LargeMemoryIsUsedAgain) {
  const size_t live = BlockPool::Get().live_bytes();
  const int64_t* first;
  {
    Array<int64_t> array(100'000);
    first = array.data();
    EXPECT_GE(BlockPool::Get().live_bytes(), live + array.size() * sizeof(int64_t));
  }
  EXPECT_EQ(BlockPool::Get().live_bytes(), live);
  const Array<int64_t> again(99'000);
  EXPECT_EQ(again.data(), first);
}

}  // namespace
}  // namespace headrace::reader
