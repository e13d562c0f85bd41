#include "analysis/program/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

[[noreturn]] void ThrowOverMemory(double least_bytes, double base_bytes, double queues_bytes,
                                  double work_bytes, double limit_bytes) {
  throw Error(
      ExitCode::kInconclusive,
      fmt::format("no plan fits {}: the minimum is {} (queues of one element {}, one element in "
                  "work per stage {}, the rest of the process {}), {} too much",
                  FormatBytes(limit_bytes), FormatBytes(least_bytes), FormatBytes(queues_bytes),
                  FormatBytes(work_bytes), FormatBytes(base_bytes),
                  FormatBytes(least_bytes - limit_bytes)),
      "memory budget", "raise --memory");
}

}  // namespace

double ElementBytes(const PipelineModel& model, size_t stage) {
  return model.stages()[stage].element_bytes.value_or(0);
}

std::optional<double> QueueMemory(const PipelineModel& model, const Settings& settings) {
  double bytes = 0;
  bool known = false;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    known = known || model.stages()[s].element_bytes.has_value();
    bytes += ElementBytes(model, s) *
             (static_cast<double>(settings.queue_capacity[s]) + settings.parallelism[s]);
  }
  if (!known) return std::nullopt;
  return bytes;
}

double MemoryLimit(const PipelineModel& model, std::optional<uint64_t> bytes) {
  if (bytes) return static_cast<double>(*bytes);
  if (model.run().run.memory_bytes) return static_cast<double>(*model.run().run.memory_bytes);
  return std::numeric_limits<double>::infinity();
}

MemoryBudget::MemoryBudget(const PipelineModel& model, std::optional<uint64_t> bytes)
    : model_(model), limit_bytes_(MemoryLimit(model, bytes)) {
  const HostRow* rss = model.run().FindHost("process_rss_bytes");
  if (rss != nullptr && rss->maximum_value) {
    const double queues_now = QueueMemory(model, model.current()).value_or(0);
    base_bytes_ = std::max(0.0, *rss->maximum_value - queues_now);
  }
  double element_bytes = 0;
  for (size_t s = 0; s < model.stages().size(); ++s) element_bytes += ElementBytes(model, s);
  if (base_bytes_ + 2 * element_bytes > limit_bytes_) {
    ThrowOverMemory(base_bytes_ + 2 * element_bytes, base_bytes_, element_bytes, element_bytes,
                    limit_bytes_);
  }
}

double MemoryBudget::Needed(const Settings& settings, double more_bytes) const {
  return base_bytes_ + more_bytes + QueueMemory(model_, settings).value_or(0);
}

Settings MemoryBudget::Shortened(Settings settings) const {
  Settings least = settings;
  for (int& threads : least.parallelism) threads = 1;
  while (!Fits(least)) {
    size_t largest = 0;
    double most = -1;
    for (size_t s = 0; s < model_.stages().size(); ++s) {
      const double bytes = ElementBytes(model_, s) * least.queue_capacity[s];
      if (least.queue_capacity[s] > 1 && bytes > most) {
        largest = s;
        most = bytes;
      }
    }
    // One by one where that matters; a queue said to be without end is not walked down.
    least.queue_capacity[largest] -= std::max(1, least.queue_capacity[largest] / 64);
  }
  settings.queue_capacity = least.queue_capacity;
  return settings;
}

}  // namespace headrace::analysis
