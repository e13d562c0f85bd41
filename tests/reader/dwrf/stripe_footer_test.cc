// Our parser of stripe footers against protobuf's: the same verdict and the same fields, on footers
// that are whole, that hold fields nobody knows, and that are damaged.
#include "reader/dwrf/stripe_footer.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "reader/dwrf/dwrf.pb.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

namespace pb = headrace::dwrf::proto;
using Random = std::mt19937_64;

bool Coin(Random& random) { return random() % 2 == 0; }
uint64_t AnySize(Random& random) { return random() >> (random() % 64); }

void PutVarint(std::string* out, uint64_t value, size_t at_least = 1) {
  for (; value >= 128 || at_least > 1; value >>= 7, at_least -= at_least > 1)
    out->push_back(static_cast<char>(value | 128));
  out->push_back(static_cast<char>(value));
}

pb::StripeFooter RandomFooter(Random& random) {
  pb::StripeFooter footer;
  for (uint64_t i = random() % 20; i > 0; --i) {
    pb::Stream* stream = footer.add_streams();
    if (Coin(random)) stream->set_kind(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) stream->set_node(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) stream->set_length(AnySize(random));
    if (Coin(random)) stream->set_use_vints(Coin(random));
    if (Coin(random)) stream->set_sequence(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) stream->set_column(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) stream->set_offset(AnySize(random));
  }
  for (uint64_t i = random() % 20; i > 0; --i) {
    pb::ColumnEncoding* encoding = footer.add_encoding();
    if (Coin(random)) encoding->set_kind(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) encoding->set_dictionary_size(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) encoding->set_node(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) encoding->set_sequence(static_cast<uint32_t>(AnySize(random)));
    if (Coin(random)) encoding->mutable_key();
    if (Coin(random)) encoding->mutable_key()->set_int_key(static_cast<int64_t>(random()));
    if (Coin(random)) encoding->mutable_key()->set_bytes_key(std::string(random() % 9, 'k'));
  }
  for (uint64_t i = random() % 3; i > 0; --i)
    footer.add_encryption_groups(std::string(random() % 300, 'g'));
  return footer;
}

// One field of any number and wire type, also of those that are known.
void PutField(Random& random, int depth, std::string* out) {
  const uint32_t number = static_cast<uint32_t>(1 + random() % 9), type = random() % 6;
  PutVarint(out, number << 3 | type, 1 + random() % 6);
  if (type == 0) PutVarint(out, random(), 1 + random() % 11);
  if (type == 1) out->append(8, 'x');
  if (type == 5) out->append(4, 'x');
  if (type == 2) {
    std::string inside;
    for (uint64_t i = depth > 0 ? random() % 4 : 0; i > 0; --i)
      PutField(random, depth - 1, &inside);
    PutVarint(out, inside.size(), 1 + random() % 6);
    *out += inside;
  }
  if (type == 3) {
    for (uint64_t i = depth > 0 ? random() % 3 : 0; i > 0; --i) PutField(random, depth - 1, out);
    PutVarint(out, (number + random() % 20 / 19) << 3 | 4);
  }
}

void Damage(Random& random, std::string* bytes) {
  for (uint64_t i = 1 + random() % 3; i > 0 && !bytes->empty(); --i) {
    const size_t at = random() % bytes->size();
    if (Coin(random)) (*bytes)[at] = static_cast<char>(random());
    if (random() % 4 == 0) bytes->resize(at);
    if (random() % 4 == 0)
      bytes->insert(std::min(at, bytes->size()), 1, static_cast<char>(random()));
  }
}

struct Listed {
  std::vector<FooterStream> streams;
  std::vector<FooterEncoding> encodings;
  std::vector<std::string> groups;
};

