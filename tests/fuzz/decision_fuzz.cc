// Fuzzes what is read of stored decisions: whatever their detail and their columns hold, the text
// is printable lines, and a detail that is called whole can be handed on as JSON.
//
// fuzz run: share=1 length=16384
// fuzz layers: base
// fuzz libs: fmt::fmt nlohmann_json::nlohmann_json
// fuzz sources: experiments/decision_text.cc experiments/json_fault.cc
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "experiments/decision_text.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  analysis::DecisionRow decision;
  decision.detail_json = text;
  decision.predicted_rate = decision.observed_rate = 100;
  // The last bytes are columns too.
  if (size >= 16) {
    std::memcpy(&decision.index, data + size - 16, 8);
    std::memcpy(&decision.at_ns, data + size - 8, 8);
    decision.action = decision.limited_by = decision.reason = text.substr(size - 16);
    decision.changes.push_back({text.substr(size / 2), "1", text});
  }
  const std::string page = experiments::DecisionText(decision);
  HR_CHECK(!page.empty() && page.back() == '\n', "lines");
  for (const char c : page)
    HR_CHECK(c == '\n' || static_cast<unsigned char>(c) >= 0x20, "printable");
  if (!experiments::ReadDetail(text).whole) return 0;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  list.push_back(nlohmann::ordered_json::parse(text));
  HR_CHECK(nlohmann::json::accept(list.dump(2)), "it is written as it was read");
  return 0;
}
