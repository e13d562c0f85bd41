#include "tests/validation/generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace headrace::validation {
namespace {

constexpr std::array<const char*, 8> kKinds = {"blocked", "cpu",      "cores",    "lock",
                                               "device",  "consumer", "balanced", "order"};

template <typename T, size_t N>
T OneOf(const T (&values)[N], Dice* dice) {
  return values[dice->Below(static_cast<int>(N))];
}

class Draft {
 public:
  Draft(uint64_t seed, bool small) : dice_(seed, 5), small_(small) {
    planted_.kind = kKinds[seed % kKinds.size()];
    planted_.level = dice_.Chance(0.5) ? 3 : 2;
    batch_s_ = dice_.Uniform(0.005, 0.02);
    most_ = 1 / (1 + dice_.Uniform(0.02, 0.6));
  }

  Planted Make() {
    DrawGraph();
    DrawGrains();
    visits_ = Visits(world());
    DrawCosts();
    DrawShared();
    Plant();
    DrawCores();
    DrawMemory();
    return std::move(planted_);
  }

 private:
  World& world() { return planted_.world; }
  bool Is(const char* kind) const { return planted_.kind == kind; }

  size_t AddStation(std::vector<size_t> inputs) {
    Station station;
    station.name = std::string("s") + std::to_string(world().stations.size());
    station.inputs = std::move(inputs);
    station.queue = OneOf({1, 2, 4, 4, 8, 16}, &dice_);
    const int parts = dice_.Chance(0.35) ? 2 : 1;
    for (int i = 0; i < parts; ++i) {
      Part part;
      part.name = station.name + static_cast<char>('a' + i);
      part.cv = OneOf({0.1, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0}, &dice_);
      part.shape =
          OneOf({Shape::kLogNormal, Shape::kLogNormal, Shape::kGamma, Shape::kTwoPoint}, &dice_);
      station.parts.push_back(part);
    }
    world().stations.push_back(std::move(station));
    return world().stations.size() - 1;
  }
  size_t AddChain(int length, std::vector<size_t> inputs) {
    size_t last = 0;
    for (int i = 0; i < length; ++i) {
      last = AddStation(inputs);
      inputs = {last};
    }
    return last;
  }

  void DrawGraph() {
    ordered_ = Is("order") || dice_.Chance(0.1);
    if (small_) {
      AddChain(2 + dice_.Below(2), {});
    } else if (ordered_ || dice_.Chance(0.65)) {
      AddChain(2 + dice_.Below(7), {});
    } else {
      std::vector<size_t> ends;
      const int branches = 2 + dice_.Below(2);
      for (int b = 0; b < branches; ++b) ends.push_back(AddChain(1 + dice_.Below(2), {}));
      const size_t join = AddStation(ends);
      world().stations[join].zips = dice_.Chance(0.5);
      AddChain(dice_.Below(3), {join});
    }
    for (Station& station : world().stations) {
      station.sequential = dice_.Chance(0.3);
      station.threads = station.sequential ? 1 : OneOf({1, 1, 2, 2, 3, 4, 6, 8}, &dice_);
      station.ordered = ordered_;
    }
    if (ordered_ && dice_.Chance(0.3)) {
      const int window = 2 + dice_.Below(14);
      for (Station& station : world().stations) station.window = window;
    }
  }

  // Elements before the batch are finer than batches; some stations multiply or drop them.
  void DrawGrains() {
    if (ordered_) return;
    std::vector<Station>& stations = world().stations;
    if (dice_.Chance(0.5)) {
      const size_t at = static_cast<size_t>(dice_.Below(static_cast<int>(stations.size())));
      if (!stations[at].inputs.empty()) stations[at].take = OneOf({2, 3, 4, 8}, &dice_);
    }
    for (Station& station : stations) {
      if (dice_.Chance(0.1)) {
        station.emit = dice_.Uniform(0.4, 0.95);
      } else if (dice_.Chance(0.1)) {
        station.emit = OneOf({2, 3, 4}, &dice_);
      }
    }
  }

  // Seconds of its threads that station `s` takes per batch.
  double DemandOf(size_t s) const {
    double demand = 0;
    for (const Part& part : planted_.world.stations[s].parts) {
      demand += part.cpu_s + part.blocked_s + part.held_cpu_s + part.held_blocked_s;
    }
    return demand * visits_[s];
  }
  double CpuOf(size_t s) const {
    double cpu = 0;
    for (const Part& part : planted_.world.stations[s].parts) cpu += part.cpu_s + part.held_cpu_s;
    return cpu * visits_[s];
  }
  // Sets what the station costs per batch outside of locks and devices.
  void SetCost(size_t s, double seconds, double cpu_share) {
    std::vector<Part>& parts = world().stations[s].parts;
    double left = 1;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double share = i + 1 < parts.size() ? left * dice_.Uniform(0.2, 0.8) : left;
      left -= share;
      parts[i].cpu_s = seconds * share * cpu_share / visits_[s];
      parts[i].blocked_s = seconds * share * (1 - cpu_share) / visits_[s];
    }
  }
  double DrawCpuShare() {
    const int style = dice_.Below(3);
    return style == 0 ? 1.0 : style == 1 ? 0.02 : dice_.Uniform();
  }

  void DrawCosts() {
    for (size_t s = 0; s < world().stations.size(); ++s) {
      const double used = dice_.Uniform(0.1, most_);
      SetCost(s, world().stations[s].threads * batch_s_ * used, DrawCpuShare());
    }
    world().consumer_s = batch_s_ * dice_.Uniform(0.1, most_);
    world().consumer_cv = OneOf({0.0, 0.05, 0.1, 0.3, 1.0}, &dice_);
    world().contention = dice_.Chance(0.3) ? dice_.Uniform(0, 0.05) : 0;
    world().switching = dice_.Uniform(0, 0.02);
  }

