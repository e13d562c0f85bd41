// A Sink that keeps the figures of one Read, for tests of probes without stacks.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "probes/metric.h"
#include "probes/probe.h"

namespace headrace::probes {

using FigureKey = std::pair<std::string, Labels>;

struct Collected : Sink {
  void Add(const Measurement& m) override { values[{std::string(m.metric), m.labels}] += m.value; }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view, int64_t, std::optional<int64_t>) override {}
  std::map<FigureKey, double> values;

  std::optional<double> Find(const std::string& metric, const Labels& labels) const {
    const auto it = values.find({metric, labels});
    return it == values.end() ? std::nullopt : std::optional(it->second);
  }
};

inline std::string Describe(const FigureKey& key) {
  std::ostringstream text;
  text << key.first << "{pid " << key.second.pid << ", thread '" << key.second.thread
       << "', subject '" << key.second.subject << "', cause '" << key.second.cause << "'}";
  return text.str();
}

// Every figure is listed, finite, and where it must be, not below 0.
inline void ExpectSound(const Collected& collected) {
  for (const auto& [key, value] : collected.values) {
    const Metric* metric = FindMetric(key.first);
    ASSERT_NE(metric, nullptr) << key.first << " is not in probes/metrics/host.def";
    EXPECT_TRUE(HasUnitSuffix(*metric)) << key.first;
    EXPECT_TRUE(std::isfinite(value)) << Describe(key);
    if (key.first != "temperature_celsius") {
      EXPECT_GE(value, 0) << Describe(key);
    }
  }
}

}  // namespace headrace::probes
