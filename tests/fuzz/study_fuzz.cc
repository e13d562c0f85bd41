// Fuzzes what `characterize` reads back from its folder, and of a table that was generated: any
// bytes are refused, or are read as what is written and read again the same.
//
// fuzz run: share=1 length=16384
// fuzz layers: base
// fuzz libs: fmt::fmt nlohmann_json::nlohmann_json
// fuzz sources: experiments/study_files.cc experiments/json_fault.cc
#include <cstdint>
#include <functional>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "experiments/study_files.h"

using namespace headrace;

namespace {

void RefusesOrDoes(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData, error.what());
    HR_CHECK(std::string(error.what()).find('\n') == std::string::npos, "one line");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto inputs = experiments::ParseInputs(text))
    HR_CHECK(experiments::ParseInputs(experiments::InputsJson(*inputs)) == inputs, "inputs");
  const experiments::GeneratedTable table = experiments::ParseGenerated(text);
  HR_CHECK(!table.feature_ratio || (*table.feature_ratio > 0 && *table.feature_ratio <= 1),
           "ratio");
  RefusesOrDoes([&] {
    const int64_t run = experiments::ParseRun(text);
    HR_CHECK(run > 0 && experiments::ParseRun(experiments::RunJson(run)) == run, "a run");
  });
  RefusesOrDoes([&] {
    const std::string once = experiments::PairsJson(experiments::ParsePairs(text));
    HR_CHECK(experiments::PairsJson(experiments::ParsePairs(once)) == once, "pairs");
  });
  RefusesOrDoes([&] {
    const std::string once = experiments::FactsJson(experiments::ParseFacts(text, "facts"));
    HR_CHECK(experiments::FactsJson(experiments::ParseFacts(once, "facts")) == once, "facts");
  });
  return 0;
}
