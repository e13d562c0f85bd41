// PMUs outside the cores, memory bandwidth and energy, on machines we lack: fixtures of their files
// and a scripted backend for their counters.
#include "probes/perf/uncore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/registry.h"
#include "probes/metric.h"
#include "probes/perf/energy_counters.h"
#include "probes/perf/memory_bandwidth.h"

namespace headrace::probes::perf {
namespace {

namespace fs = std::filesystem;

const fs::path kHosts = fs::path(HEADRACE_SOURCE_DIR) / "tests/data/host";
const std::string kDevices = "/sys/bus/event_source/devices/";
constexpr double kMs = 1e6;

Host Machine(const std::string& name) { return Host((kHosts / name).string()); }

// A copy of a machine whose files can be changed; "" is an empty root.
class Copy {
 public:
  explicit Copy(const std::string& name) {
    std::string pattern = testing::TempDir() + "/headrace-uncore-XXXXXX";
    path_ = mkdtemp(pattern.data());
    if (!name.empty()) fs::copy(kHosts / name, path_, fs::copy_options::recursive);
  }
  ~Copy() { fs::remove_all(path_); }
  Host host() const { return Host(path_.string()); }
  void Write(const std::string& name, const std::string& text) const {
    const fs::path file = path_ / name.substr(1);
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void Remove(const std::string& name) const { fs::remove_all(path_ / name.substr(1)); }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) files.push_back("/" + fs::relative(entry, path_).string());
    }
    return files;
  }

 private:
  fs::path path_;
};

struct Figure {
  double value;
  std::optional<Source> source;
  std::optional<double> running_ratio;
};
struct CollectedUncore : Sink {
  void Add(const Measurement& m) override {
    EXPECT_NE(FindMetric(m.metric), nullptr) << m.metric;
    EXPECT_TRUE(std::isfinite(m.value));
    figures[std::string(m.metric) + " " + m.labels.subject +
            (m.labels.cause.empty() ? "" : " by " + m.labels.cause)] = {m.value, m.source,
                                                                        m.running_ratio};
  }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view what, int64_t lost, std::optional<int64_t>) override {
    if (lost > 0) losses[std::string(what)] = lost;
  }
  std::map<std::string, Figure> figures;
  std::map<std::string, int64_t> losses;

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, figure] : figures) names.push_back(name);
    return names;
  }
  double Value(const std::string& name) const {
    const auto it = figures.find(name);
    return it == figures.end() ? std::nan("") : it->second.value;
  }
};

template <typename T>
CollectedUncore ReadOf(T& probe) {
  CollectedUncore collected;
  probe.Read(collected);
  return collected;
}

FakeBackend::Script Steps(std::vector<FakeBackend::Step> steps) {
  FakeBackend::Script script;
  script.steps = std::move(steps);
  return script;
}
// `count` after `ms` milliseconds, all of which it was on the PMU.
FakeBackend::Step At(uint64_t count, uint64_t ms) {
  return {count, ms * uint64_t{1000000}, ms * uint64_t{1000000}};
}

TEST(Uncore, CpuLists) {
  using Cpus = std::vector<int>;
  const std::pair<const char*, std::optional<Cpus>> cases[] = {
      {"0", Cpus{0}},
      {"0-3,8", Cpus{0, 1, 2, 3, 8}},
      {"8,0,8", Cpus{0, 8}},
      {"0-0", Cpus{0}},
      {"", std::nullopt},
      {",", std::nullopt},
      {"1,", std::nullopt},
      {"3-1", std::nullopt},
      {"-1", std::nullopt},
      {"0-", std::nullopt},
      {"0-99999999", std::nullopt},
      {"99999999999999999999", std::nullopt},
      {"a", std::nullopt},
      {"0 1", std::nullopt},
  };
  for (const auto& [text, cpus] : cases) EXPECT_EQ(ParseCpuList(text), cpus) << text;
  std::string all;
  for (int i = 0; i < 100000; i++) all += "1,";
  EXPECT_FALSE(ParseCpuList(all + "1")) << "as many CPUs as that are nonsense";
}

