// Sockets of the processes, and what TCP and the interfaces count of trouble.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/table_rows.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::MeasurementRow;

struct Connections {
  double opened = 0, failed = 0;
  double opened_ns = 0;
};

// Who opens TCP connections, and how long the other side takes to answer: a reader that opens one
// for each request pays a round trip every time. Empty where nobody opened one.
std::optional<Table> ConnectionsTable(const analysis::RunView& run) {
  std::map<std::string, Connections> owners;
  for (const MeasurementRow& row : run.measurements) {
    if (!row.value || row.bucket) continue;
    const bool count = row.metric == "tcp_connects_count";
    if (!count && row.metric != "tcp_connect_ns") continue;
    Connections& owner = owners[OwnerOf(row)];
    const bool failed = row.cause == "failed";
    if (count) (failed ? owner.failed : owner.opened) += *row.value;
    if (!count && !failed) owner.opened_ns += *row.value;
  }
  if (owners.empty()) return std::nullopt;
  Table table{"connections",
              "",
              {{"owner", "owner"},
               {"opened_count", "connections opened"},
               {"connect_ns", "each took"},
               {"failed_count", "failed"}},
              {}};
  table.text_rows = 6;
  std::vector<WeightedRow> rows;
  for (const auto& [name, owner] : owners) {
    const std::optional<double> each =
        owner.opened > 0 ? std::optional(owner.opened_ns / owner.opened) : std::nullopt;
    rows.push_back({owner.opened + owner.failed,
                    {name, Number(owner.opened, Unit::kCount, ""),
                     Number(each, Unit::kNanoseconds, "none was opened"),
                     Number(owner.failed, Unit::kCount, "")}});
  }
  AddHeaviestFirst(std::move(rows), &table);
  return table;
}

std::optional<Section> Network(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"network", "", {}, {}, {}};
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
  std::vector<WeightedRow> rows;
  for (const auto& [place, traffic] : sockets) {
    rows.push_back(
        {traffic.received.value_or(0) + traffic.sent.value_or(0),
         {place.first, place.second.empty() ? "all" : place.second,
          Number(PerSecond(run, traffic.received), Unit::kBytesPerSecond, "none was seen"),
          Number(PerSecond(run, traffic.sent), Unit::kBytesPerSecond, "none was seen"),
          Number(traffic.retransmits, Unit::kCount, "none was seen"),
          Number(traffic.stalls, Unit::kCount, "none was seen")}});
  }
  AddHeaviestFirst(std::move(rows), &table);
  section.tables.push_back(std::move(table));
  if (auto connections = ConnectionsTable(run)) section.tables.push_back(std::move(*connections));
  return section;
}

HR_SECTION("network", 16, Network);

}  // namespace
}  // namespace headrace::dashboards
