// The settings that a run of a pipeline file was made with, for commands that run it again.
#pragma once
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Each as "KEY=VALUE"; none where the run set nothing, or where that was not recorded.
std::vector<std::string> RecordedSettings(const RunRow& run);

// The value of "SECTION.KEY" in the run: what the run set, or else what its pipeline file says,
// without quotes; "" where neither names it.
std::string SettingInForce(const RunRow& run, const std::string& key);

// " --set a=1 --set b=2", quoted for a shell.
std::string RecordedOptions(const RunRow& run, const char* option = "--set");

// "file.toml --set a=1": how a command names the pipeline that was run.
std::string PipelineArguments(const RunRow& run);

}  // namespace headrace::analysis
