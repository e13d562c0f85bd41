#include "reader/source/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "reader/source/source.h"

namespace headrace::reader {
namespace {

constexpr uint64_t kBytes = 4 << 20;

class PageCache : public testing::Test {
 protected:
  void SetUp() override {
    // The build folder is on a disk where the temporary folder may be in memory.
    path_ = std::string(HEADRACE_BINARY_DIR) + "/page_cache_" + std::to_string(getpid());
    std::ofstream(path_) << std::string(kBytes, 'x');
  }
  void TearDown() override { unlink(path_.c_str()); }
  std::string path_;
};

TEST_F(PageCache, WhatWasJustWrittenIsResidentAndCanBeForgotten) {
  const Residency written = ReadResidency({path_});
  ASSERT_EQ(written.unknown, "");
  EXPECT_EQ(written.bytes, kBytes);
  EXPECT_EQ(written.resident_bytes, kBytes);
  DropFromPageCache({path_});
  const Residency dropped = ReadResidency({path_});
  if (dropped.resident_bytes == kBytes) GTEST_SKIP() << "this file system keeps its pages";
  EXPECT_EQ(dropped.bytes, kBytes);
  EXPECT_LT(dropped.resident_bytes, kBytes / 10);
}

TEST_F(PageCache, ARangeIsForgottenAloneAndReadAgain) {
  DropFromPageCache({path_});
  if (ReadResidency({path_}).resident_bytes == kBytes) {
    GTEST_SKIP() << "this file system keeps its pages";
  }
  const auto source = OpenFileSource(path_);
  std::vector<uint8_t> bytes(kBytes);
  source->ReadAt(0, bytes);
  ASSERT_EQ(ReadResidency({path_}).resident_bytes, kBytes);
  // Neither end is at a page's border: the pages there go too.
  source->ForgetPages((1 << 20) + 10, (1 << 20) - 20);
  const uint64_t left = ReadResidency({path_}).resident_bytes;
  EXPECT_LE(left, kBytes - (1 << 20));
  EXPECT_GT(left, kBytes / 2);
  source->ReadAt(0, bytes);
  EXPECT_EQ(bytes[(1 << 20) + 500], 'x');
}

TEST_F(PageCache, WhatCannotBeToldIsUnknown) {
  EXPECT_NE(ReadResidency({path_ + ".none"}).unknown, "");
  EXPECT_NE(ReadResidency({}).unknown, "");
  std::ofstream(path_, std::ios::trunc).close();
  EXPECT_NE(ReadResidency({path_}).unknown, "");
  DropFromPageCache({path_ + ".none"});  // passed over
}

}  // namespace
}  // namespace headrace::reader
