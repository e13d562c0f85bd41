#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/buffer.h"
#include "base/error.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("headrace_file_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) { return (folder_ / name).string(); }
  size_t FilesInFolder() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(FileTest, AtomicFileAppearsOnCommitOnly) {
  {
    AtomicFile file(Path("a"), false);
    file.Write(std::string_view("hello"));
    EXPECT_FALSE(fs::exists(Path("a")));
  }
  EXPECT_EQ(FilesInFolder(), 0u) << "an abandoned output leaves nothing";
  AtomicFile file(Path("a"), false);
  file.Write(std::string_view("hello"));
  file.Commit();
  EXPECT_EQ(ReadWholeFile(Path("a")), "hello");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(FileTest, ExistingOutputNeedsReplace) {
  AtomicFile first(Path("a"), false);
  first.Write(std::string_view("one"));
  first.Commit();
  try {
    AtomicFile second(Path("a"), false);
    FAIL() << "replaced without being asked";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
  EXPECT_EQ(ReadWholeFile(Path("a")), "one");
}

TEST_F(FileTest, ReadingPastTheEndNamesTheByte) {
  AtomicFile output(Path("a"), false);
  output.Write(std::string_view("12345"));
  output.Commit();
  const File file(Path("a"));
  uint8_t bytes[4];
  file.ReadAt(1, bytes);
  EXPECT_EQ(bytes[0], '2');
  try {
    file.ReadAt(3, bytes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("byte 5"), std::string::npos) << error.what();
  }
}

TEST_F(FileTest, FoldersAndAbsentFilesAreErrors) {
  EXPECT_THROW(File{folder_.string()}, Error);
  EXPECT_THROW(File{Path("absent")}, Error);
}

TEST(Buffer, KeepsBytesAndZeroesPadding) {
  Buffer buffer(3);
  std::memcpy(buffer.data(), "abc", 3);
  buffer.Resize(100000);
  EXPECT_EQ(0, std::memcmp(buffer.data(), "abc", 3));
  for (size_t i = 0; i < Buffer::kPadding; ++i) EXPECT_EQ(buffer.data()[buffer.size() + i], 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % Buffer::kAlignment, 0u);
}

TEST(Buffer, ImpossibleSizeIsAnErrorNotACrash) {
  Buffer buffer;
  EXPECT_THROW(buffer.Resize(SIZE_MAX - 8), Error);
}

TEST(BufferPool, ReusesMemory) {
  BufferPool pool;
  const uint8_t* first = nullptr;
  {
    auto handle = pool.Take(100'000);
    first = handle->data();
  }
  auto handle = pool.Take(90'000);
  EXPECT_EQ(handle->data(), first);
}

}  // namespace
}  // namespace headrace
