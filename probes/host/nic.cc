// Network interfaces of the machine: bytes, packets, drops, errors, use of the link, and what the
// driver itself counts of drops, errors and stalls (the statistics of `ethtool -S`).
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "base/clock.h"
#include "probes/host/host_probe.h"

namespace headrace::probes {
namespace {

struct FileMetric {
  const char* file;
  const char* metric;
  const char* cause;
};
constexpr FileMetric kFiles[] = {
    {"rx_bytes", "nic_received_bytes", ""},
    {"tx_bytes", "nic_sent_bytes", ""},
    {"rx_packets", "nic_received_packets_count", ""},
    {"tx_packets", "nic_sent_packets_count", ""},
    {"rx_dropped", "nic_drops_count", "received"},
    {"tx_dropped", "nic_drops_count", "sent"},
    {"rx_missed_errors", "nic_drops_count", "received, no buffer"},
    {"rx_errors", "nic_errors_count", "received"},
    {"tx_errors", "nic_errors_count", "sent"},
};

constexpr uint32_t kMaxDriverStatistics = 8192;
constexpr size_t kMaxKept = 64;  // of one interface
// Words in names of driver statistics that tell of lost or delayed packets.
constexpr const char* kTellingWords[] = {"drop", "discard",    "err",     "timeout",
                                         "miss", "out_of_buf", "full",    "no_buf",
                                         "fail", "pause",      "stopped", "exceed"};

bool Tells(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(std::begin(kTellingWords), std::end(kTellingWords),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

// The driver's statistics of one interface, whose names are asked for once.
class DriverStatistics {
 public:
  DriverStatistics(int socket, const std::string& interface) : socket_(socket) {
    std::strncpy(request_.ifr_name, interface.c_str(), IFNAMSIZ - 1);
    std::vector<uint32_t> info(2 + sizeof(uint64_t) / sizeof(uint32_t) + 1);
    auto* sets = reinterpret_cast<ethtool_sset_info*>(info.data());
    sets->cmd = ETHTOOL_GSSET_INFO;
    sets->sset_mask = uint64_t{1} << ETH_SS_STATS;
    if (!Call(sets) || sets->sset_mask == 0) return;
    const uint32_t count = sets->data[0];
    if (count == 0 || count > kMaxDriverStatistics) return;
    std::vector<char> strings(sizeof(ethtool_gstrings) + size_t{count} * ETH_GSTRING_LEN);
    auto* names = reinterpret_cast<ethtool_gstrings*>(strings.data());
    names->cmd = ETHTOOL_GSTRINGS;
    names->string_set = ETH_SS_STATS;
    names->len = count;
    if (!Call(names)) return;
    for (uint32_t i = 0; i < std::min(count, names->len) && kept_.size() < kMaxKept; i++) {
      const char* text = reinterpret_cast<const char*>(names->data) + size_t{i} * ETH_GSTRING_LEN;
      std::string name(text, strnlen(text, ETH_GSTRING_LEN));
      if (Tells(name)) kept_.push_back({i, std::move(name)});
    }
    count_ = count;
  }

  void Add(const std::string& interface, Reading& out) {
    if (kept_.empty()) return;
    std::vector<uint64_t> buffer(sizeof(ethtool_stats) / sizeof(uint64_t) + count_ + 1);
    auto* statistics = reinterpret_cast<ethtool_stats*>(buffer.data());
    statistics->cmd = ETHTOOL_GSTATS;
    statistics->n_stats = count_;
    if (!Call(statistics) || statistics->n_stats != count_) return;  // the driver was reconfigured
    for (const Kept& kept : kept_) {
      out.Counter("nic_driver_count", Subject(interface, kept.name),
                  static_cast<double>(statistics->data[kept.index]));
    }
  }

 private:
  bool Call(void* data) {
    request_.ifr_data = static_cast<char*>(data);
    return ioctl(socket_, SIOCETHTOOL, &request_) == 0;
  }

  struct Kept {
    uint32_t index;
    std::string name;
  };
  int socket_;
  ifreq request_ = {};
  uint32_t count_ = 0;
  std::vector<Kept> kept_;
};

class Nic : public HostProbe {
 public:
  ~Nic() override { Stop(); }
  void Stop() override {
    driver_.clear();
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

 private:
  void Sample(const Host& host, const Target&, Reading& out) override {
    const std::string folder = "/sys/class/net";
    const std::string fix = "run where /sys is mounted";
    const int64_t now = MonotonicNs();
    if (starting() && host.is_this_machine())
      socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto names = host.List(folder);
    for (const std::string& name : names) {
      const std::string path = folder + "/" + name;
      const auto read = ReadCount(host, path + "/statistics/rx_packets");
      const auto written = ReadCount(host, path + "/statistics/tx_packets");
      if (!read || !written) {
        out.MissingFile(path + "/statistics/rx_packets", fix);
        continue;
      }
      if (*read == 0 && *written == 0) continue;  // never used
      std::array<std::optional<int64_t>, std::size(kFiles)> values;
      for (size_t i = 0; i < std::size(kFiles); i++) {
        values[i] = ReadCount(host, fmt::format("{}/statistics/{}", path, kFiles[i].file));
        if (!values[i]) continue;
        out.Counter(kFiles[i].metric, Subject(name, kFiles[i].cause),
                    static_cast<double>(*values[i]));
      }
      if (name != "lo") AddUse(host, path, name, now, values[0], values[1], out);
      if (socket_ >= 0) driver_.try_emplace(name, socket_, name).first->second.Add(name, out);
    }
    if (out.empty()) out.Missing("no network interface in " + folder + " has been used", fix);
  }

  void AddUse(const Host& host, const std::string& path, const std::string& name, int64_t now,
              std::optional<int64_t> received, std::optional<int64_t> sent, Reading& out) {
    const auto megabits = ReadInteger(host, path + "/speed");  // -1 or EINVAL where it has none
    if (!megabits || *megabits <= 0) {
      out.Missing(fmt::format("link speed of {} unknown, so its utilisation cannot be shown", name),
                  "a physical interface, or for a virtual one: ethtool -s " + name + " speed N");
      return;
    }
    const double link = static_cast<double>(*megabits) * 1e6;
    out.Gauge("link_bits_per_s", Subject(name), link);
    Last& last = last_[name];
    const double seconds = static_cast<double>(now - last.time_ns) * 1e-9;
    const auto add = [&](const char* cause, std::optional<int64_t> before,
                         std::optional<int64_t> after) {
      if (!before || !after || *after < *before || seconds < 0.01) return;
      out.Gauge("nic_use_ratio", Subject(name, cause),
                static_cast<double>(*after - *before) * 8 / seconds / link);
    };
    if (last.time_ns != 0) {
      add("received", last.received, received);
      add("sent", last.sent, sent);
    }
    last = {now, received, sent};
  }

  struct Last {
    int64_t time_ns = 0;
    std::optional<int64_t> received, sent;
  };
  std::map<std::string, Last> last_;
  std::map<std::string, DriverStatistics> driver_;
  int socket_ = -1;
};

HR_PROBE("nic", {.summary = "bytes, drops, errors and link use of every network interface",
                 .affects = "the network as a limit; drops and errors of the interface",
                 .level = 1,
                 .period_ns = kSecondNs,
                 .check = CheckHostProbe<Nic>,
                 .make = MakeProbe<Nic>});

}  // namespace
}  // namespace headrace::probes
