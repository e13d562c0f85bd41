// Fuzzes the parser of plan files: any bytes are settings and perhaps a prediction, or an Error
// with code 5 on one line that names the file.
//
// fuzz run: share=1 length=16384
// fuzz layers: base
// fuzz libs: fmt::fmt nlohmann_json::nlohmann_json
// fuzz sources: experiments/plan_file.cc experiments/json_fault.cc
#include <cmath>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "experiments/plan_file.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const experiments::PlanFile plan =
        experiments::ParsePlan({reinterpret_cast<const char*>(data), size}, "plan.json", 2);
    if (!plan.prediction) return 0;
    HR_CHECK(!plan.settings.empty(), "a plan that changes nothing predicts nothing");
    const double rate = plan.prediction->batches_per_second;
    HR_CHECK(std::isfinite(rate) && rate > 0, "a rate");
    HR_CHECK(plan.prediction->from_run_id.value_or(0) >= 0, "a run");
  } catch (const Error& error) {
    const std::string line = error.what();
    HR_CHECK(error.code() == ExitCode::kBadData, line.c_str());
    HR_CHECK(line.find('\n') == std::string::npos, "one line");
    HR_CHECK(line.starts_with("plan.json: "), "the file");
  }
  return 0;
}