  // `hold_s`: seconds of holding per batch, over its users.
  void AddShared(bool device, int servers, double hold_s, bool wide) {
    SharedResource shared;
    shared.name = device ? "disk" : "table";
    shared.device = device;
    shared.servers = servers;
    const int number = static_cast<int>(world().shared.size());
    std::vector<size_t> users;
    for (size_t s = 0; s < world().stations.size(); ++s) {
      if (!device || world().stations[s].inputs.empty()) users.push_back(s);
    }
    while (users.size() > 1 && (!device || dice_.Chance(0.5)) && dice_.Chance(0.8)) {
      users.erase(users.begin() + dice_.Below(static_cast<int>(users.size())));
    }
    const bool cpu = !device && dice_.Chance(0.4);
    const double each = hold_s / static_cast<double>(users.size());
    bool used = false;
    for (size_t s : users) {
      Station& station = world().stations[s];
      Part& part = station.parts.back();
      if (part.shared >= 0) continue;
      used = true;
      part.shared = number;
      (cpu ? part.held_cpu_s : part.held_blocked_s) = each / visits_[s];
      if (wide) Widen(s);
    }
    if (used) world().shared.push_back(shared);
  }
  // Enough threads that the station itself does not bind.
  void Widen(size_t s) {
    Station& station = world().stations[s];
    const int needed = static_cast<int>(std::ceil(DemandOf(s) / (batch_s_ * most_)));
    if (needed <= station.threads) return;
    station.threads = needed;
    station.sequential = false;
  }

  void DrawShared() {
    if (!Is("lock") && dice_.Chance(0.25)) {
      AddShared(false, 1, batch_s_ * dice_.Uniform(0.05, most_), true);
    }
    if (!Is("device") && dice_.Chance(0.3)) {
      const int servers = 1 + dice_.Below(3);
      AddShared(true, servers, servers * batch_s_ * dice_.Uniform(0.05, most_), true);
    }
  }

  void PlantStation(size_t s, double cpu_share) {
    const double held = DemandOf(s) - OutsideOf(s);
    const double wanted = world().stations[s].threads * batch_s_ - held;
    SetCost(s, std::max(wanted, 0.1 * batch_s_), cpu_share);
  }
  double OutsideOf(size_t s) const {
    double seconds = 0;
    for (const Part& part : planted_.world.stations[s].parts) {
      seconds += part.cpu_s + part.blocked_s;
    }
    return seconds * visits_[s];
  }
  size_t AnyStation() {
    return static_cast<size_t>(dice_.Below(static_cast<int>(world().stations.size())));
  }

  void Plant() {
    if (Is("blocked")) {
      PlantStation(AnyStation(), dice_.Uniform(0, 0.1));
    } else if (Is("cpu")) {
      PlantStation(AnyStation(), dice_.Uniform(0.9, 1));
    } else if (Is("lock")) {
      AddShared(false, 1, batch_s_, true);
    } else if (Is("device")) {
      const int servers = 1 + dice_.Below(3);
      AddShared(true, servers, servers * batch_s_, true);
    } else if (Is("consumer")) {
      world().consumer_s = batch_s_;
    } else if (Is("balanced")) {
      PlantStation(AnyStation(), DrawCpuShare());
      if (dice_.Chance(0.5)) {
        world().consumer_s = batch_s_;
      } else {
        PlantStation(AnyStation(), DrawCpuShare());
      }
    } else if (Is("order")) {
      const size_t s = AnyStation();
      Station& station = world().stations[s];
      station.sequential = false;
      station.threads = 4 + dice_.Below(9);
      station.queue = 1 + dice_.Below(4);
      for (Part& part : station.parts) part.cv = dice_.Uniform(0.5, 1.5);
      PlantStation(s, 0.02);
    }
  }

  void DrawCores() {
    double cpu = 0, wanted = 0;
    for (size_t s = 0; s < world().stations.size(); ++s) {
      cpu += CpuOf(s);
      wanted += std::min<double>(world().stations[s].threads, 2);
    }
    if (Is("cores")) {
      const double cores = OneOf({2, 2, 4, 8, 16, 32}, &dice_);
      const double factor = cpu > 0 ? cores * batch_s_ / cpu : 0;
      for (size_t s = 0; s < world().stations.size(); ++s) {
        for (Part& part : world().stations[s].parts) part.cpu_s *= factor;
        Widen(s);
      }
      world().cores = cores;
      return;
    }
    const double least = std::max({2.0, cpu / (batch_s_ * most_), 0.25 * wanted});
    double cores = 2;
    while (cores < least && cores < 128) cores *= 2;
    world().cores = cores;
  }

  void DrawMemory() {
    for (Station& station : world().stations) {
      station.element_bytes = std::exp(dice_.Uniform(std::log(16e3), std::log(8e6)));
    }
    const double contents = MemoryOf(world()) - world().base_bytes;
    const double room = dice_.Chance(0.5) ? 100 : dice_.Uniform(1.05, 2.5);
    world().memory_bytes = world().base_bytes + contents * room;
  }

  Dice dice_;
  bool small_, ordered_ = false;
  double batch_s_ = 0.01;  // what the planted row takes per batch
  double most_ = 1;        // the share of it that other rows may take
  std::vector<double> visits_;
  Planted planted_;
};

}  // namespace

Planted Generate(uint64_t seed, bool small) { return Draft(seed, small).Make(); }

}  // namespace headrace::validation
