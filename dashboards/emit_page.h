// Settings for somebody else's loader, as `headrace plan --emit` prints and writes them.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/advice/emit/emit.h"
#include "analysis/run/run_view.h"

namespace headrace::dashboards {

// Python to be pasted; for a DataLoader also the command that writes the plan, to `output` if it is
// not empty, and the call that applies it.
std::string EmitText(const analysis::RunView& run, const analysis::Emitted& emitted,
                     const std::string& output);

// The object "emit" of headrace.plan/1.
nlohmann::ordered_json EmitJson(const analysis::RunView& run, const analysis::Emitted& emitted);

// A complete headrace.plan/1 for a run seen from outside: it has no settings of ours, only "emit".
std::string OutsidePlanJson(const analysis::RunView& run, const analysis::Emitted& emitted);

}  // namespace headrace::dashboards
