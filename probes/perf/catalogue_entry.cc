#include "probes/perf/catalogue_entry.h"

#include <algorithm>

namespace headrace::probes::perf {

std::optional<double> Formula::Evaluate(const Expression::Lookup& value_of) const {
  constexpr double kSlack = 0.1;
  const auto value = expression.Evaluate(value_of);
  if (!value || !share) return value;
  if (*value < -kSlack || *value > 1 + kSlack) return std::nullopt;
  return std::clamp(*value, 0.0, 1.0);
}

const CatalogueEvent* CpuFamily::Find(std::string_view word) const {
  const auto it = std::find_if(events.begin(), events.end(),
                               [&](const CatalogueEvent& e) { return e.word == word; });
  return it == events.end() ? nullptr : &*it;
}

}  // namespace headrace::probes::perf
