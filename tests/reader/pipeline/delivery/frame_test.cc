// Frames: what comes out is what went in; damaged ones are refused, whatever the damage.
#include "reader/pipeline/delivery/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "reader/pipeline/delivery/frame_hash.h"
#include "reader/pipeline/delivery/stream_copy.h"
#include "tests/reader/pipeline/delivery/random_batch.h"
#include "tests/reader/pipeline/delivery/same_batch.h"

namespace headrace::reader {
namespace {

std::vector<uint8_t> Bytes(const Frame& frame) {
  std::vector<uint8_t> bytes(frame.bytes());
  CopyFrame(frame, bytes.data());
  return bytes;
}

std::optional<TensorBatch> Decode(FrameDecoder* decoder, std::span<const uint8_t> bytes) {
  return decoder->Decode(ParseFrameHeader(bytes), bytes.subspan(sizeof(FrameHeader)));
}

std::string ErrorOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    return error.what();
  }
  return "accepted";
}

TEST(Frame, RandomBatchesComeOutAsTheyWentIn) {
  std::mt19937_64 random(TestSeed());
  FrameEncoder encoder;
  FrameDecoder decoder;
  BatchShape shape;
  for (int i = 0; i < 300; ++i) {
    if (i % 3 == 0) shape = RandomShape(random);  // else the same names again
    const TensorBatch batch = RandomBatch(shape, random);
    std::optional<TensorBatch> got;
    const std::vector<Frame> frames = encoder.Encode(batch);
    EXPECT_LE(frames.size(), 2u);
    for (const Frame& frame : frames) {
      const std::vector<uint8_t> bytes = Bytes(frame);
      EXPECT_EQ(bytes.size(), frame.bytes());
      EXPECT_EQ(bytes.size() % kFrameAlignment, 0u);
      got = Decode(&decoder, bytes);
    }
    ASSERT_TRUE(got.has_value());
    ExpectSame(batch, *got);
    if (HasFailure()) return;
  }
  EXPECT_FALSE(Decode(&decoder, Bytes(encoder.End(true))).has_value());
  EXPECT_TRUE(decoder.ended());
  EXPECT_TRUE(decoder.complete());
  EXPECT_EQ(decoder.batches(), 300u);
}

