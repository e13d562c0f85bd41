#include "dashboards/export/escape.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "base/terminal_text.h"
#include "tests/dashboards/export/exported_store.h"
#include "tests/seed.h"

namespace headrace::dashboards {
namespace {

TEST(Escape, NamesInEachFormat) {
  const struct {
    const char* name;
    std::string text, json, csv, folded, metric;
  } cases[] = {{"plain", "decode 2", "\"decode 2\"", "decode 2", "decode 2", "decode 2"},
               {"empty", "", "\"\"", "\"\"", "", ""},
               {"quote", "a\"b", "\"a\\\"b\"", "\"a\"\"b\"", "a\"b", "a\\\"b"},
               {"backslash", "a\\b", "\"a\\\\b\"", "a\\b", "a\\b", "a\\\\b"},
               {"comma and semicolon", "a,b;c", "\"a,b;c\"", "\"a,b;c\"", "a,b:c", "a,b;c"},
               {"line end", "a\nb", "\"a\\nb\"", "\"a\nb\"", "a\\x0ab", "a\\\\x0ab"},
               {"escape", "a\x1b[2J", "\"a\\u001b[2J\"", "a\x1b[2J", "a\\x1b[2J", "a\\\\x1b[2J"},
               {"not UTF-8", "a\xff", "\"a\xef\xbf\xbd\"", "a\xff", "a\\xff", "a\\\\xff"},
               {"other letters", "d\u00e9codage \u5317", "\"d\u00e9codage \u5317\"",
                "d\u00e9codage \u5317", "d\u00e9codage \u5317", "d\u00e9codage \u5317"},
               {"direction", "a\u202eb", "\"a\u202eb\"", "a\u202eb", "a\\u202eb", "a\\\\u202eb"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(JsonString(c.text), c.json);
    EXPECT_EQ(CsvField(c.text), c.csv);
    EXPECT_EQ(FoldedFrame(c.text), c.folded);
    EXPECT_EQ(MetricText(c.text), c.metric);
  }
}

TEST(Escape, AnyBytesStayOneStringOfJsonAndOneLineOfOthers) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 30, '\0');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_EQ(nlohmann::json::parse(JsonString(text)).get<std::string>(), Utf8(text));
    for (const std::string& line : {FoldedFrame(text), MetricText(text)}) {
      for (size_t at = 0; at < line.size();) {
        const CodePoint c = CodePointAt(line, at);
        ASSERT_NE(c.length, 0u);
        ASSERT_FALSE(IsObeyed(c.value));
        at += c.length;
      }
    }
    EXPECT_EQ(FoldedFrame(text).find(';'), std::string::npos);
    EXPECT_TRUE(std::regex_match(MetricText(text), std::regex("([^\"\\\\]|\\\\[\\\\\"n])*")));
    EXPECT_TRUE(std::regex_match(MetricName(text), std::regex("[a-zA-Z][a-zA-Z0-9_]*")));
  }
}

}  // namespace
}  // namespace headrace::dashboards
