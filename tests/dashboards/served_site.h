// A site over a store with one run, as the tests of the server ask it.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "dashboards/serve/server.h"
#include "tests/dashboards/stored_run.h"

namespace headrace::dashboards {

inline constexpr uint16_t kPort = 7070;

inline analysis::SimulatedPipeline SlowFetch() {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, 0.008, 0, 0, 0.2, -1}}},
                     {"decode", 1, 4, {{"decode", 0.001, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.004;
  return pipeline;
}

inline HttpRequest Get(const std::string& target) {
  return {"GET", target, {{"host", "127.0.0.1:7070"}}, ""};
}
inline HttpRequest Post(const std::string& target, const std::string& body) {
  return {"POST", target, {{"host", "127.0.0.1:7070"}, {"content-type", "application/json"}}, body};
}

class ServedSite : public testing::Test {
 protected:
  void SetUp() override {
    collectors::RunStore store(files_.path());
    StoreRun(store, analysis::Record(SlowFetch(), 8, 3), "one");
    site_ = std::make_unique<Site>(files_.path(), "headrace", "", AccessRules{.port = kPort});
  }
  nlohmann::json Json(const HttpRequest& request) {
    return nlohmann::json::parse(site_->Answer(request).body);
  }

  TemporaryStore files_;
  std::unique_ptr<Site> site_;
};

}  // namespace headrace::dashboards
