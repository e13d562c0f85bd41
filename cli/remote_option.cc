#include "cli/remote_option.h"

#include "cli/command_line.h"

namespace headrace::cli {

void AddRemoteOptions(CommandLine* command_line, reader::SourceOptions* options) {
  command_line
      ->AddOption("--endpoint", options->remote.endpoint,
                  "Ask this store for s3:// places (default AWS); keys come from the environment")
      ->TypeName("URL");
  command_line
      ->AddOption("--region", options->remote.region,
                  "Sign requests for s3:// places for this region")
      ->TypeName("NAME")
      ->ShowDefault();
}

}  // namespace headrace::cli