TEST(Frame, EveryInstructionSetHashesTheSame) {
  std::mt19937_64 random(TestSeed());
  std::vector<uint8_t> bytes(100000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (int i = 0; i < 300; ++i) {
    const size_t size = random() % (i % 3 == 0 ? 400 : bytes.size());
    const std::span<const uint8_t> whole[] = {{bytes.data(), size}};
    std::vector<std::span<const uint8_t>> parts;
    for (size_t at = 0; at < size;) {
      const size_t step = std::min<size_t>(size - at, 1 + random() % (1 + size / 2));
      parts.push_back({bytes.data() + at, step});
      at += step;
    }
    const uint64_t expected = HashParts(whole, i, InstructionSet::kScalar);
    for (const InstructionSet set : {InstructionSet::kScalar, BestInstructionSet()}) {
      EXPECT_EQ(HashParts(parts, i, set), expected) << InstructionSetName(set);
      EXPECT_EQ(HashParts(whole, i, set), expected) << InstructionSetName(set);
      std::vector<uint8_t> copy(size);
      EXPECT_EQ(HashAndCopyParts(parts, i, copy.data(), set), expected) << InstructionSetName(set);
      EXPECT_TRUE(std::equal(copy.begin(), copy.end(), bytes.begin())) << InstructionSetName(set);
      FrameHasher hasher(i, set);
      for (const auto& part : parts) hasher.Add(part);
      EXPECT_EQ(hasher.Hash(), expected) << InstructionSetName(set);
    }
  }
}

TEST(StreamCopy, CopiesAnyBytesToAnyPlace) {
  std::mt19937_64 random(TestSeed());
  std::vector<uint8_t> from(5000);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
  for (int i = 0; i < 2000; ++i) {
    const size_t begin = random() % 200, size = random() % (i % 2 == 0 ? 300 : 4000);
    const size_t at = random() % 200;
    std::vector<uint8_t> to(6000, 7);
    StreamCopy(to.data() + at, {from.data() + begin, size},
               i % 3 == 0 ? InstructionSet::kScalar : BestInstructionSet());
    ASSERT_TRUE(std::equal(from.begin() + static_cast<ptrdiff_t>(begin),
                           from.begin() + static_cast<ptrdiff_t>(begin + size),
                           to.begin() + static_cast<ptrdiff_t>(at)));
    ASSERT_EQ(std::count(to.begin(), to.begin() + static_cast<ptrdiff_t>(at), 7),
              static_cast<ptrdiff_t>(at));
    ASSERT_EQ(std::count(to.begin() + static_cast<ptrdiff_t>(at + size), to.end(), 7),
              static_cast<ptrdiff_t>(to.size() - at - size));
  }
}

// A frame goes over a socket part by part behind its header, and into the ring in one copy.
TEST(Frame, BothWaysToSendOneGiveTheSameBytes) {
  std::mt19937_64 random(TestSeed());
  FrameEncoder encoder;
  for (int i = 0; i < 20; ++i) {
    const TensorBatch batch = RandomBatch(RandomShape(random), random);
    for (const Frame& frame : encoder.Encode(batch)) {
      const FrameHeader header = SealedHeader(frame);
      std::vector<uint8_t> bytes(sizeof header);
      std::memcpy(bytes.data(), &header, sizeof header);
      for (const auto& part : frame.parts) bytes.insert(bytes.end(), part.begin(), part.end());
      EXPECT_EQ(Bytes(frame), bytes);
    }
  }
}

TEST(Frame, ABatchMayBorrowFromItsFrame) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 50; ++i) {
    FrameEncoder encoder;
    FrameDecoder decoder;
    const TensorBatch batch = RandomBatch(RandomShape(random), random);
    std::optional<TensorBatch> got;
    for (const Frame& frame : encoder.Encode(batch)) {
      const std::vector<uint8_t> bytes = Bytes(frame);
      auto body = std::make_shared<Array<uint8_t>>();
      body->assign(bytes.begin() + sizeof(FrameHeader), bytes.end());
      got = decoder.Decode(SealedHeader(frame), {body->data(), body->size()}, body);
    }
    ASSERT_TRUE(got.has_value());
    ExpectSame(batch, *got);
  }
}

// A producer that writes into shared memory after its frame was taken changes values, and nothing
// that leads to a place.
TEST(Frame, OfSharedMemoryOnlyValuesAreBorrowed) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 100; ++i) {
    FrameEncoder encoder;
    FrameDecoder decoder;
    const bool is_hashed = i % 4 == 0;  // a producer of another language may do that
    const TensorBatch batch = RandomBatch(RandomShape(random), random);
    std::optional<TensorBatch> got;
    std::shared_ptr<Array<uint8_t>> body;
    for (const Frame& frame : encoder.Encode(batch)) {
      std::vector<uint8_t> bytes(frame.bytes());
      CopyFrame(frame, bytes.data(), is_hashed);
      body = std::make_shared<Array<uint8_t>>();
      body->assign(bytes.begin() + sizeof(FrameHeader), bytes.end());
      got = decoder.Decode(ParseFrameHeader(bytes), {body->data(), body->size()}, body,
                           FrameMemory::kShared);
    }
    ASSERT_TRUE(got.has_value());
    ExpectSame(batch, *got);
    EXPECT_EQ(got->is_lent, !is_hashed);
    if (!is_hashed && !batch.dense.empty()) {
      EXPECT_EQ(got->dense.owner(), body.get());
    }
    std::fill(body->begin(), body->end(), 0xee);
    Validate(got->sparse);
    Validate(got->weighted_sparse);
    ExpectSame(batch.sparse.lengths, got->sparse.lengths, "lengths");
    ExpectSame(batch.weighted_sparse.lengths, got->weighted_sparse.lengths, "lengths");
    ExpectSame(batch.row_ids, got->row_ids, "row ids");
    EXPECT_EQ(batch.spans, got->spans);
    for (size_t g = 0; g < batch.groups.size(); ++g) {
      Validate(got->groups[g]);
      ExpectSame(batch.groups[g].inverse, got->groups[g].inverse, "inverse");
    }
    if (is_hashed) ExpectSame(batch, *got);
    EXPECT_FALSE(HasFailure()) << i;
  }
}