TEST(Uncore, PmusAsTheKernelDescribesThem) {
  const auto imc = ReadPmu(Machine("skx"), "uncore_imc_1");
  ASSERT_TRUE(imc);
  EXPECT_EQ(imc->type, 18u);
  EXPECT_THAT(imc->cpus, testing::ElementsAre(0, 2));
  ASSERT_TRUE(imc->events.count("cas_count_read"));
  EXPECT_EQ(imc->events.size(), 3u) << "x.scale and x.unit belong to x";
  const SysfsEvent& read = imc->events.at("cas_count_read");
  EXPECT_EQ(read.terms, "event=0x04,umask=0x03");
  EXPECT_NEAR(BytesOfCount(read).value(), 64, 1e-9);
  EXPECT_FALSE(BytesOfCount(imc->events.at("clockticks")));
  EXPECT_EQ(Encode(*imc, read.terms), (EventCode{18, 0x0304, 0, 0}));
  EXPECT_FALSE(ReadPmu(Machine("skx"), "no_such_pmu"));

  // Fields in several pieces.
  const auto fabric = ReadPmu(Machine("zen3"), "amd_df");
  ASSERT_TRUE(fabric);
  EXPECT_EQ(Encode(*fabric, "event=0x1c7,umask=0x38"), (EventCode{12, 0x1000038c7, 0, 0}));
  const auto spr = ReadPmu(Machine("spr"), "uncore_imc_0");
  ASSERT_TRUE(spr);
  EXPECT_EQ(Encode(*spr, "event=0x05,umask=0xcf"), (EventCode{80, 0xcf05, 0, 0}));
  EXPECT_EQ(Encode(*spr, "event=0x05,umask=0x1cf"), (EventCode{80, 0x10000cf05, 0, 0}));
  const auto mesh = ReadPmu(Machine("neoverse_n1"), "arm_cmn_0");
  ASSERT_TRUE(mesh);
  EXPECT_EQ(Encode(*mesh, "type=0x5,eventid=0xd"), (EventCode{23, 0xd0005, 0, 0}));
  EXPECT_EQ(Encode(*mesh, "type=0x5,eventid=0xd,bynodeid"), (EventCode{23, 0x800d0005, 0, 0}));
}

TEST(Uncore, NonsenseIsNotEncoded) {
  SysfsPmu pmu;
  pmu.type = 7;
  pmu.formats = {{"event", "config:0-7"},   {"second", "config1:4-5"}, {"third", "config2:63"},
                 {"far", "config:60-70"},   {"back", "config:7-0"},    {"other", "config9:0"},
                 {"nothing", "config:"},    {"text", "rubbish"},       {"comma", "config:0-3,,5"},
                 {"negative", "config:-5"}, {"no_colon", "config"},    {"all", "config1:0-63"}};
  EXPECT_EQ(Encode(pmu, "event=255,second=3,third"), (EventCode{7, 0xff, 0x30, uint64_t{1} << 63}));
  EXPECT_EQ(Encode(pmu, "all=0xffffffffffffffff"), (EventCode{7, 0, ~uint64_t{0}, 0}));
  for (const char* terms : {"",
                            ",",
                            "event=",
                            "event=0x",
                            "event=256",
                            "event=-1",
                            "event=1,,second=1",
                            "missing=1",
                            "event=0x1ffffffffffffffff",
                            "event=zz",
                            "far=1",
                            "back=1",
                            "other=1",
                            "nothing=1",
                            "text=1",
                            "comma=1",
                            "negative=1",
                            "no_colon=1",
                            "=1",
                            "event==1",
                            "event=1 ",
                            "second=4"}) {
    EXPECT_EQ(Encode(pmu, terms), std::nullopt) << terms;
  }
}

TEST(Uncore, DamagedFilesAreAbsent) {
  const std::string imc = kDevices + "uncore_imc_0/";
  struct Case {
    const char *file, *text;
    bool pmu, event;  // still there
  };
  const Case cases[] = {
      {"type", "", false, false},
      {"type", "x\n", false, false},
      {"type", "-1\n", false, false},
      {"type", "99999999999\n", false, false},
      {"format/event", "", true, true},  // read, but what needs it is not encoded
      {"events/cas_count_read", "", true, false},
      {"events/cas_count_read", "event=0x04\nevent=0x05\n", true, false},
      {"events/cas_count_read.scale", "many", true, false},
      {"events/cas_count_read.scale", "0", true, false},
      {"events/cas_count_read.scale", "-6e-5", true, false},
      {"events/cas_count_read.scale", "nan", true, false},
      {"events/cas_count_read.scale", "inf", true, false},
      {"events/cas_count_read.scale", "1e300", true, false},
      {"events/cas_count_read.scale", "6.1e-5 ", true, false},
      {"cpumask", "rubbish\n", true, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.file) + " = " + c.text);
    const Copy copy("skx");
    copy.Write(imc + c.file, c.text);
    const auto pmu = ReadPmu(copy.host(), "uncore_imc_0");
    ASSERT_EQ(pmu.has_value(), c.pmu);
    if (pmu) {
      EXPECT_EQ(pmu->events.count("cas_count_read") > 0, c.event);
    }
  }
  const Copy copy("skx");
  copy.Write(imc + "events/cas_count_read", std::string(1 << 20, 'e'));
  copy.Write(imc + "format/event", std::string("config:0-7\0\xff", 12));
  const auto pmu = ReadPmu(copy.host(), "uncore_imc_0");
  ASSERT_TRUE(pmu);
  EXPECT_FALSE(pmu->events.count("cas_count_read"));
  EXPECT_FALSE(Encode(*pmu, "event=1"));
}

