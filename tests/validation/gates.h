// Gates: what the trials must show, what they show, and the page that says so (docs/accuracy.md).
#pragma once
#include <string>
#include <vector>

#include "tests/validation/bench.h"

namespace headrace::validation {

struct Gate {
  std::string id, what, line;  // "G1", "median error of the rate", "<= 5 %"
  double value = 0, limit = 0;
  bool at_least = false;  // the value must be at least the limit, else at most
  std::string figure;     // "3.1 %"
  size_t trials = 0;
  bool holds() const { return at_least ? value >= limit : value <= limit; }
};

std::vector<Gate> Judge(const Trials& trials);

// The page.
std::string RenderPage(const Trials& trials);

double QuantileOf(std::vector<double> values, double q);
// Lower end of Wilson's 95 % interval of a share.
double WilsonLow(size_t right, size_t all);

}  // namespace headrace::validation
