#include "experiments/run_sample.h"

#include <optional>

#include "base/error.h"
#include "reader/source/open.h"

namespace headrace::experiments {

std::vector<collectors::RunFact> TakeRunSamples(const reader::PipelineSpec& spec,
                                                const reader::Table& opened,
                                                const std::function<bool()>& stop) {
  if (spec.synthetic || reader::IsRemote(spec.table) || spec.cold_reads || !spec.keys.empty() ||
      spec.repeat_first_batch) {
    return {};
  }
  std::vector<collectors::RunFact> facts;
  std::optional<reader::Table> unthrottled;
  for (const auto& [name, sample] : Registry<RunSample>::Global().entries()) {
    if (stop && stop()) break;
    try {
      if (spec.throttle.enabled() && !unthrottled)
        unthrottled = reader::OpenTable(spec.table, spec.io);
      const reader::Table& table = unthrottled ? *unthrottled : opened;
      for (collectors::RunFact& fact : sample.take({spec, table, stop})) {
        facts.push_back(std::move(fact));
      }
    } catch (const Error&) {
      // The next sample may need nothing of what this one met.
    }
  }
  return facts;
}

}  // namespace headrace::experiments
