#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/buffer.h"
#include "base/error.h"
#include "base/temporary.h"

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

// The name was once "PATH.tmpPID"; a link there was written through.
TEST_F(FileTest, PlantedLinksAreNotWrittenThrough) {
  const std::string victim = Path("victim"), output = Path("report.html");
  std::ofstream(victim) << "precious";
  const auto plant = [&](const std::string& name) {
    ASSERT_EQ(symlink(victim.c_str(), Path(name).c_str()), 0) << name;
  };
  for (int pid = getpid() - 200; pid < getpid() + 200; ++pid) {
    plant("report.html.tmp" + std::to_string(pid));
    for (int guess = 0; guess < 5; ++guess)
      plant(fmt::format("report.html.tmp{}-{:016x}", pid, guess));
  }
  plant("report.html");  // it is replaced itself
  const size_t planted = FilesInFolder();
  AtomicFile file(output, true);
  file.Write(std::string_view("page"));
  EXPECT_EQ(FilesInFolder(), planted + 1) << "a file of its own";
  file.Commit();
  EXPECT_EQ(ReadWholeFile(victim), "precious");
  EXPECT_FALSE(fs::is_symlink(output));
  EXPECT_EQ(ReadWholeFile(output), "page");
  EXPECT_EQ(FilesInFolder(), planted);
}

TEST_F(FileTest, TemporaryNamesDifferAndSayWhoseTheyAre) {
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(TemporaryName("a.tmp1"));
  EXPECT_EQ(names.size(), 1000u);
  const auto parsed = ParseTemporaryName(*names.begin());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->name, "a.tmp1");
  EXPECT_EQ(parsed->pid, getpid());
  EXPECT_EQ(ParseTemporaryName("b.tmp77").value().pid, 77) << "of earlier versions";
  EXPECT_LE(TemporaryName(std::string(255, 'x')).size(), 255u);
  for (const char* other : {"b", "b.tmp", "b.tmp12x", "b.tmp12-", "b.tmp12-0123456789abcdeg",
                            "b.tmp-12", "b.tmp0-0123456789abcdef", "b.tmp1-0123456789abcdef0"})
    EXPECT_FALSE(ParseTemporaryName(other)) << other;
}

TEST_F(FileTest, PermissionsFollowTheUmaskOrTheFileThatIsReplaced) {
  const auto mode_of = [&](const std::string& name) {
    struct stat info = {};
    lstat(Path(name).c_str(), &info);
    return info.st_mode & 07777;
  };
  const auto write = [&](const std::string& name, uint32_t mode) {
    AtomicFile file(Path(name), true, mode);
    file.Commit();
  };
  const mode_t before = umask(027);
  write("new", AtomicFile::kUsual);
  write("private", 0600);
  std::ofstream(Path("old")).close();
  ASSERT_EQ(chmod(Path("old").c_str(), 04604), 0);
  write("old", AtomicFile::kUsual);
  ASSERT_EQ(chmod(Path("private").c_str(), 0644), 0);
  write("private", 0600);
  umask(before);
  EXPECT_EQ(mode_of("new"), 0640u);
  EXPECT_EQ(mode_of("old"), 0604u) << "as it was, but for bits that give rights";
  EXPECT_EQ(mode_of("private"), 0600u) << "what must be private stays so";
}

TEST_F(FileTest, WhatCameIntoBeingMeanwhileIsNotReplaced) {
  AtomicFile file(Path("a"), false);
  file.Write(std::string_view("mine"));
  std::ofstream(Path("a")) << "theirs";
  EXPECT_THROW(file.Commit(), Error);
  EXPECT_EQ(ReadWholeFile(Path("a")), "theirs");
}

TEST_F(FileTest, AFailedCommitLeavesNothing) {
  fs::create_directory(Path("a"));
  std::ofstream(Path("a/inside")).close();
  EXPECT_THROW(AtomicFile(Path("a"), true), Error);
  {
    AtomicFile file(Path("b"), true);
    fs::create_directory(Path("b"));
    EXPECT_THROW(file.Commit(), Error);
  }
  EXPECT_EQ(FilesInFolder(), 2u) << "the two folders";
}