std::optional<Listed> ReadAll(const std::string& bytes) {
  using Item = StripeFooterReader::Item;
  StripeFooterReader reader({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const StripeFooterReader::Counts counts = reader.Count();
  Listed listed;
  for (;;) {
    const Item item = reader.Next();
    if (item == Item::kStream) listed.streams.push_back(reader.stream());
    if (item == Item::kEncoding) listed.encodings.push_back(reader.encoding());
    if (item == Item::kEncryptionGroup)
      listed.groups.emplace_back(reader.encryption_group().begin(),
                                 reader.encryption_group().end());
    if (item != Item::kEnd && item != Item::kDamaged) continue;
    EXPECT_EQ(reader.Next(), Item::kEnd);
    if (item == Item::kDamaged) return std::nullopt;
    EXPECT_EQ(counts.streams, listed.streams.size());
    EXPECT_EQ(counts.encodings, listed.encodings.size());
    return listed;
  }
}

// Returns whether the bytes are a footer, for both.
bool ExpectSame(const std::string& bytes) {
  pb::StripeFooter wanted;
  const bool is_footer = wanted.ParseFromString(bytes);
  const std::optional<Listed> footer = ReadAll(bytes);
  EXPECT_EQ(footer.has_value(), is_footer);
  if (!is_footer || !footer) return false;
  EXPECT_EQ(footer->streams.size(), static_cast<size_t>(wanted.streams_size()));
  EXPECT_EQ(footer->encodings.size(), static_cast<size_t>(wanted.encoding_size()));
  EXPECT_EQ(footer->groups.size(), static_cast<size_t>(wanted.encryption_groups_size()));
  if (testing::Test::HasFailure()) return true;
  for (int i = 0; i < wanted.streams_size(); ++i) {
    const FooterStream& a = footer->streams[static_cast<size_t>(i)];
    const pb::Stream& b = wanted.streams(i);
    EXPECT_EQ(a.kind, b.kind());
    EXPECT_EQ(a.node, b.node());
    EXPECT_EQ(a.length, b.length());
    EXPECT_EQ(a.use_vints, b.use_vints());
    EXPECT_EQ(a.sequence, b.sequence());
    EXPECT_EQ(a.column, b.column());
    EXPECT_EQ(a.offset.has_value(), b.has_offset());
    EXPECT_EQ(a.offset.value_or(0), b.offset());
  }
  for (int i = 0; i < wanted.encoding_size(); ++i) {
    const FooterEncoding& a = footer->encodings[static_cast<size_t>(i)];
    const pb::ColumnEncoding& b = wanted.encoding(i);
    EXPECT_EQ(a.kind, b.kind());
    EXPECT_EQ(a.dictionary_size, b.dictionary_size());
    EXPECT_EQ(a.node.has_value(), b.has_node());
    EXPECT_EQ(a.node.value_or(0), b.node());
    EXPECT_EQ(a.sequence, b.sequence());
    EXPECT_EQ(a.has_key, b.has_key());
    EXPECT_EQ(a.int_key, b.key().int_key());
    EXPECT_EQ(a.bytes_key, b.key().bytes_key());
  }
  for (int i = 0; i < wanted.encryption_groups_size(); ++i) {
    EXPECT_EQ(footer->groups[static_cast<size_t>(i)], wanted.encryption_groups(i));
  }
  return true;
}

TEST(StripeFooterReader, ReadsWhatProtobufReads) {
  Random random(TestSeed());
  int whole = 0, damaged = 0;
  for (int trial = 0; trial < 20000 && !HasFailure(); ++trial) {
    std::string bytes = RandomFooter(random).SerializeAsString();
    if (trial % 3 == 0)
      for (uint64_t i = random() % 6; i > 0; --i) PutField(random, 3, &bytes);
    if (trial % 2 == 0) Damage(random, &bytes);
    ++(ExpectSame(bytes) ? whole : damaged);
  }
  // Neither is rare, so that both are tried.
  EXPECT_GT(whole, 2000);
  EXPECT_GT(damaged, 2000);
}

}  // namespace
}  // namespace headrace::reader::dwrf
