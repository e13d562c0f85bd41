// headrace plan --emit: settings that a run suggests for a DataLoader or a tf.data pipeline.
#pragma once
#include <string>

#include "analysis/advice/emit/emit.h"

namespace headrace::cli {

class CommandLine;

// --emit, after the options that do not go with it.
void AddEmitOption(CommandLine* command_line, std::string* target);

// `target` as the option has it: "dataloader" or "tfdata".
analysis::Emitted EmitFor(const std::string& target, const analysis::RunView& view,
                          const analysis::Budget& budget);

// The object "emit" of headrace.plan/1.
std::string EmitJson(const analysis::RunView& view, const analysis::Emitted& emitted);

// A complete headrace.plan/1 for a run seen from outside: it has no settings of ours, only "emit".
std::string OutsidePlanJson(const analysis::RunView& view, const analysis::Emitted& emitted);

}  // namespace headrace::cli
