// docs/adding-a-transform.md: the file it shows is the file, and the example it gives runs from a
// pipeline file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "reader/pipeline/spec.h"
#include "tests/reader/transforms/example_text.h"

namespace headrace::reader {
namespace {

const std::string kPage = std::string(HEADRACE_SOURCE_DIR) + "/docs/adding-a-transform.md";

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Where the first block of `language` begins and ends.
std::pair<size_t, size_t> Block(const std::string& page, const std::string& language) {
  const std::string fence = "```" + language + "\n";
  const size_t begin = page.find(fence) + fence.size();
  return {begin, page.find("```", begin)};
}

TEST(AddingATransform, ThePageShowsTheWholeFile) {
  std::string page = ReadText(kPage);
  const std::string file =
      ReadText(std::string(HEADRACE_SOURCE_DIR) + "/reader/transforms/enumerate.cc");
  const auto [begin, end] = Block(page, "cpp");
  if (std::getenv("HEADRACE_UPDATE_GOLDEN") != nullptr) {
    page.replace(begin, end - begin, file);
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), file)
      << kPage << "; HEADRACE_UPDATE_GOLDEN=1 rewrites it";
}

TEST(AddingATransform, TheExampleRunsFromAPipelineFile) {
  const std::string page = ReadText(kPage);
  const auto [begin, end] = Block(page, "toml");
  const std::string pipeline =
      "source = { table = \"t\" }\nprojection = { maps = { sparse = [17] } }\n"
      "stage = [{ name = \"all\", operators = [\"fetch\", \"decompress\", \"decode\", \"extract\", "
      "\"transform\"] }]\n" +
      page.substr(begin, end - begin);
  const PipelineSpec spec = ParsePipeline(pipeline, "p.toml", "/");
  // "turns the lists `INPUT` (...) into `OUTPUT`"
  const size_t sentence = page.find("turns the lists `", end);
  ASSERT_NE(sentence, std::string::npos);
  const auto quoted = [&](size_t from) {
    const size_t first = page.find('`', from) + 1;
    return page.substr(first, page.find('`', first) - first);
  };
  FlatMapBatch batch =
      ParseExample(*TransformRegistry::Global().Find("enumerate"), quoted(sentence));
  batch.sparse[0].name = "sparse:17";
  const TransformPlan plan(spec.transforms, spec.seed);
  plan.ValidateAgainst(ColumnsOf(batch));
  plan.Apply(0, batch);
  ASSERT_NE(batch.FindSparse("position:17"), nullptr);
  EXPECT_EQ(SparseText(*batch.FindSparse("position:17")), quoted(page.find("into `", sentence)));
}

}  // namespace
}  // namespace headrace::reader
