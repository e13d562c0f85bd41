// What holds for every operator of a pipeline, whoever adds one.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

TEST(Operators, EveryFileOfTheFolderIsRegistered) {
  const std::set<std::string> shared = {"synthetic"};
  const std::filesystem::path folder =
      std::filesystem::path(HEADRACE_SOURCE_DIR) / "reader" / "pipeline" / "operators";
  size_t seen = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string stem = file.path().stem().string();
    if (file.path().extension() != ".cc" || shared.count(stem) > 0) continue;
    ++seen;
    EXPECT_NE(OperatorRegistry::Global().Find(stem), nullptr)
        << file.path() << " registers no operator of its name (HR_OPERATOR)";
  }
  EXPECT_EQ(seen, OperatorRegistry::Global().entries().size())
      << "an operator is registered by a file of another name";
}

TEST(Operators, EveryEntrySaysWhereItStands) {
  std::set<int> orders;
  for (const auto& [kind, entry] : OperatorRegistry::Global().entries()) {
    SCOPED_TRACE(kind);
    EXPECT_TRUE(orders.insert(entry.order).second) << "another one has the same order";
    EXPECT_EQ(entry.takes == ElementForm::kAny, entry.makes == ElementForm::kAny);
    EXPECT_LE(entry.takes, entry.makes) << "no operator leads back";
    EXPECT_NE(entry.make, nullptr);
    EXPECT_EQ(entry.parse != nullptr, std::string(entry.needs) != "")
        << "one with keys says what it needs, one without needs nothing";
    EXPECT_TRUE(entry.parse != nullptr || entry.keys.empty()) << "keys that nobody reads";
  }
}

TEST(Operators, EveryKindIsInTheManual) {
  const std::string page = ReadWholeFile(std::string(HEADRACE_SOURCE_DIR) + "/docs/pipeline.md");
  for (const auto& [kind, entry] : OperatorRegistry::Global().entries()) {
    const std::string row = entry.parse == nullptr ? "| `" + kind + "` |" : "| `{ " + kind + " =";
    EXPECT_NE(page.find(row), std::string::npos) << kind << " has no row in docs/pipeline.md";
  }
}

// Each pipeline file that has an operator with keys by its name alone learns what is missing.
TEST(Operators, KeysAreAskedFor) {
  for (const auto& [kind, entry] : OperatorRegistry::Global().entries()) {
    if (entry.parse == nullptr) continue;
    try {
      ParsePipeline("source = { synthetic = {} }\nstage = [{ name = \"s\", operators = [\"" + kind +
                        "\"] }]\n",
                    "p.toml", "/");
      FAIL() << kind << " was taken without its keys";
    } catch (const Error& error) {
      EXPECT_EQ(error.fact(), "'" + kind + "' needs " + entry.needs);
      EXPECT_EQ(error.where(), "p.toml:2:37");
    }
  }
}

}  // namespace
}  // namespace headrace::reader
