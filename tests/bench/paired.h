// What benchmarks share that hold ours against a rival's in one process.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/error.h"

namespace headrace::bench {

// The value at share `q` (0 to 1) of the sorted values, of which there is at least one.
inline double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// By pair: what each side returned, in the unit of the sides.
struct Pairs {
  std::vector<double> ours, rival;
};

// Runs both sides in turns; which is first changes from pair to pair.
inline Pairs MeasurePairs(int pairs, const std::function<double()>& ours,
                          const std::function<double()>& rival) {
  Pairs measured;
  for (int i = 0; i < pairs; ++i) {
    if (i % 2 == 0) measured.ours.push_back(ours());
    measured.rival.push_back(rival());
    if (i % 2 != 0) measured.ours.push_back(ours());
  }
  return measured;
}

// The exit code of a benchmark; an Error is told on stderr behind its name.
template <typename Main>
int Run(const char* name, const Main& main, int argc, char** argv) {
  try {
    return main(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return static_cast<int>(error.code());
  }
}

}  // namespace headrace::bench
