#include "cli/service_options.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "experiments/interrupt.h"
#include "reader/service/control.h"

namespace headrace::cli {

void SayService(const ServiceOptions& options, const std::string& text) {
  if (!options.quiet) std::fputs(fmt::format("headrace service: {}\n", text).c_str(), stderr);
}

std::string AskDispatcher(const ServiceOptions& options, const reader::service::Message& question,
                          const std::string& about, const std::string& fix) {
  namespace service = reader::service;
  constexpr int64_t kAnswerNs = 10'000'000'000;
  std::string why;
  const auto place = FindJobPlace(options.job, options.place, false);
  const auto connection = place->Connect([] { return experiments::Interrupted(); }, &why).control;
  if (!connection)
    throw Error(ExitCode::kFailure, "has no dispatcher " + (why.empty() ? "here" : "now: " + why),
                options.job,
                place->folder().empty()
                    ? ""
                    : fmt::format("start a job: headrace service up PIPELINE --job {0}; or a pool: "
                                  "headrace service pool {0}",
                                  options.job));
  connection->Send(question);
  for (const int64_t until = MonotonicNs() + kAnswerNs; MonotonicNs() < until;) {
    for (const service::Message& message : connection->Receive(100)) {
      if (const auto* refused = std::get_if<service::Refused>(&message))
        throw Error(static_cast<ExitCode>(refused->code), refused->reason, options.job,
                    refused->fix);
      const auto* answer = std::get_if<service::Answer>(&message);
      if (answer == nullptr) continue;
      if (answer->code == 0) return answer->text;
      throw Error(static_cast<ExitCode>(answer->code), answer->text, about, fix);
    }
    if (connection->is_closed()) break;
  }
  throw Error(ExitCode::kFailure, "its dispatcher does not answer", options.job);
}

}  // namespace headrace::cli
