// Compares a text people read with tests/golden/NAME; HEADRACE_UPDATE_GOLDEN=1 rewrites it.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace headrace {

inline void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(HEADRACE_SOURCE_DIR) + "/tests/golden/" + name;
  if (std::getenv("HEADRACE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream in(path);
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(expected.str(), text)
      << "golden " << name << "; HEADRACE_UPDATE_GOLDEN=1 rewrites it, review the difference";
}

}  // namespace headrace
