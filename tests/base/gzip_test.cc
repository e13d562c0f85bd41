#include "base/gzip.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Gzip, WhatIsCompressedComesBackByteForByte) {
  std::string text;
  for (size_t size : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{300000}}) {
    while (text.size() < size) text += static_cast<char>(text.size() * text.size() % 251);
    text.resize(size);
    const std::string member = Gzipped(text);
    EXPECT_EQ(Gunzipped(member), text) << size;
  }
  const std::string same(1 << 20, 'x');
  EXPECT_LT(Gzipped(same).size(), same.size() / 100);
}

TEST(GzipDeathTest, WhatIsDamagedIsNoMember) {
  std::string member = Gzipped("the pages of the program");
  member.resize(member.size() - 9);
  EXPECT_DEATH(Gunzipped(member), "no gzip member");
  EXPECT_DEATH(Gunzipped("the pages of the program"), "no gzip member");
}

}  // namespace
}  // namespace headrace
