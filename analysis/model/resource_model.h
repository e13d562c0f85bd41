// ResourceModel: something that operators share, and that each batch uses for a time.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/model/device_curve.h"
#include "analysis/run/run_view.h"
#include "base/registry.h"

namespace headrace::analysis {

struct ResourceModel {
  std::string name, kind;  // "lock" and "device" of accounts; else as the kind of limit has it
  int servers = 1;
  // Operators that use it, and the share of its hold time that each is assumed to cause. The views
  // do not tell, so it is inferred from lock waits and operator kinds. May be empty.
  std::vector<std::pair<size_t, double>> users;
  // The run's resource account that it is measured by: index into RunView::resources.
  std::optional<size_t> account = std::nullopt;
  // Only for resources that are not measured so. `curve`: the storage under the table. `counted_s`:
  // seconds per batch of something that no thread is seen to hold (a link, memory bandwidth).
  std::optional<DeviceCurve> curve = std::nullopt;
  std::optional<double> counted_s = std::nullopt;
  // Deviation of its logarithm; none: kCeilingError.
  std::optional<double> counted_error = std::nullopt;
  // A store that was seen full, or a lock: its threads that were enough for that. What more of them
  // wait there is no demand of theirs.
  std::optional<double> enough_threads = std::nullopt;
  // Whether its users are all operators, each by its CPU time.
  bool used_by_cpu = false;
};

// A kind of limit that counts resources registers how, next to its HR_LIMIT: the function appends
// those that this run has, with counted_s.
using CountedResources = std::function<void(const RunView& run, std::vector<ResourceModel>*)>;

#define HR_COUNTED_RESOURCES(name, function)                                      \
  [[maybe_unused]] static const bool hr_counted_##function =                      \
      ::headrace::Registry<::headrace::analysis::CountedResources>::Global().Add( \
          std::string(name), function)

}  // namespace headrace::analysis
