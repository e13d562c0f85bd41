#include "dashboards/export/proto_writer.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/seed.h"

namespace headrace::dashboards {
namespace {

TEST(Proto, BytesAreThoseOfTheSpecification) {
  const struct {
    const char* name;
    std::function<void(ProtoWriter*)> write;
    std::string bytes;
  } cases[] = {
      // The first two are the examples of the encoding guide.
      {"150 in field 1", [](ProtoWriter* w) { w->Whole(1, 150); }, "\x08\x96\x01"},
      {"testing in field 2", [](ProtoWriter* w) { w->Text(2, "testing"); }, "\x12\x07testing"},
      {"-1 takes ten bytes", [](ProtoWriter* w) { w->Signed(1, -1); },
       "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
      {"field 16 takes two bytes", [](ProtoWriter* w) { w->Whole(16, 1); }, "\x80\x01\x01"},
      {"1.0", [](ProtoWriter* w) { w->Double(1, 1.0); },
       std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9)},
      {"fixed 1", [](ProtoWriter* w) { w->Fixed64(1, 1); }, std::string("\x09\1\0\0\0\0\0\0\0", 9)},
      {"packed 3, 270",
       [](ProtoWriter* w) {
         const uint64_t values[] = {3, 270};
         w->Packed(4, values);
       },
       "\x22\x03\x03\x8e\x02"},
      {"no packed numbers", [](ProtoWriter* w) { w->Packed(4, {}); }, ""},
      {"not UTF-8", [](ProtoWriter* w) { w->Text(1, "a\xff"); },
       "\x0a\x04"
       "a\xef\xbf\xbd"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    ProtoWriter writer;
    c.write(&writer);
    EXPECT_EQ(writer.bytes(), c.bytes);
  }
}

TEST(Proto, WhatIsWrittenIsRead) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    ProtoWriter writer, inner;
    const auto field = static_cast<uint32_t>(1 + random() % 1'000'000);
    const uint64_t number = random() >> (random() % 64);
    const std::string text(random() % 300, 'x');
    writer.Whole(field, number);
    writer.Fixed64(field + 1, number);
    inner.Text(field, text);
    writer.Message(field + 2, inner);
    ProtoReader reader(writer.bytes());
    auto read = reader.Next();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->number, field);
    EXPECT_EQ(read->value, number);
    read = reader.Next();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->value, number);
    read = reader.Next();
    ASSERT_TRUE(read);
    ProtoReader within(read->bytes);
    EXPECT_EQ(within.Next()->bytes, text);
    EXPECT_FALSE(reader.Next());
    EXPECT_FALSE(reader.damaged());
  }
}

TEST(Proto, DamagedBytesEndTheFieldsAndNothingElse) {
  const std::string_view damaged[] = {"\x08",
                                      "\x08\xff",
                                      "\x0a\x05"
                                      "ab",
                                      "\x09"
                                      "1234",
                                      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                      "\x0b",
                                      "\x0f",
                                      std::string_view("\0\0", 2)};
  for (const std::string_view bytes : damaged) {
    ProtoReader reader(bytes);
    EXPECT_FALSE(reader.Next());
    EXPECT_TRUE(reader.damaged());
    EXPECT_FALSE(reader.Next());
  }
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    ProtoReader reader(bytes);
    size_t fields = 0;
    while (const auto field = reader.Next()) {
      ++fields;
      EXPECT_LE(field->bytes.size(), bytes.size());
    }
    EXPECT_LE(fields, bytes.size());
  }
}

}  // namespace
}  // namespace headrace::dashboards