TEST(Uncore, CountsAreScaledByTheTimeOnThePmu) {
  const EventCode a{50, 1, 0, 0}, b{50, 2, 0, 0};
  FakeBackend backend;
  constexpr uint64_t kNs = 1000000;
  backend.scripts[a] = Steps({{0, 10 * kNs, 0},  // not yet on the PMU
                              {500, 20 * kNs, 5 * kNs},
                              {500, 30 * kNs, 5 * kNs},
                              {900, 40 * kNs, 15 * kNs}});
  backend.scripts[b] = Steps({{0, 0, 0}, {100, 0, 0}, {100, 0, 0}, {100, 0, 0}});
  UncoreCounters counters(backend, 3, true, {a, b});
  ASSERT_EQ(counters.Open(), 0);
  ASSERT_EQ(backend.requests().size(), 2u);
  EXPECT_EQ(backend.requests()[0].tid, -1);
  EXPECT_EQ(backend.requests()[0].cpu, 3);
  EXPECT_TRUE(backend.requests()[0].uncore);
  EXPECT_FALSE(backend.requests()[0].exclude_kernel);
  EXPECT_EQ(backend.num_enabled(), 1u) << "the leader counts from the start";
  counters.Read();
  EXPECT_EQ(counters.count(0), std::nullopt) << "unknown, not 0";
  counters.Read();
  EXPECT_EQ(counters.count(0), 500 * 4.0) << "5 ms stand for 20";
  EXPECT_EQ(counters.count(1), 100 * 4.0);
  counters.Read();
  EXPECT_EQ(counters.count(0), 2000.0);
  counters.Read();
  EXPECT_EQ(counters.count(0), 2000 + 400 * 2.0) << "10 ms stand for 20";
  EXPECT_EQ(counters.count(1), 400.0) << "counted, and nothing happened";
  EXPECT_EQ(counters.running_ns(), 15 * kMs);
  EXPECT_EQ(counters.enabled_ns(), 40 * kMs);
  counters.Close();
  EXPECT_EQ(backend.num_open(), 0u);
}

TEST(Uncore, EventsThatDoNotFitTogetherCountAlone) {
  const EventCode a{50, 1, 0, 0}, b{50, 2, 0, 0};
  FakeBackend backend;
  backend.most_members = 1;
  backend.scripts[a] = Steps({At(10, 1)});
  backend.scripts[b] = Steps({At(20, 1)});
  UncoreCounters counters(backend, 0, true, {a, b});
  ASSERT_EQ(counters.Open(), 0);
  counters.Read();
  EXPECT_EQ(counters.count(0), 10.0);
  EXPECT_EQ(counters.count(1), 20.0);
  backend.scripts[b].open_errno = EACCES;
  UncoreCounters refused(backend, 0, true, {a, b});
  EXPECT_EQ(refused.Open(), EACCES);
  counters.Close();
  EXPECT_EQ(backend.num_open(), 0u) << "a failed Open leaves nothing behind";
}

// ---- Memory bandwidth --------------------------------------------------------------------------

const BandwidthRung* Find(const std::vector<BandwidthRung>& rungs, std::string_view mechanism) {
  for (const BandwidthRung& rung : rungs) {
    if (rung.mechanism == mechanism) return &rung;
  }
  return nullptr;
}

