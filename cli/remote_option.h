// --endpoint, --region: where an S3 store is; options of the commands that look at a file or a
// table by its place, which may be an http://, https:// or s3:// URL as well (docs/storage.md).
#pragma once
#include "reader/source/options.h"

namespace headrace::cli {

class CommandLine;

void AddRemoteOptions(CommandLine* command_line, reader::SourceOptions* options);

}  // namespace headrace::cli
