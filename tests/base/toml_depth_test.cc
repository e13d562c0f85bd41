#include "base/toml_depth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using testing::HasSubstr;

std::string Many(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

struct Case {
  const char* name;
  std::string text;
  int line;  // of the refusal; 0: accepted
};

const Case kCases[] = {
    {"empty", "", 0},
    {"longest key", Many("a.", 32) + "b = 1", 0},
    {"key too long", "x = 1\n" + Many("a.", 33) + "b = 1", 2},
    {"very long", Many("a.", 200000) + "b = 1", 1},
    {"blanks between", Many("a \t. ", 33) + "b = 1", 1},
    {"quoted parts", Many("\"a\".", 33) + "b = 1", 1},
    {"literal parts", Many("'a'.", 33) + "b = 1", 1},
    {"empty parts", Many("\"\".", 33) + "b = 1", 1},
    {"header", "\n\n[" + Many("a.", 33) + "b]", 3},
    {"within a table", "t = { " + Many("a.", 33) + "b = 1 }", 1},
    {"second in a table", "t = { a = 1, " + Many("a.", 33) + "b = 1 }", 1},
    {"dots of many keys", Many("a.b = 1.5\n", 100), 0},
    {"dots of numbers", "a = [" + Many("1.5, ", 100) + "]", 0},
    {"in a text", "a = \"" + Many("a.", 100) + "\"", 0},
    {"behind an escaped quote", "a = \"\\\"" + Many("a.", 100) + "\"", 0},
    {"literals have no escapes", "a = 'x\\'\n" + Many("a.", 33) + "b = 1", 2},
    {"in a literal", "a = '" + Many("[", 100) + "'", 0},
    {"in a long text", "a = \"\"\"\n" + Many("a.[\"", 100) + "\n\"\"\"\nb = 1", 0},
    {"behind a long text", "a = \"\"\"\n\\\"\"\" \n\"\"\"\"\"\n" + Many("a.", 33) + "b = 1", 4},
    {"behind a long literal", "a = '''\n\\'''\n" + Many("a.", 33) + "b = 1", 3},
    {"behind an empty text", "a = \"\"\n" + Many("a.", 33) + "b = 1", 2},
    {"behind an open text", "a = \"x\n" + Many("a.", 33) + "b = 1", 2},
    {"in a comment", "# " + Many("a.[", 100) + "\na = 1", 0},
    {"deepest", "a = " + Many("[", 32) + Many("]", 32), 0},
    {"too deep", "a = " + Many("[", 33) + Many("]", 33), 1},
    {"too deep over lines", "a = " + Many("[\n", 33), 33},
    {"tables too deep", "a = " + Many("{a=", 33), 1},
    {"many beside each other", "a = [" + Many("[1],", 100) + "]", 0},
};

TEST(TomlDepth, WhatNestsTooDeepIsRefusedWithItsLine) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    try {
      CheckTomlDepth(c.text, "n.toml", ExitCode::kBadData);
      EXPECT_EQ(c.line, 0) << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_EQ(error.where(), "n.toml:" + std::to_string(c.line));
      EXPECT_THAT(error.fact(), HasSubstr("more than 3"));
    }
  }
}

}  // namespace
}  // namespace headrace