TEST(MemoryBandwidth, RungsOfEachMachine) {
  struct Case {
    const char* machine;
    std::vector<std::string> mechanisms;
    size_t units;  // of the first
    std::set<std::pair<uint64_t, Direction>> events;
  };
  const Case cases[] = {
      {"skx",
       {"memory controllers", "LLC misses"},
       4,
       {{0x0304, Direction::kRead}, {0x0c04, Direction::kWrite}}},
      {"spr",
       {"memory controllers", "LLC misses"},
       2,
       {{0xcf05, Direction::kRead}, {0xf005, Direction::kWrite}}},
      {"zen3",
       {"data fabric", "LLC misses"},
       16,
       {{0x3807, Direction::kBoth},
        {0x3847, Direction::kBoth},
        {0x3887, Direction::kBoth},
        {0x38c7, Direction::kBoth},
        {0x100003807, Direction::kBoth},
        {0x100003847, Direction::kBoth},
        {0x100003887, Direction::kBoth},
        {0x1000038c7, Direction::kBoth}}},
      {"zen4",
       {"memory controllers", "data fabric", "LLC misses"},
       3,
       {{0x010a, Direction::kRead}, {0x020a, Direction::kWrite}}},
      {"neoverse_n1", {"SoC fabric", "LLC misses"}, 1, {{0xd0005, Direction::kBoth}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.machine);
    const Host host = Machine(c.machine);
    const auto rungs = BandwidthRungs(host, ReadCpuId(host));
    std::vector<std::string> mechanisms;
    for (const BandwidthRung& rung : rungs) mechanisms.push_back(rung.mechanism);
    ASSERT_EQ(mechanisms, c.mechanisms);
    ASSERT_EQ(rungs[0].units.size(), c.units);
    std::set<std::pair<uint64_t, Direction>> events;
    for (const auto& unit : rungs[0].units) {
      for (const auto& event : unit.events) {
        events.insert({event.code.config, event.direction});
        EXPECT_NEAR(event.bytes, 64, 1e-9);
      }
    }
    EXPECT_EQ(events, c.events);
  }
  // Zen 4's fabric, where the controllers' PMU is missing (Linux before 6.7): numbers of Linux's
  // own table, local_processor_{read,write}_data_beats_cs0 and ..._cs11.
  const Host zen4 = Machine("zen4");
  const auto rungs = BandwidthRungs(zen4, ReadCpuId(zen4));
  const BandwidthRung* fabric = Find(rungs, "data fabric");
  ASSERT_NE(fabric, nullptr);
  EXPECT_EQ(fabric->units.size(), 24u);
  const auto code = [&](size_t unit) { return fabric->units[unit].events[0].code.config; };
  EXPECT_EQ(code(0), 0x700fe1fu);
  EXPECT_EQ(code(11), 0x20700fedfu) << "event 0x2df";
  EXPECT_EQ(code(12), 0x700ff1fu);
}

TEST(MemoryBandwidth, GraniteRapidsCountsHalfChannels) {
  const Copy copy("spr");
  const std::string imc = kDevices + "uncore_imc_0/events/";
  copy.Remove(kDevices + "uncore_imc_1");
  for (const char* event : {"cas_count_read", "cas_count_write"}) {
    for (const char* suffix : {"", ".scale", ".unit"}) copy.Remove(imc + event + suffix);
  }
  const std::pair<const char*, const char*> events[] = {
      {"cas_count_read_sch0", "event=0x05,umask=0xcf"},
      {"cas_count_read_sch1", "event=0x06,umask=0xcf"},
      {"cas_count_write_sch0", "event=0x05,umask=0xf0"},
      {"cas_count_write_sch1", "event=0x06,umask=0xf0"}};
  for (const auto& [name, terms] : events) {
    copy.Write(imc + name, terms);
    copy.Write(imc + name + ".scale", "6.103515625e-5");
    copy.Write(imc + name + ".unit", "MiB");
  }
  FakeBackend backend;
  backend.scripts[{80, 0xcf05, 0, 0}] = Steps({At(1, 10)});
  backend.scripts[{80, 0xcf06, 0, 0}] = Steps({At(2, 10)});
  backend.scripts[{80, 0xf005, 0, 0}] = Steps({At(4, 10)});
  backend.scripts[{80, 0xf006, 0, 0}] = Steps({At(8, 10)});
  MemoryBandwidthProbe probe(&backend);
  const Host host = copy.host();
  ASSERT_EQ(probe.Start(host, {}).state, Availability::State::kOk);
  const CollectedUncore found = ReadOf(probe);
  EXPECT_DOUBLE_EQ(found.Value("memory_read_bytes socket 0 by memory controllers"), 3 * 64);
  EXPECT_DOUBLE_EQ(found.Value("memory_write_bytes socket 0 by memory controllers"), 12 * 64);
}

TEST(MemoryBandwidth, FreeRunningCountersOfDesktops) {
  const Copy copy("");
  const std::string imc = kDevices + "uncore_imc_free_running_0/";
  copy.Write(imc + "type", "30\n");
  copy.Write(imc + "cpumask", "0\n");
  copy.Write(imc + "format/event", "config:0-7\n");
  copy.Write(imc + "format/umask", "config:8-15\n");
  for (const char* event : {"data_read", "data_write", "data_total"}) {
    copy.Write(imc + "events/" + event,
               std::string("event=0xff,umask=0x") + (event[5] == 'r' ? "20" : "30"));
    copy.Write(imc + "events/" + event + ".scale", "6.103515625e-5");
    copy.Write(imc + "events/" + event + ".unit", "MiB");
  }
  const Host host = copy.host();
  const auto rungs = BandwidthRungs(host, {});
  ASSERT_EQ(rungs.size(), 1u);
  ASSERT_EQ(rungs[0].units.size(), 1u);
  ASSERT_EQ(rungs[0].units[0].events.size(), 2u) << "the total would be counted twice";
  EXPECT_EQ(rungs[0].units[0].events[0].code, (EventCode{30, 0x20ff, 0, 0}));
}

TEST(MemoryBandwidth, SumsTheControllersOfEachSocket) {
  FakeBackend backend;
  for (const uint32_t type : {17u, 18u}) {
    // On both sockets alike; the script cannot tell them apart.
    backend.scripts[{type, 0x0304, 0, 0}] = Steps({At(1000 * type, 100), At(3000 * type, 200)});
    backend.scripts[{type, 0x0c04, 0, 0}] = Steps({At(10, 100), At(20, 200)});
  }
  const Host host = Machine("skx");
  MemoryBandwidthProbe probe(&backend);
  const Availability found = probe.Start(host, {});
  EXPECT_EQ(found.state, Availability::State::kOk) << found.reason;
  EXPECT_THAT(found.reason, testing::HasSubstr("memory controllers, 4 units"));
  EXPECT_EQ(backend.num_open(), 8u);
  const CollectedUncore first = ReadOf(probe);
  EXPECT_THAT(first.Names(),
              testing::ElementsAre("memory_read_bytes socket 0 by memory controllers",
                                   "memory_read_bytes socket 1 by memory controllers",
                                   "memory_write_bytes socket 0 by memory controllers",
                                   "memory_write_bytes socket 1 by memory controllers"));
  EXPECT_DOUBLE_EQ(first.Value("memory_read_bytes socket 0 by memory controllers"), 35000 * 64);
  EXPECT_DOUBLE_EQ(first.Value("memory_write_bytes socket 1 by memory controllers"), 20 * 64);
  const Figure& figure = first.figures.begin()->second;
  EXPECT_EQ(figure.source, Source::kCounter);
  EXPECT_EQ(figure.running_ratio, 1.0);
  const CollectedUncore second = ReadOf(probe);
  EXPECT_DOUBLE_EQ(second.Value("memory_read_bytes socket 0 by memory controllers"), 105000 * 64);
  EXPECT_TRUE(second.losses.empty());
  probe.Stop();
  EXPECT_EQ(backend.num_open(), 0u);
}

TEST(MemoryBandwidth, FabricCountsInTurns) {
  FakeBackend backend;
  for (int channel = 0; channel < 8; channel++) {
    const uint64_t event = 0x07 + 0x40 * static_cast<uint64_t>(channel);
    const EventCode code{12, (event & 0xff) | 0x3800 | (event & 0xf00) << 24, 0, 0};
    constexpr uint64_t kNs = 1000000;
    // Half of the channels in each turn.
    backend.scripts[code] = channel < 4
                                ? Steps({{100, 10 * kNs, 10 * kNs}, {100, 20 * kNs, 10 * kNs}})
                                : Steps({{0, 10 * kNs, 0}, {100, 20 * kNs, 10 * kNs}});
  }
  const Host host = Machine("zen3");
  MemoryBandwidthProbe probe(&backend);
  ASSERT_EQ(probe.Start(host, {}).state, Availability::State::kOk);
  EXPECT_THAT(ReadOf(probe).Names(), testing::IsEmpty())
      << "half a socket's bytes are not its bytes";
  const CollectedUncore second = ReadOf(probe);
  EXPECT_THAT(second.Names(), testing::ElementsAre("memory_bytes socket 0 by data fabric",
                                                   "memory_bytes socket 1 by data fabric"));
  EXPECT_DOUBLE_EQ(second.Value("memory_bytes socket 0 by data fabric"), (400 + 800) * 64);
  EXPECT_EQ(second.figures.begin()->second.running_ratio, 0.5);
}

TEST(MemoryBandwidth, AUnitThatFailsTakesItsSocketAlong) {
  FakeBackend backend;
  for (const uint32_t type : {17u, 18u}) {
    backend.scripts[{type, 0x0304, 0, 0}] = Steps({At(100, 100), At(200, 200)});
    backend.scripts[{type, 0x0c04, 0, 0}] = Steps({At(10, 100), At(20, 200)});
  }
  backend.scripts[{18, 0x0304, 0, 0}].short_read_at = 1;
  const Host host = Machine("skx");
  MemoryBandwidthProbe probe(&backend);
  ASSERT_TRUE(probe.Start(host, {}).usable());
  EXPECT_EQ(ReadOf(probe).figures.size(), 4u);
  const CollectedUncore second = ReadOf(probe);
  EXPECT_TRUE(second.figures.empty());
  EXPECT_EQ(second.losses.at("memory bandwidth: units that stopped counting"), 2);
}

TEST(MemoryBandwidth, FallsDownTheLadder) {
  FakeBackend backend;  // refuses all with ENOENT
  const Host zen4 = Machine("zen4");
  {  // controllers refused, fabric counts
    for (int channel = 0; channel < 12; channel++) {
      const uint64_t event = 0x1f + 0x40 * static_cast<uint64_t>(channel);
      for (const uint64_t mask : {0x7feu, 0x7ffu}) {
        backend.scripts[{
            14, (event & 0xff) | (event >> 8) << 32 | (mask & 0xff) << 8 | (mask >> 8) << 24, 0,
            0}] = Steps({At(1, 1)});
      }
    }
    MemoryBandwidthProbe probe(&backend);
    const Availability found = probe.Start(zen4, {});
    EXPECT_EQ(found.state, Availability::State::kDegraded);
    EXPECT_THAT(found.reason, testing::HasSubstr("data fabric"));
    EXPECT_THAT(found.reason, testing::HasSubstr("amd_umc_0"));
    EXPECT_FALSE(found.fix.empty());
    EXPECT_DOUBLE_EQ(ReadOf(probe).Value("memory_read_bytes socket 0 by data fabric"), 12 * 64);
  }
  {  // nothing but the cores' own misses
    FakeBackend cores;
    cores.scripts[{4, 0x4844, 0, 0}] = Steps({At(1000, 1)});
    MemoryBandwidthProbe probe(&cores);
    const Availability found = probe.Start(zen4, {});
    EXPECT_EQ(found.state, Availability::State::kDegraded);
    EXPECT_THAT(found.reason, testing::HasSubstr("LLC misses (an estimate)"));
    const CollectedUncore read = ReadOf(probe);
    EXPECT_DOUBLE_EQ(read.Value("memory_bytes socket 0 by LLC misses"), 2 * 1000 * 64);
    EXPECT_EQ(read.figures.begin()->second.source, Source::kEstimate);
    EXPECT_FALSE(cores.requests().back().uncore);
  }
  {  // nothing at all
    FakeBackend none;
    none.otherwise.open_errno = EACCES;
    MemoryBandwidthProbe probe(&none);
    const Availability found = probe.Start(zen4, {});
    EXPECT_EQ(found.state, Availability::State::kUnavailable);
    EXPECT_THAT(found.reason, testing::HasSubstr("amd_umc_0"));
    EXPECT_THAT(found.reason, testing::HasSubstr("calibrated ceiling"));
    EXPECT_FALSE(found.fix.empty());
    EXPECT_EQ(none.num_open(), 0u);
  }
  {  // Arm's mesh is an estimate
    FakeBackend mesh;
    mesh.scripts[{23, 0xd0005, 0, 0}] = Steps({At(50, 1)});
    MemoryBandwidthProbe probe(&mesh);
    const Host n1 = Machine("neoverse_n1");
    const Availability found = probe.Start(n1, {});
    EXPECT_EQ(found.state, Availability::State::kDegraded);
    const CollectedUncore read = ReadOf(probe);
    EXPECT_DOUBLE_EQ(read.Value("memory_bytes socket 0 by SoC fabric"), 50 * 64);
    EXPECT_EQ(read.figures.begin()->second.source, Source::kEstimate);
  }
}

TEST(MemoryBandwidth, ByResctrl) {
  const Copy copy("resctrl");
  const Host host = copy.host();
  MemoryBandwidthProbe probe;  // a fixture: no counter may be opened
  const Availability found = probe.Start(host, {});
  EXPECT_EQ(found.state, Availability::State::kOk) << found.reason;
  EXPECT_THAT(found.reason, testing::HasSubstr("resctrl"));
  const CollectedUncore first = ReadOf(probe);
  EXPECT_THAT(first.Names(), testing::ElementsAre("memory_bytes cache 0 by resctrl",
                                                  "memory_bytes cache 1 by resctrl"));
  EXPECT_EQ(first.Value("memory_bytes cache 0 by resctrl"), 0) << "nothing moved since the start";
  const std::string root = "/sys/fs/resctrl/";
  copy.Write(root + "mon_data/mon_L3_00/mbm_total_bytes", "1000640\n");
  copy.Write(root + "batch/mon_data/mon_L3_00/mbm_total_bytes", "500064\n");
  EXPECT_EQ(ReadOf(probe).Value("memory_bytes cache 0 by resctrl"), 704);
  // A group that is removed takes its bytes along.
  copy.Remove(root + "batch");
  EXPECT_EQ(ReadOf(probe).Value("memory_bytes cache 0 by resctrl"), 704);
  copy.Write(root + "mon_data/mon_L3_00/mbm_total_bytes", "1000740\n");
  EXPECT_EQ(ReadOf(probe).Value("memory_bytes cache 0 by resctrl"), 804);
  copy.Write(root + "mon_data/mon_L3_00/mbm_total_bytes", "Unavailable\n");
  EXPECT_THAT(ReadOf(probe).Names(), testing::ElementsAre("memory_bytes cache 1 by resctrl"));
}

TEST(MemoryBandwidth, UnderAnEmptyRootItSaysWhatWouldChangeIt) {
  const Copy copy("");
  const Host host = copy.host();
  const ProbeInfo* info = Registry<ProbeInfo>::Global().Find("memory bandwidth");
  ASSERT_NE(info, nullptr);
  const Availability found = info->check(host);
  EXPECT_EQ(found.state, Availability::State::kUnavailable);
  EXPECT_THAT(found.reason, testing::HasSubstr("no memory controller"));
  EXPECT_THAT(found.fix, testing::HasSubstr("resctrl"));
}

// ---- Energy ------------------------------------------------------------------------------------

TEST(EnergyCounters, JoulesByPackage) {
  FakeBackend backend;
  constexpr double kUnit = 2.3283064365386962890625e-10;
  backend.scripts[{9, 2, 0, 0}] = Steps({At(uint64_t{1} << 32, 1000), At(uint64_t{1} << 33, 2000)});
  backend.scripts[{9, 3, 0, 0}] = Steps({At(uint64_t{1} << 30, 1000)});
  const Host host = Machine("skx");
  EnergyCountersProbe probe(&backend);
  const Availability found = probe.Start(host, {});
  EXPECT_EQ(found.state, Availability::State::kOk) << found.reason;
  const CollectedUncore first = ReadOf(probe);
  EXPECT_THAT(first.Names(),
              testing::ElementsAre("energy_joules package-0", "energy_joules package-0 dram",
                                   "energy_joules package-1", "energy_joules package-1 dram"));
  EXPECT_DOUBLE_EQ(first.Value("energy_joules package-0"), 4294967296.0 * kUnit);
  EXPECT_DOUBLE_EQ(first.Value("energy_joules package-1 dram"), 1073741824.0 * kUnit);
  EXPECT_DOUBLE_EQ(ReadOf(probe).Value("energy_joules package-1"), 8589934592.0 * kUnit);
  probe.Stop();
  EXPECT_EQ(backend.num_open(), 0u);
}

TEST(EnergyCounters, NeverCountWhatPowercapCounts) {
  const Copy copy("skx");
  const Host host = copy.host();
  EXPECT_FALSE(PowercapGivesEnergy(host));
  const std::string zone = "/sys/class/powercap/intel-rapl:0/";
  copy.Write(zone + "name", "package-0\n");
  EXPECT_FALSE(PowercapGivesEnergy(host)) << "the energy is hidden: nothing to count twice";
  copy.Write(zone + "energy_uj", "123456\n");
  copy.Write(zone + "max_energy_range_uj", "262143328850\n");
  EXPECT_TRUE(PowercapGivesEnergy(host));
  FakeBackend backend;
  backend.otherwise.open_errno = 0;
  EnergyCountersProbe probe(&backend);
  const Availability found = probe.Start(host, {});
  EXPECT_TRUE(found.usable());
  EXPECT_THAT(found.reason, testing::HasSubstr("not needed"));
  EXPECT_TRUE(ReadOf(probe).figures.empty());
  EXPECT_TRUE(backend.requests().empty());
  // The other probe does give it: exactly one of the two.
  const auto powercap = Registry<ProbeInfo>::Global().Find("energy")->make();
  ASSERT_TRUE(powercap->Start(host, {}).usable());
  EXPECT_THAT(ReadOf(*powercap).Names(), testing::ElementsAre("energy_joules package-0"));
}

TEST(EnergyCounters, RefusalsAreSaid) {
  const Host host = Machine("skx");
  FakeBackend backend;
  backend.otherwise.open_errno = EACCES;
  EnergyCountersProbe refused(&backend);
  const Availability found = refused.Start(host, {});
  EXPECT_EQ(found.state, Availability::State::kUnavailable);
  EXPECT_THAT(found.reason, testing::HasSubstr("power/energy-pkg/"));
  EXPECT_FALSE(found.fix.empty());
  backend.scripts[{9, 2, 0, 0}] = Steps({At(1, 1)});
  EnergyCountersProbe partly(&backend);
  EXPECT_EQ(partly.Start(host, {}).state, Availability::State::kDegraded);

  const Copy empty("");
  const Host nothing = empty.host();
  const ProbeInfo* info = Registry<ProbeInfo>::Global().Find("energy counters");
  ASSERT_NE(info, nullptr);
  const Availability absent = info->check(nothing);
  EXPECT_EQ(absent.state, Availability::State::kUnavailable);
  EXPECT_FALSE(absent.fix.empty());
  EXPECT_EQ(info->check(host).state, Availability::State::kUnavailable)
      << "the files of another machine open no counter here";
}

// ---- All of them -------------------------------------------------------------------------------

TEST(Uncore, DamagedMachinesGiveNothingInvented) {
  for (const char* machine : {"skx", "spr", "zen3", "zen4", "neoverse_n1", "resctrl"}) {
    const std::string texts[] = {"", "event=0xffffffffffffffffff,umask=,=", std::string(5000, '9'),
                                 std::string("\0\xff\x80 1\n", 6)};
    const Copy copy(machine);
    const Host host = copy.host();
    FakeBackend backend;
    backend.otherwise = Steps({At(1000, 10)});
    for (const std::string& file : copy.Files()) {
      std::ifstream in(host.Path(file), std::ios::binary);
      const std::string whole{std::istreambuf_iterator<char>(in), {}};
      for (const std::string& text : texts) {
        SCOPED_TRACE(std::string(machine) + file + " = " + text.substr(0, 40));
        copy.Write(file, text);
        MemoryBandwidthProbe bandwidth(&backend);
        if (bandwidth.Start(host, {}).usable()) {
          for (const auto& [name, figure] : ReadOf(bandwidth).figures) {
            EXPECT_GE(figure.value, 0) << name;
            EXPECT_LT(figure.value, 1e12) << name;
          }
        }
        EnergyCountersProbe energy(&backend);
        if (energy.Start(host, {}).usable()) {
          for (const auto& [name, figure] : ReadOf(energy).figures) {
            EXPECT_GE(figure.value, 0) << name;
            EXPECT_LT(figure.value, 1e13) << name;
          }
        }
      }
      copy.Write(file, whole);
    }
  }
}

TEST(Uncore, ThisMachine) {
  const Host host;
  for (const char* name : {"memory bandwidth", "energy counters"}) {
    SCOPED_TRACE(name);
    const ProbeInfo* info = Registry<ProbeInfo>::Global().Find(name);
    ASSERT_NE(info, nullptr);
    const Availability checked = info->check(host);
    const auto probe = info->make();
    const Availability started = probe->Start(host, {});
    EXPECT_EQ(checked.state, started.state);
    if (started.state != Availability::State::kOk) {
      EXPECT_FALSE(started.reason.empty());
      EXPECT_FALSE(started.fix.empty());
      RecordProperty(name[0] == 'm' ? "bandwidth" : "energy", started.reason);
    }
    if (!started.usable()) continue;
    ReadOf(*probe);
    probe->Stop();
  }
}

}  // namespace
}  // namespace headrace::probes::perf
