// Metadata that claims more than a machine has: refused before memory or time is spent on it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>

#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/row_reader.h"
#include "tests/reader/dwrf/torn_rows.h"

namespace headrace::reader::dwrf {
namespace {

using fuzz::TornFile;
using ::testing::HasSubstr;

// An index of `strides` entries, the first of which has `numbers` positions.
std::string LongIndex(int strides, int numbers) {
  proto::RowIndex index;
  for (int i = 0; i < strides; ++i) index.add_entry();
  index.mutable_entry(0)->mutable_positions()->Resize(numbers, 0);
  return index.SerializeAsString();
}

// Row indexes of sequences that no key has.
void AddIndexes(TornFile* file, uint32_t count) {
  file->EditStripeFooter(0, [&](proto::StripeFooter* footer) {
    for (uint32_t i = 0; i < count; ++i) {
      proto::Stream* stream = footer->add_streams();
      stream->set_kind(static_cast<uint32_t>(StreamKind::kRowIndex));
      stream->set_node(15);
      stream->set_sequence(1000 + i);
      stream->set_length(0);
    }
  });
}

// A few hundred stored bytes, which any number of columns share, would be gigabytes of numbers.
TEST(Verify, RowIndexesThatShareTheirBytesAreRefusedBeforeTheyFillTheMemory) {
  TornFile file(Written(Options()));
  AddIndexes(&file, 400);
  file.ShareIndex(0, LongIndex(3, 1 << 20));
  EXPECT_THAT(
      Complaint(Rebuilt(std::move(file))),
      HasSubstr("t.dwrf: stripe 0: its row indexes and the statistics of its keys need more "
                "than 268435456 bytes of memory"));
}

TEST(Verify, EntriesOfARowIndexAreCountedBeforeTheyAreTakenApart) {
  TornFile file(Written(Options()));
  std::string entries;
  for (int i = 0; i < 1 << 19; ++i) entries += std::string("\x0a\0", 2);
  file.ShareIndex(0, entries);
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))),
              HasSubstr("the row index has 524288 entries, 1200 rows in strides of 500 have 3"));
}

TEST(Verify, ARowIndexThatIsNoMessageIsFound) {
  for (const std::string& bytes : {std::string("\x0a\x05\0", 3), std::string("\x0a"),
                                   std::string("\0", 1), std::string("\x0a\x02\x0a\x05", 4)}) {
    SCOPED_TRACE(Printable(bytes));
    TornFile file(Written(Options()));
    file.ShareIndex(0, bytes);
    EXPECT_THAT(Complaint(Rebuilt(std::move(file))), HasSubstr("t.dwrf: stripe 0, "));
  }
}

// A wide type below many keys of a few bytes each: two million nodes.
std::string ManyKeysOfAWideType() {
  std::string inner;
  for (int i = 0; i < 2000; ++i) inner += fmt::format("{}f{}:int", i == 0 ? "" : ",", i);
  const Schema schema = Schema::Parse("struct<m:map<int,struct<" + inner + ">>>");
  Column rows = EmptyColumn(schema, 0);
  rows.rows = rows.children[0].rows = 1;
  rows.children[0].offsets = {0, 0};
  WriterOptions options = Options();
  options.flat_maps = {"m"};
  TornFile file(WrittenAs(schema, options, rows));
  file.EditStripeFooter(0, [&](proto::StripeFooter* footer) {
    for (uint32_t key = 1; key <= 1000; ++key) {
      proto::ColumnEncoding* encoding = footer->add_encoding();
      encoding->set_kind(0);
      encoding->set_node(3);
      encoding->set_sequence(key);
      encoding->mutable_key()->set_int_key(key);
      proto::Stream* in_map = footer->add_streams();
      in_map->set_kind(static_cast<uint32_t>(StreamKind::kInMap));
      in_map->set_node(3);
      in_map->set_sequence(key);
      in_map->set_length(0);
    }
  });
  return Rebuilt(std::move(file));
}

// Every key has statistics of its own.
TEST(Verify, KeysTimesNodesAreRefusedBeforeTheyFillTheMemory) {
  EXPECT_THAT(
      Complaint(ManyKeysOfAWideType()),
      HasSubstr("t.dwrf: stripe 0: its row indexes and the statistics of its keys need more "
                "than 268435456 bytes of memory"));
}

