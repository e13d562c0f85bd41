// What tests of the bench's gates read and print.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/validation/gates.h"

namespace headrace::validation {

inline void Print(const std::vector<Gate>& gates) {
  for (const Gate& gate : gates) {
    std::printf("%-4s %-70s %10s %9s %5zu %s\n", gate.id.c_str(), gate.what.c_str(),
                gate.line.c_str(), gate.figure.c_str(), gate.trials, gate.holds() ? "" : "missed");
  }
}

inline double ValueOf(const std::vector<Gate>& gates, const std::string& what) {
  for (const Gate& gate : gates) {
    if (gate.what == what) return gate.value;
  }
  ADD_FAILURE() << "no gate '" << what << "'";
  return NAN;
}

}  // namespace headrace::validation
