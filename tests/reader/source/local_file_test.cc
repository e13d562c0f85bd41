// Every way of reading a local file gives the same bytes and the same refusals.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "reader/source/open.h"
#include "reader/source/pinned_buffers.h"

namespace headrace::reader {
namespace {

struct Way {
  const char* name;
  SourceOptions options;
};
const Way kWays[] = {
    {"pread", {}},
    {"pread, direct", {.direct = true}},
    {"uring", {.io = IoMethod::kUring, .registered = false}},
    {"uring, one at a time", {.io = IoMethod::kUring, .depth = 1, .registered = false}},
    {"uring, registered", {.io = IoMethod::kUring, .depth = 4}},
    {"uring, direct", {.io = IoMethod::kUring, .direct = true, .registered = false}},
    {"uring, direct, registered", {.io = IoMethod::kUring, .direct = true, .depth = 64}},
};

class LocalFileTest : public testing::Test {
 protected:
  LocalFileTest()
      : path_(std::string(HEADRACE_BINARY_DIR) + "/local_file_test." + std::to_string(getpid())) {}
  ~LocalFileTest() override { std::filesystem::remove(path_); }

  void Write(size_t size) {
    std::mt19937_64 random(size);
    bytes_.resize(size);
    for (char& byte : bytes_) byte = static_cast<char>(random());
    std::ofstream(path_, std::ios::binary) << bytes_;
  }

  // Null where this machine has no such way: the reason is printed.
  std::shared_ptr<const Source> Open(const Way& way) const {
    try {
      return OpenSource(path_, way.options);
    } catch (const Error& error) {
      std::printf("%s: not tested: %s\n", way.name, error.what());
      EXPECT_TRUE(error.code() == ExitCode::kPrivilege || error.code() == ExitCode::kUsage);
      return nullptr;
    }
  }

  std::string path_, bytes_;
};

// Random requests as Fetch makes them: aligned, into one buffer of the source's choice.
void ReadRandomly(const Source& source, const std::string& bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint64_t alignment = source.alignment();
  std::vector<ReadRequest> requests;
  std::vector<uint64_t> places;
  uint64_t room = 0, total = 0;
  for (size_t n = random() % 100; requests.size() < n;) {
    const uint64_t offset = random() % bytes.size() / alignment * alignment;
    uint64_t end = offset + 1 + random() % (random() % 4 == 0 ? 300000 : 5000);
    end = std::min<uint64_t>((end + alignment - 1) / alignment * alignment, bytes.size());
    requests.push_back({offset, {static_cast<uint8_t*>(nullptr), end - offset}});
    places.push_back(room);
    room += (end - offset + alignment - 1) / alignment * alignment;
    total += end - offset;
  }
  BufferPool ordinary;
  BufferPool* const pool = source.buffers() != nullptr ? source.buffers() : &ordinary;
  const BufferPool::Handle buffer = pool->Take(room + alignment - 1);
  uint8_t* const data = reinterpret_cast<uint8_t*>(
      (reinterpret_cast<uintptr_t>(buffer->data()) + alignment - 1) / alignment * alignment);
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i].out = {data + places[i], requests[i].out.size()};
  ReadFigures figures;
  source.ReadMany(requests, &figures);
  for (const ReadRequest& request : requests) {
    ASSERT_EQ(std::memcmp(request.out.data(), bytes.data() + request.offset, request.out.size()), 0)
        << request.out.size() << " bytes at " << request.offset;
  }
  EXPECT_EQ(figures.bytes, total);
  EXPECT_GE(figures.requests, requests.size());
  EXPECT_EQ(figures.retries, 0u);
}

TEST_F(LocalFileTest, EveryWayGivesTheSameBytes) {
  for (const size_t size : {size_t{1}, size_t{4096}, size_t{100001}, size_t{5000000}}) {
    Write(size);
    for (const Way& way : kWays) {
      SCOPED_TRACE(way.name);
      const auto source = Open(way);
      if (!source) continue;
      EXPECT_EQ(source->size(), size);
      for (uint64_t seed = 0; seed < 20; ++seed) ReadRandomly(*source, bytes_, seed);
      std::mt19937_64 random(size);
      for (int i = 0; i < 50; ++i) {
        const uint64_t offset = random() % size, length = random() % (size - offset + 1);
        std::string got(length, '\0');
        source->ReadAt(offset, {reinterpret_cast<uint8_t*>(got.data()), length});
        ASSERT_EQ(got, bytes_.substr(offset, length)) << offset;
      }
      if (way.options.registered && way.options.io == IoMethod::kUring && !source->note().empty())
        std::printf("%s: %s\n", way.name, source->note().c_str());
    }
  }
}

TEST_F(LocalFileTest, ThreadsShareASource) {
  Write(3000000);
  for (const Way& way : kWays) {
    const auto source = Open(way);
    if (!source) continue;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t seed = 0; seed < 10; ++seed) ReadRandomly(*source, bytes_, 100 * t + seed);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(LocalFileTest, AFileThatShrankIsAnErrorOfEveryWay) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    Write(100000);
    const auto source = Open(way);
    if (!source) continue;
    std::filesystem::resize_file(path_, 50000);
    BufferPool pool;
    const BufferPool::Handle buffer = pool.Take(200000);
    uint8_t* const data = reinterpret_cast<uint8_t*>(
        (reinterpret_cast<uintptr_t>(buffer->data()) + 4095) / 4096 * 4096);
    const std::vector<ReadRequest> requests = {
        {0, {data, 4096}}, {40960, {data + 8192, 20480}}, {81920, {data + 32768, 4096}}};
    ReadFigures figures;
    try {
      source->ReadMany(requests, &figures);
      ADD_FAILURE() << "read past the end";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_NE(std::string(error.what()).find("bytes early"), std::string::npos) << error.what();
    }
  }
}

TEST(PinnedBuffers, KeepTheirPlaceAndAreFoundByAnyPart) {
  PinnedBuffers& pool = PinnedBuffers::Get();
  const uint8_t* first;
  {
    const BufferPool::Handle buffer = pool.Take(100000);
    first = buffer->data();
    ASSERT_TRUE(pool.Find({first + 99999, 1}).has_value());
    EXPECT_EQ(pool.Find({first, 10})->bytes.data(), first);
    EXPECT_FALSE(pool.Find({first - 1, 10}).has_value());
  }
  const BufferPool::Handle again = pool.Take(70000);
  EXPECT_EQ(again->data(), first);
  // Beyond the limit a buffer is an ordinary one.
  const BufferPool::Handle large = pool.Take(PinnedBuffers::kMaxBytes + 1);
  EXPECT_FALSE(pool.Find({large->data(), 1}).has_value());
}

}  // namespace
}  // namespace headrace::reader
