// Checkpoints on a disk that is full: the one before stays.
#include "reader/pipeline/delivery/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "base/error.h"
#include "base/file.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

TEST(Checkpoint, AFullDiskLeavesTheOneBefore) {
  const fs::path folder =
      fs::temp_directory_path() / ("headrace_checkpoint_" + std::to_string(getpid()));
  fs::create_directories(folder);
  struct Remove {
    ~Remove() {
      umount2(path.c_str(), MNT_DETACH);
      fs::remove_all(path);
    }
    fs::path path;
  } remove{folder};
  if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "mounting a small file system is not allowed here";
  const std::string path = (folder / "at.ckpt").string();
  Checkpoint checkpoint;
  checkpoint.rows = 17;
  checkpoint.consumer_state = "first";
  WriteCheckpoint(path, checkpoint);
  const std::string before = ReadWholeFile(path);
  // Too little room for all of it, and for any of it.
  for (const uint64_t left : {uint64_t{16} << 10, uint64_t{0}}) {
    std::ofstream filler(folder / "filler", std::ios::binary);
    filler << std::string((60 << 10) - left, 'x');
    filler.close();
    checkpoint.rows = 99;
    checkpoint.consumer_state.assign(40 << 10, 's');
    try {
      WriteCheckpoint(path, checkpoint);
      FAIL() << "there was room";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kResources);
      EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
    EXPECT_EQ(ReadWholeFile(path), before);
    EXPECT_EQ(ReadCheckpoint(path).rows, 17u);
    size_t files = 0;
    for ([[maybe_unused]] const auto& file : fs::directory_iterator(folder)) ++files;
    EXPECT_EQ(files, 2u) << "nothing half is left beside it";
  }
  fs::remove(folder / "filler");
  WriteCheckpoint(path, checkpoint);
  EXPECT_EQ(ReadCheckpoint(path).rows, 99u);
}

TEST(Checkpoint, AnotherVersionIsNamed) {
  std::string text = SerializeCheckpoint({});
  EXPECT_NO_THROW(ParseCheckpoint(text, "c"));
  text[text.find("/3") + 1] = '1';
  try {
    ParseCheckpoint(text, "c");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("of another version"), std::string::npos)
        << error.what();
  }
}

// A state of two splits of ten rows: the first is done, of the second three rows are settled.
TEST(Checkpoint, TheVersionBeforeIsReadAndWrittenAnew) {
  const auto numbers = [](std::initializer_list<uint64_t> values) {
    std::string text;
    for (const uint64_t value : values)
      text.append(reinterpret_cast<const char*>(&value), sizeof value);
    return text;
  };
  const auto sealed = [&](const std::string& body) {
    return body + numbers({XXH64(body.data(), body.size(), 0)});
  };
  const auto before = [&](std::initializer_list<uint64_t> ranges) {
    return sealed("headrace.checkpoint/2\n" + numbers({1, 2, 3, 4}) + numbers({2, 5, 13, 7, 1}) +
                  numbers({7, 1, 1, 1, ranges.size() / 2}) + numbers(ranges) + numbers({0}));
  };
  const Checkpoint read = ParseCheckpoint(before({12, 1, 14, 2}), "c");
  EXPECT_EQ(read.rows, 13u);
  EXPECT_EQ(read.delivered.first_epoch, 7u);
  DeliveryState::Epoch epoch;
  epoch.done = {1};
  epoch.partial = {{12, 1}, {14, 2}};
  ASSERT_EQ(read.delivered.epochs.size(), 1u);
  EXPECT_EQ(read.delivered.epochs.at(7), epoch);
  const std::string now = SerializeCheckpoint(read);
  EXPECT_LT(now.size(), before({12, 1, 14, 2}).size());
  EXPECT_EQ(ParseCheckpoint(now, "c").delivered, read.delivered);
  for (const auto& ranges : {before({14, 2, 12, 1}), before({12, 3, 14, 2}), before({12, 0}),
                             before({12, UINT64_MAX}), before({UINT64_MAX, 2})})
    EXPECT_THROW(ParseCheckpoint(ranges, "c"), Error);
}

// Of a rank, of which epochs are over that others had a part of.
TEST(Checkpoint, TheTotalOfRowsOfEpochsThatAreOverIsKeptWhereTheyAreNotAll) {
  Checkpoint saved;
  saved.splits = 2;
  saved.delivered.first_epoch = 7;
  const std::string whole = SerializeCheckpoint(saved);
  EXPECT_TRUE(whole.starts_with("headrace.checkpoint/3\n"));
  EXPECT_EQ(ParseCheckpoint(whole, "c").delivered.closed, std::nullopt);
  saved.delivered.closed = {12, 77};
  const std::string part = SerializeCheckpoint(saved);
  EXPECT_TRUE(part.starts_with("headrace.checkpoint/5\n"));
  EXPECT_EQ(ParseCheckpoint(part, "c").delivered, saved.delivered);
  EXPECT_EQ(part.size(), whole.size() + 16);
}

}  // namespace
}  // namespace headrace::reader
