// Marks on files whose names anybody may take.
#include "collectors/recorded_mark.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace headrace::collectors {
namespace {

TEST(RecordedMark, HoldsOnAFileAndWaitsAtNoPipe) {
  char folder[] = "/tmp/headrace-mark-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/file", fifo = std::string(folder) + "/fifo";
  std::ofstream(file).close();
  {
    const RecordedMark mark(file);
    EXPECT_TRUE(IsBeingRecorded(file));
  }
  EXPECT_FALSE(IsBeingRecorded(file));
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  alarm(20);  // instead of for ever
  const RecordedMark mark(fifo);
  EXPECT_FALSE(IsBeingRecorded(fifo));
  alarm(0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headrace::collectors
