// Messages on the wire: every kind survives, and nothing that is not one is taken for one.
#include "reader/service/message.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace::reader::service {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// One of each kind, every field of it set.
std::vector<Message> OneOfEach() {
  const Fingerprint print{1, 2, 3, 4};
  return {Join{1, 2, 3, 4, 5, 6, 7, "shm:/a", "host", {"state", std::string(300, '\0')}},
          Waiting{{1, 2}},
          Started{1, 2, 3, 4, 5, 6, 7, 1, print, 8, 3, {{7, 2}, {0, 1}}},
          Again{},
          Superseded{1, "why"},
          Refused{2, "why", "fix"},
          Report{1, 2, {{3, 4, 5, 6, 7}, {8, 9, 10, 11, 12}}, 13, 14, 15, 16, 17, 1, 1},
          Ended{1},
          Register{1, -2, "host", 3},
          Session{1, "p", "text", "folder", {{"a", "b"}}, print, 4, 5, {"unix:/x", ""}},
          Ask{1, 2},
          Lease{1, 2, 3, {5, 6, 7}, {{8, 9}}},
          Cut{1, 2},
          Failed{5, "why"},
          Alive{1, 2, 3, 4, 5},
          Drain{},
          Bye{},
          Command{"drain", "7"},
          Answer{1, "{}"},
          Measured{1, 2, -3, "bytes"},
          Kept{1, 2},
          Submit{"p", {{"a", "b"}}, 2, 1},
          EpochsOver{1, 2, 3},
          AskSplits{1, 2},
          Splits{1, 2, {{3, 4}}},
          Offer{1, "node7", 8, {{"/job", 3}}},
          Assign{{{"/job", 4}, {"tls:a:1", 2}}},
          Want{"job", "/job", "node7", "node7:/job", 3, 4},
          Grant{1, 2},
          GiveBack{1, {{2, 3}, {4, 5}}}};
}

TEST(ServiceMessage, EveryKindSurvivesTheWire) {
  const std::vector<Message> messages = OneOfEach();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (const Message& message : messages) {
    const std::string bytes = Serialize(message);
    EXPECT_EQ(MessageBytes(BytesOf(bytes)), bytes.size());
    const Message back = ParseMessage(BytesOf(bytes));
    EXPECT_EQ(back.index(), message.index());
    EXPECT_EQ(Serialize(back), bytes);
  }
  const auto lease = std::get<Lease>(ParseMessage(BytesOf(Serialize(messages[11]))));
  EXPECT_EQ(lease.deal, (Deal{5, 6, 7}));
  EXPECT_EQ(lease.wanted, (std::vector<RowRange>{{8, 9}}));
}

TEST(ServiceMessage, AnythingCutOrChangedIsRefused) {
  for (const Message& message : OneOfEach()) {
    const std::string bytes = Serialize(message);
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_THROW(ParseMessage(BytesOf(bytes.substr(0, size))), Error) << size;
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      EXPECT_THROW(ParseMessage(BytesOf(changed)), Error) << at;
    }
    EXPECT_THROW(ParseMessage(BytesOf(bytes + "x")), Error);
  }
}

TEST(ServiceMessage, AnotherVersionIsNamed) {
  std::string bytes = Serialize(Again{});
  bytes[4] = 99;
  try {
    MessageBytes(BytesOf(bytes));
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(error.fact().find("version 99"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::reader::service
