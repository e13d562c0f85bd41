#include "analysis/outside/asked.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/library_processes.h"

namespace headrace::analysis {
namespace {

bool Has(const std::vector<int64_t>& ids, const std::optional<int64_t>& id) {
  return id && std::find(ids.begin(), ids.end(), *id) != ids.end();
}

// "127.0.0.1:80" of "[::ffff:127.0.0.1]:80", as a server that listens to both kinds sees its end.
std::string PlainAddress(std::string address) {
  constexpr std::string_view kMapped = "[::ffff:";
  const size_t end = address.find(']');
  if (!address.starts_with(kMapped) || end == std::string::npos) return address;
  return address.substr(kMapped.size(), end - kMapped.size()) + address.substr(end + 1);
}

// "b>a" of the connection "a>b" (its own end first); empty: another kind of socket.
std::string OtherEnd(const std::string& connection) {
  const size_t at = connection.find('>');
  if (at == std::string::npos) return "";
  return PlainAddress(connection.substr(at + 1)) + ">" + PlainAddress(connection.substr(0, at));
}

// Ids of the processes at the other ends of connections that these received something by; empty
// where one of these made a connection itself.
std::set<int64_t> ClientsOf(const RunView& run, const std::vector<int64_t>& ids) {
  std::set<std::string> ends;
  for (const MeasurementRow& row : run.measurements) {
    if (!Has(ids, row.process_id)) continue;
    if (row.metric == "tcp_connects_count" && row.value.value_or(0) > 0) return {};
    if (row.metric == "socket_received_bytes") ends.insert(OtherEnd(row.subject));
  }
  std::set<int64_t> clients;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != "socket_sent_bytes" || !row.process_id || Has(ids, row.process_id)) continue;
    const std::string own_end = OtherEnd(OtherEnd(row.subject));  // as plain as those
    if (!own_end.empty() && ends.contains(own_end)) clients.insert(*row.process_id);
  }
  return clients;
}

}  // namespace

bool IsAskedOverNetwork(const RunView& run, const Outside& outside) {
  const size_t kind = outside.units[outside.culprit].kind;
  if (kind == outside.units[0].kind) return false;
  const std::set<int64_t> clients = ClientsOf(run, outside.kinds[kind].process_ids);
  double by_sockets_s = 0, all_s = 0;
  for (const WakeEdge& edge : outside.edges) {
    const size_t asks = outside.groups[edge.wakee].kind;
    if (!edge.waker || outside.groups[*edge.waker].kind != kind || asks == kind) continue;
    if (outside.kinds[asks].is_service) continue;  // which any switch may wake
    all_s += edge.wait_s;
    const std::vector<int64_t>& ids = outside.kinds[asks].process_ids;
    const bool is_client =
        std::any_of(ids.begin(), ids.end(), [&](int64_t id) { return clients.contains(id); });
    // A wait for a socket with a time limit is one in poll().
    const bool by_socket = edge.cause == WaitCause::kNetwork || edge.cause == WaitCause::kPoll;
    if (is_client && by_socket) by_sockets_s += edge.wait_s;
  }
  return 2 * by_sockets_s > all_s;
}

bool MayBeBesideServices(const Outside& outside) {
  if (outside.findings[0].limit != OutsideLimit::kSleep || outside.culprit == 0) return false;
  const std::string& name = outside.kinds[outside.units[outside.culprit].kind].name;
  return !IsOfRay(name) && !outside.is_asked_over_network &&
         std::any_of(outside.kinds.begin(), outside.kinds.end(), [](const ProcessKind& kind) {
           return kind.is_service && kind.name.starts_with("ray");
         });
}

}  // namespace headrace::analysis