TEST_F(FileTest, PipesAndOpenDescriptorsAreWrittenDirectly) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  AtomicFile::Check(Path("pipe"), false);
  const auto write = [](const std::string& path, std::string_view text) {
    AtomicFile file(path, false);
    file.Write(text);
    file.Commit();
  };
  write(Path("pipe"), "through");
  char got[16] = "";
  EXPECT_EQ(read(reader, got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));

  // A null device of our own: were it replaced, the machine's should not be.
  if (mknod(Path("null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
    write(Path("null"), "nothing");
    EXPECT_TRUE(fs::is_character_file(Path("null")));
  }

  // As a shell's redirection: what follows comes behind.
  const int fd = open(Path("log").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(fd, 0);
  write(fmt::format("/dev/fd/{}", fd), "one ");
  write(fmt::format("/proc/self/fd/{}", fd), "two");
  close(fd);
  EXPECT_EQ(ReadWholeFile(Path("log")), "one two");
}

TEST_F(FileTest, APipeOfAnotherUserInASharedFolderIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a pipe of another user";
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  ASSERT_EQ(mkfifo(Path("report").c_str(), 0666), 0);
  ASSERT_EQ(chown(Path("report").c_str(), 65534, 65534), 0);
  const int reader = open(Path("report").c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_THROW(AtomicFile(Path("report"), true), Error);
  close(reader);
}

// Nor are links that lead to what is written directly, at whatever length.
TEST_F(FileTest, NothingIsWrittenThroughAnothersLink) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a link of another user";
  const int log = open(Path("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::string targets[] = {"/dev/null", fmt::format("/dev/fd/{}", log), "absent"};
  for (const std::string& target : targets) {
    SCOPED_TRACE(target);
    ASSERT_EQ(symlink(target.c_str(), Path("planted").c_str()), 0);
    ASSERT_EQ(lchown(Path("planted").c_str(), 65534, 65534), 0);
    ASSERT_EQ(symlink("planted", Path("own").c_str()), 0);
    for (const char* name : {"planted", "own"}) {
      EXPECT_THROW(AtomicFile(Path(name), true), Error);
      EXPECT_THROW(AtomicFile::Check(Path(name), true), Error);
      EXPECT_THROW(OpenGrowingFile(Path(name)), Error);
    }
    fs::remove(Path("planted"));
    fs::remove(Path("own"));
  }
  EXPECT_EQ(FilesInFolder(), 1u);
  close(log);
}

TEST_F(FileTest, ADescriptorIsMeantByItsOwnNameOnly) {
  const int log = open(Path("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(symlink(fmt::format("/dev/fd/{}", log).c_str(), Path("link").c_str()), 0);
  AtomicFile file(Path("link"), true);
  file.Write(std::string_view("page"));
  file.Commit();
  EXPECT_EQ(ReadWholeFile(Path("log")), "");
  EXPECT_EQ(ReadWholeFile(Path("link")), "page") << "the link is replaced, as others are";
  close(log);
}

TEST_F(FileTest, AGrowingFileDoesNotWaitForAReader) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  alarm(60);  // instead of for ever
  EXPECT_THROW(OpenGrowingFile(Path("pipe")), Error);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int fd = OpenGrowingFile(Path("pipe"));
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0) << "writing waits for room";
  close(fd);
  close(reader);
  alarm(0);
}

TEST_F(FileTest, AGrowingFileIsNotOpenedThroughAnothersLink) {
  std::ofstream(Path("real")) << "1";
  ASSERT_EQ(symlink(Path("real").c_str(), Path("own").c_str()), 0);
  const int fd = OpenGrowingFile(Path("own"), O_APPEND);
  ASSERT_EQ(write(fd, "2", 1), 1);
  close(fd);
  EXPECT_EQ(ReadWholeFile(Path("real")), "12") << "a link of one's own is followed";
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a link of another user";
  ASSERT_EQ(symlink(Path("real").c_str(), Path("planted").c_str()), 0);
  ASSERT_EQ(lchown(Path("planted").c_str(), 65534, 65534), 0);
  EXPECT_THROW(OpenGrowingFile(Path("planted")), Error);
  EXPECT_EQ(ReadWholeFile(Path("real")), "12");
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
