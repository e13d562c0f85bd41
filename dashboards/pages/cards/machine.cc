// Whether the machine was free for this program.
#include <fmt/format.h>

#include "base/units.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/report/first_page.h"

namespace headrace::dashboards {
namespace {

Card MachineCard(const LoadedRun& loaded) {
  Card card;
  card.question = "Was the machine free?";
  card.sql =
      "SELECT start_ns, duration_ns, metric, cause, value FROM measurement_interval WHERE run_id = "
      "{run} AND metric IN ('host_cpu_ns', 'pressure_ns', 'process_cpu_ns') AND operator IS NULL "
      "ORDER BY metric, cause, start_ns";
  card.read = {
      "Pressure is the share of the time in which some thread waited for a core, for storage or "
      "for memory.",
      "Cores of the whole machine include this program's own."};
  const auto load = OtherLoadOf(loaded.run, loaded.statements);
  if (load && load->used_cores) {
    card.answer = fmt::format("No: other programs used {:.3g} of {:.3g} cores.", *load->used_cores,
                              load->cores);
    return card;
  }
  if (load && load->pressure_ratio) {
    card.answer = fmt::format("No: for {} of the run some thread waited for a core.",
                              FormatPercent(*load->pressure_ratio));
    return card;
  }
  std::optional<double> others;
  if (loaded.statements.model) others = loaded.statements.model->cores_other_here();
  const auto pressure = KnownFact(loaded.report, "machine", "pressure_cpu_some_ratio");
  if (others) {
    card.answer = fmt::format("Yes: other programs used {:.2g} of its cores.", *others);
  } else if (pressure) {
    card.answer = fmt::format(
        "What other programs used is unknown: some thread waited for a core "
        "for {} of the run.",
        FormatPercent(*pressure));
  } else {
    card.empty = "Nothing of the machine was recorded.";
  }
  return card;
}

HR_CARD("machine", MachineCard);

}  // namespace
}  // namespace headrace::dashboards
