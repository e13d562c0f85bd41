// Sockets of the processes, and what TCP and the interfaces count of trouble.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;

std::optional<Section> Network(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"network", "", {}, {}, {}};
  const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
  struct Traffic {
    std::optional<double> received, sent, retransmits, stalls;
  };
  std::map<std::pair<std::string, std::string>, Traffic> sockets;  // owner, socket
  for (const MeasurementRow& row : run.measurements) {
    if (!row.value || row.bucket) continue;
    const bool received = row.metric == "socket_received_bytes";
    const bool sent = row.metric == "socket_sent_bytes";
    const bool again = row.metric == "tcp_retransmits_count";
    const bool stalls = row.metric == "tcp_receive_window_stalls_count";
    if (!received && !sent && !again && !stalls) continue;
    Traffic& traffic = sockets[{OwnerOf(row), row.subject}];
    std::optional<double>& field = received ? traffic.received
                                   : sent   ? traffic.sent
                                   : again  ? traffic.retransmits
                                            : traffic.stalls;
    field = field.value_or(0) + *row.value;
  }
  if (sockets.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"socket", "network"})});
    return section;
  }
  section.title = "Sockets";
  Table table{"sockets",
              "",
              {{"owner", "owner"},
               {"socket", "socket"},
               {"received_bytes_per_second", "received"},
               {"sent_bytes_per_second", "sent"},
               {"retransmits_count", "sent again"},
               {"receive_window_stalls_count", "window closed"}},
              {}};
  table.text_rows = 6;
  std::vector<std::pair<double, std::vector<Value>>> rows;
  for (const auto& [place, traffic] : sockets) {
    const auto rate = [&](const std::optional<double>& bytes) {
      return bytes && seconds > 0 ? std::optional<double>(*bytes / seconds) : std::nullopt;
    };
    rows.push_back({traffic.received.value_or(0) + traffic.sent.value_or(0),
                    {place.first, place.second.empty() ? "all" : place.second,
                     Number(rate(traffic.received), Unit::kBytesPerSecond, "none was seen"),
                     Number(rate(traffic.sent), Unit::kBytesPerSecond, "none was seen"),
                     Number(traffic.retransmits, Unit::kCount, "none was seen"),
                     Number(traffic.stalls, Unit::kCount, "none was seen")}});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [bytes, row] : rows) table.rows.push_back(std::move(row));
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("network", 16, Network);

}  // namespace
}  // namespace headrace::dashboards