TEST(Frame, NamesGoOncePerConnection) {
  std::mt19937_64 random(1);
  FrameEncoder encoder;
  BatchShape shape{.rows = 3, .dense = 2, .sparse = 1};
  EXPECT_EQ(encoder.Encode(RandomBatch(shape, random)).size(), 2u);
  EXPECT_EQ(encoder.Encode(RandomBatch(shape, random)).size(), 1u);
  shape.sparse = 2;
  EXPECT_EQ(encoder.Encode(RandomBatch(shape, random)).size(), 2u);
  shape.groups = 2;
  EXPECT_EQ(encoder.Encode(RandomBatch(shape, random)).size(), 2u);
  EXPECT_EQ(encoder.Encode(RandomBatch(shape, random)).size(), 1u);
}

// A list that repeats goes once.
TEST(Frame, GroupsGoUnexpanded) {
  constexpr uint64_t kRows = 1000, kUnique = 10;
  TensorBatch batch;
  batch.rows = kRows;
  InverseKeyedJaggedTensor& group = batch.groups.emplace_back();
  std::mt19937_64 random(1);
  BatchShape shape{.rows = kUnique};
  shape.longest = 50;
  group.unique = RandomJagged("u", 2, shape, false, random);
  group.places = {1, 0};
  group.inverse.resize(kRows);
  for (uint64_t row = 0; row < kRows; ++row)
    group.inverse[row] = static_cast<int32_t>(row * kUnique / kRows);
  FrameEncoder encoder;
  const uint64_t grouped = encoder.Encode(batch).back().bytes();
  EXPECT_LE(grouped, 64 * 8 + kRows * 4 + kUnique * 2 * (4 + 8 * 50));
  ExpandGroups(&batch);
  const uint64_t expanded = FrameEncoder().Encode(batch).back().bytes();
  EXPECT_GE(expanded, batch.sparse.values.size() * 8);
  EXPECT_GT(expanded, 20 * grouped);
}

