#include "cli/remote_option.h"

#include <CLI/CLI.hpp>

namespace headrace::cli {

void AddRemoteOptions(CLI::App* app, reader::SourceOptions* options) {
  app->add_option("--endpoint", options->remote.endpoint,
                  "Ask this store for s3:// places (default AWS); keys come from the environment")
      ->type_name("URL");
  app->add_option("--region", options->remote.region,
                  "Sign requests for s3:// places for this region")
      ->type_name("NAME")
      ->capture_default_str();
}

}  // namespace headrace::cli