TEST(RowReader, KeysTimesNodesAreRefusedBeforeTheyFillTheMemory) {
  RowReader rows(FileReader::Open(MemorySource("t.dwrf", ManyKeysOfAWideType())));
  Column batch;
  try {
    rows.NextBatch(1, 1 << 20, &batch);
    FAIL() << "two million readers";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kResources) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("t.dwrf: stripe 0, column m (node 1 sequence 0), "));
    EXPECT_THAT(error.what(), HasSubstr("keys of 2001 nodes each need more than 1073741824 bytes"));
  }
}

TEST(Verify, MoreStridesThanTheBytesCanMeanAreRefused) {
  TornFile file(Written(Options()));
  AddIndexes(&file, 2000);
  file.ShareIndex(0, LongIndex(static_cast<int>(kStripeRows), 0));
  file.footer()->set_row_index_stride(1);
  EXPECT_THAT(Complaint(Rebuilt(std::move(file))),
              HasSubstr("t.dwrf: stripe 0: 1200 strides of 1 rows, each of "));
}

// A seek unpacks a chunk from its beginning: a long chunk of equal values in many strides.
TEST(Verify, SeekingEndsWhereMoreIsUnpackedThanTheBytesCanMean) {
  WriterOptions options = Options();
  options.row_index_stride = 10;
  options.block_size = (8 << 20) - 1;
  TornFile file(Written(options));
  for (const uint32_t node : {3U, 10U})  // 120 seeks of 16 MB
    file.EditStream(
        0, StreamKind::kData, node, 0,
        [](std::string plain) { return plain + std::string(7 << 20, '\0'); }, true);
  const Verification v = VerifyBytes(Rebuilt(std::move(file)));
  EXPECT_EQ(v.rows, kRows);
  EXPECT_GT(v.seeks, 130u + 60u);  // the other stripes have 119 and 9
  EXPECT_LT(v.seeks, 247u);
  EXPECT_THAT(v.not_checked,
              testing::ElementsAre(testing::AllOf(
                  HasSubstr("positions from stripe 0, rows "),
                  HasSubstr("to read the strides again means to unpack more than"))));
}

// A file of claimed lengths, of which the end alone is there: the rest is a hole.
class SparseSource final : public Source {
 public:
  SparseSource(uint64_t size, std::string end) : size_(size), end_(std::move(end)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    ASSERT_LT(out.size(), uint64_t{1} << 30) << "read at " << offset;
    std::fill(out.begin(), out.end(), uint8_t{0});
    const uint64_t begin = size_ - end_.size();
    for (uint64_t i = 0; i < out.size(); ++i)
      if (offset + i >= begin) out[i] = static_cast<uint8_t>(end_[offset + i - begin]);
  }

 private:
  std::string name_ = "sparse.dwrf";
  uint64_t size_;
  std::string end_;
};

std::string SparseComplaint(uint64_t size, const std::string& end) {
  return ComplaintOf(
      [&] { FileReader::Open(std::make_shared<SparseSource>(size, end))->ReadStripe(0); });
}

std::string PostScriptOf(uint64_t footer_length) {
  proto::PostScript ps;
  ps.set_footer_length(footer_length);
  ps.set_compression(0);
  const std::string bytes = ps.SerializeAsString();
  return bytes + static_cast<char>(bytes.size());
}

TEST(Tail, AFooterIsNoLongerThanAnyFooterIs) {
  for (const uint64_t length : {uint64_t{3} << 30, uint64_t{1} << 40}) {
    EXPECT_THAT(SparseComplaint(uint64_t{1} << 41, PostScriptOf(length)),
                HasSubstr(fmt::format("{} bytes where at most 268435456 are supported", length)));
  }
}

TEST(StripeFooter, IsNoLongerThanAnyStripeFooterIs) {
  proto::Footer footer;
  footer.add_types()->set_kind(static_cast<uint32_t>(TypeKind::kStruct));
  footer.set_row_index_stride(0);
  proto::StripeInformation* stripe = footer.add_stripes();
  stripe->set_offset(3);
  stripe->set_index_length(0);
  stripe->set_data_length(0);
  stripe->set_footer_length(uint64_t{3} << 30);
  stripe->set_number_of_rows(1);
  const std::string bytes = footer.SerializeAsString();
  EXPECT_THAT(SparseComplaint(uint64_t{1} << 41, bytes + PostScriptOf(bytes.size())),
              HasSubstr("sparse.dwrf: stripe 0, footer at byte 3: 3221225472 bytes where at most "
                        "268435456 are supported"));
}

}  // namespace
}  // namespace headrace::reader::dwrf