// Groups whose names or numbers cannot be, under right checksums.
TEST(Frame, WrongGroupsAreRefused) {
  std::mt19937_64 random(4);
  BatchShape shape{.rows = 4, .dense = 0, .sparse = 1};
  shape.groups = 1;
  const auto error_of = [&](const std::function<void(TensorBatch*)>& change) {
    TensorBatch batch = RandomBatch(shape, random);
    change(&batch);
    FrameEncoder encoder;
    FrameDecoder decoder;
    const std::vector<Frame> frames = encoder.Encode(batch);
    return ErrorOf([&] {
      for (const Frame& frame : frames) Decode(&decoder, Bytes(frame));
    });
  };
  EXPECT_EQ(error_of([](TensorBatch*) {}), "accepted");
  const auto expect = [&](const char* text, const std::function<void(TensorBatch*)>& change) {
    const std::string error = error_of(change);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  expect("the place 2 of 2", [](TensorBatch* b) { b->groups[0].places[0] = 2; });
  expect("leads past its", [](TensorBatch* b) { b->groups[0].inverse[3] = 4; });
  expect("leads past its", [](TensorBatch* b) { b->groups[0].inverse[0] = -1; });
  expect("do not add up", [](TensorBatch* b) { b->groups[0].unique.lengths[0] += 1; });
  expect("counts do not give", [](TensorBatch* b) { b->groups[0].unique.rows = 1 << 20; });
  expect("claims 1099511627776 unique rows",
         [](TensorBatch* b) { b->groups[0].unique.rows = uint64_t{1} << 40; });
}

TEST(Frame, EveryFlippedBitIsSeen) {
  std::mt19937_64 random(2);
  FrameEncoder encoder;
  const TensorBatch original =
      RandomBatch({.rows = 5, .dense = 2, .sparse = 2, .weighted = 1, .groups = 3}, random);
  const auto frames = encoder.Encode(original);
  const std::vector<uint8_t> names = Bytes(frames[0]), batch = Bytes(frames[1]);
  for (const auto* whole : {&names, &batch}) {
    for (size_t bit = 0; bit < whole->size() * 8; ++bit) {
      FrameDecoder decoder;
      if (whole == &batch) Decode(&decoder, names);
      std::vector<uint8_t> damaged = *whole;
      damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_NE(ErrorOf([&] { Decode(&decoder, damaged); }), "accepted") << "bit " << bit;
    }
  }
}

// What a program that means harm could send: fields and lists of any value under a right checksum.
TEST(Frame, NoFieldIsBelieved) {
  std::mt19937_64 random(TestSeed());
  FrameEncoder encoder;
  const TensorBatch original =
      RandomBatch({.rows = 7, .dense = 3, .sparse = 3, .weighted = 2, .groups = 3}, random);
  const auto frames = encoder.Encode(original);
  const std::vector<uint8_t> names = Bytes(frames[0]), batch = Bytes(frames[1]);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const bool of_batch = i % 2 == 0;
    std::vector<uint8_t> bytes = of_batch ? batch : names;
    for (int k = static_cast<int>(random() % 3); k >= 0; --k) {
      const size_t at = random() % 3 == 0 ? random() % bytes.size() : random() % 64;
      const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<uint8_t>(random())};
      bytes[at] = values[random() % 6];
    }
    FrameDecoder decoder;
    try {
      if (of_batch) Decode(&decoder, names);
      FrameHeader header = ParseFrameHeader(bytes);
      const std::span<const uint8_t> body{bytes.data() + sizeof header,
                                          bytes.size() - sizeof header};
      header.checksum = FrameChecksum(header, body);
      const auto got = decoder.Decode(header, body);
      ++accepted;
      if (!got) continue;
      EXPECT_EQ(got->sparse.offsets.size(), got->sparse.keys.size() * got->rows + 1);
      EXPECT_EQ(static_cast<size_t>(got->sparse.offsets[got->sparse.offsets.size() - 1]),
                got->sparse.values.size());
      for (const auto& group : got->groups) Validate(group);
      KeysInOrder(*got, false);
      KeysInOrder(*got, true);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Frame, RefusalsSayWhy) {
  std::mt19937_64 random(3);
  FrameEncoder encoder;
  const TensorBatch original = RandomBatch({.rows = 4, .dense = 1, .sparse = 1}, random);
  const auto frames = encoder.Encode(original);
  const std::vector<uint8_t> names = Bytes(frames[0]), batch = Bytes(frames[1]);
  const auto with = [&](const std::function<void(FrameHeader*)>& change) {
    FrameHeader header = frames[1].header;
    change(&header);
    return ErrorOf([&] {
      ParseFrameHeader({reinterpret_cast<const uint8_t*>(&header), sizeof header});
    });
  };
  EXPECT_NE(with([](FrameHeader* h) { h->magic = 7; }).find("not the beginning of a frame"),
            std::string::npos);
  EXPECT_NE(
      with([](FrameHeader* h) { h->version = 1; }).find("version 1, this headrace knows 3; use"),
      std::string::npos);
  EXPECT_NE(with([](FrameHeader* h) { h->version = 9; }).find("version 9, this headrace knows 3"),
            std::string::npos);
  EXPECT_NE(with([](FrameHeader* h) { h->body_bytes = uint64_t{1} << 40; }).find("claims a body"),
            std::string::npos);
  EXPECT_NE(with([](FrameHeader* h) { h->sparse_values = UINT64_MAX; }).find("counts do not give"),
            std::string::npos);
  EXPECT_NE(with([](FrameHeader* h) { h->rows = UINT32_MAX; }).find("counts do not give"),
            std::string::npos);
  FrameDecoder decoder;
  EXPECT_NE(ErrorOf([&] { Decode(&decoder, batch); }).find("before the names"), std::string::npos);
  Decode(&decoder, names);
  Decode(&decoder, batch);
  EXPECT_NE(ErrorOf([&] { Decode(&decoder, batch); }).find("batch 0 came where 1 was due"),
            std::string::npos);
}

// The layout as docs/delivery.md has it, read by another program.
TEST(Frame, APythonReaderUnderstandsThem) {
  namespace fs = std::filesystem;
  if (std::system("python3 -c 'import struct' > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "python3 does not run here";
  std::mt19937_64 random(TestSeed());
  const fs::path folder = fs::temp_directory_path() / ("frames." + std::to_string(random()));
  fs::create_directory(folder);
  FrameEncoder encoder;
  std::ofstream file(folder / "frames", std::ios::binary);
  std::ostringstream expected;
  const auto write = [&](const Frame& frame) {
    std::vector<uint8_t> bytes(frame.bytes());
    CopyFrame(frame, bytes.data(), encoder.batches() % 2 == 0);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  const auto sum = [](const auto& values) {
    uint64_t total = 0;  // order matters, overflow wraps
    for (const auto value : values) total = total * 31 + static_cast<uint64_t>(value);
    return total;
  };
  const auto floats = [](const auto& values) {
    uint64_t total = 0;
    for (const float value : values) total = total * 31 + std::bit_cast<uint32_t>(value);
    return total;
  };
  for (int i = 0; i < 20; ++i) {
    const TensorBatch batch = RandomBatch(RandomShape(random), random);
    for (const Frame& frame : encoder.Encode(batch)) write(frame);
    expected << batch.rows << ' ' << batch.first_row << ' ' << sum(batch.row_ids) << ' '
             << floats(batch.labels) << ' ' << floats(batch.dense);
    for (const std::string& name : batch.dense_names) expected << ' ' << name;
    for (const KeyedJaggedTensor* tensor : {&batch.sparse, &batch.weighted_sparse}) {
      for (const std::string& key : tensor->keys) expected << ' ' << key;
      expected << ' ' << sum(tensor->lengths) << ' ' << sum(tensor->values) << ' '
               << floats(tensor->weights);
    }
    for (const InverseKeyedJaggedTensor& group : batch.groups) {
      expected << ' ' << group.name << ' ' << group.weighted;
      for (size_t k = 0; k < group.places.size(); ++k)
        expected << ' ' << group.places[k] << ' ' << group.unique.keys[k];
      expected << ' ' << sum(group.inverse) << ' ' << sum(group.unique.lengths) << ' '
               << sum(group.unique.values) << ' ' << floats(group.unique.weights);
    }
    for (const RowSpan& span : batch.spans)
      expected << ' ' << span.epoch << ' ' << span.split << ' ' << span.first << ' ' << span.count
               << ' ' << span.rows;
    expected << '\n';
  }
  write(encoder.End(true));
  expected << "end 20\n";
  file.close();
  const std::string command = std::string("python3 ") + HEADRACE_SOURCE_DIR +
                              "/tests/data/read_frames.py " + (folder / "frames").string() + " > " +
                              (folder / "text").string() + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream text(folder / "text");
  const std::string got((std::istreambuf_iterator<char>(text)), std::istreambuf_iterator<char>());
  EXPECT_EQ(status, 0) << got;
  EXPECT_EQ(got, expected.str());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace headrace::reader
