// NodesFile: what a fleet may be made of, read from a TOML file (docs/fleet.md): types of nodes
// with their price, the shared storage, the clients that take the batches, and the dispatcher that
// hands out the work. What the file leaves out is not limited by it; nothing is made up for it but
// what `kDefault...` below says.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::analysis {

// Share of every capacity that a plan leaves free.
inline constexpr double kDefaultHeadroom = 0.1;
// Requests for work that a worker keeps in flight.
inline constexpr int kDefaultInFlight = 8;

struct NodeType {
  std::string name;
  double price_per_hour = 0;
  double cores = 1;
  // Speed of one of its cores relative to a core of the recorded run; empty: not given.
  std::optional<double> speed;
  // The same by operator (its name or kind), where it differs; sorted by name.
  std::vector<std::pair<std::string, double>> speed_of;
  std::string cpu_model;  // equal to the run's: its speed is the run's
  std::optional<double> memory_bytes, memory_bandwidth_bytes_per_s;
  std::optional<double> nic_bytes_per_s;   // in each direction
  std::optional<double> disk_bytes_per_s;  // of its own disk, when the table lies there
  std::optional<double> watts_idle, watts_peak;
  std::optional<int> max_count;
  int have = 0;             // nodes of it that run now
  std::optional<int> rack;  // nodes in one rack: lost together
};

struct StorageLimits {
  bool local = false;                                 // the table lies on the nodes' own disks
  std::optional<double> bytes_per_s, requests_per_s;  // of the whole storage
  double latency_s = 0;                               // of one request, without its transfer
};

struct ClientLimits {
  int count = 1;
  std::optional<double> nic_bytes_per_s;    // of each
  std::optional<double> demand_rows_per_s;  // of each
  int buffer_batches = 4;                   // ready in front of each client
};

struct DispatcherLimits {
  std::optional<double> requests_per_s;
  double latency_s = 0;  // round trip, without the dispatcher's work
  int in_flight = kDefaultInFlight;
};

struct NodesFile {
  std::string currency = "USD";
  double headroom = kDefaultHeadroom;
  std::vector<NodeType> types;  // in the file's order, at least one
  StorageLimits storage;
  ClientLimits clients;
  DispatcherLimits dispatcher;
};

// Throws Error kBadData: `where` with line and column, what is wrong, what to write.
NodesFile ParseNodes(std::string_view toml_text, const std::string& where);
// Reads a file of at most 1 MiB. Throws Error as above, or that it cannot be read.
NodesFile LoadNodes(const std::string& path);

}  // namespace headrace::analysis
