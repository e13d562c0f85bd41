// The settings of a run: those in force, and those that were set on top of its pipeline file, for
// commands that run it again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// The value in force of "SECTION.KEY" ("source.epochs", "pipeline.order", "source.throttle.iops"),
// which is the default where nothing names it; empty for runs whose settings are not recorded:
// those of other programs and of earlier versions.
std::optional<std::string> SettingOf(const RunRow& run, const std::string& key);

// The same of a size or a rate ("128KiB", "200MB/s"), in bytes and bytes per second; empty also for
// what is neither ("auto").
std::optional<double> BytesSettingOf(const RunRow& run, const std::string& key);

// The `op` of each [[transform]], in the file's order.
std::vector<std::string> TransformsOf(const RunRow& run);

// How often the job reads its table (source.epochs); 0: for ever. A run by the clock may read it
// more or less often, which says nothing about the job. Empty where it is not recorded.
std::optional<int> EpochsOf(const RunRow& run);

// What was set on top of the file, each as "KEY=VALUE"; none where the run set nothing, or where
// that was not recorded.
std::vector<std::string> RecordedSettings(const RunRow& run);

// " --set a=1 --set b=2", quoted for a shell.
std::string RecordedOptions(const RunRow& run, const char* option = "--set");

// The run's pipeline file as a shell takes it: from the current folder where it lies below that, as
// whoever reads the command would type it.
std::string PipelineWord(const RunRow& run);

// "file.toml --set a=1": how a command names the pipeline that was run.
std::string PipelineArguments(const RunRow& run);

// The command that runs that pipeline with `settings` ("knob=value") on top, quoted for a shell.
std::string RunCommand(const RunView& run, const std::vector<std::string>& settings);

}  // namespace headrace::analysis
