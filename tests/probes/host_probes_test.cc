// Every probe of probes/host against a full fixture, an empty one, damaged files and this machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "base/clock.h"
#include "probes/host/host_probe.h"
#include "probes/metric.h"
#include "tests/probes/collected.h"
#include "tests/seed.h"

namespace headrace::probes {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(HEADRACE_SOURCE_DIR) / "tests/data/host";

std::string ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void WriteText(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Names of the probes defined below probes/host.
std::vector<std::string> HostProbeNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(HEADRACE_SOURCE_DIR) / "probes/host")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = ReadText(entry.path());
    const size_t at = text.find("\nHR_PROBE(\"");
    if (at == std::string::npos) continue;
    const size_t begin = at + 11;
    names.push_back(text.substr(begin, text.find('"', begin) - begin));
  }
  return names;
}

const ProbeInfo& Find(const std::string& name) {
  const ProbeInfo* info = Registry<ProbeInfo>::Global().Find(name);
  if (!info) throw std::runtime_error("no probe " + name);
  return *info;
}

// A fixture of its own for tests that change files.
class Fixture {
 public:
  explicit Fixture(const std::string& name) {
    std::string pattern = testing::TempDir() + "/headrace-host-XXXXXX";
    root_ = mkdtemp(pattern.data());
    fs::copy(kFixtures / name, root_,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  ~Fixture() { fs::remove_all(root_); }
  fs::path root() const { return root_; }
  fs::path Path(const std::string& path) const { return root_ / path.substr(1); }
  void Replace(const std::string& path, const std::string& from, const std::string& to) const {
    std::string text = ReadText(Path(path));
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << path << " lacks " << from;
    WriteText(Path(path), text.replace(at, from.size(), to));
  }

 private:
  fs::path root_;
};

Target FixtureTarget() {
  Target target;
  target.root_pid = 4242;
  target.pids = {4242, 4250};
  return target;
}

// All probes over one root, started and read together.
class AllProbes {
 public:
  AllProbes(const std::string& root, Target target) : host_(root), target_(std::move(target)) {
    for (const std::string& name : HostProbeNames()) {
      auto probe = Find(name).make();
      availability_[name] = probe->Start(host_, target_);
      if (availability_[name].usable()) probes_[name] = std::move(probe);
    }
  }
  Collected Read() {
    Collected collected;
    for (auto& [name, probe] : probes_) probe->Read(collected);
    return collected;
  }
  const std::map<std::string, Availability>& availability() const { return availability_; }

 private:
  Host host_;
  Target target_;
  std::map<std::string, Availability> availability_;
  std::map<std::string, std::unique_ptr<Probe>> probes_;
};

TEST(HostProbes, TellWhatTheyMeasureAndWhatIsLostWithoutThem) {
  EXPECT_GE(HostProbeNames().size(), 15u);
  for (const std::string& name : HostProbeNames()) {
    EXPECT_FALSE(Find(name).summary.empty()) << name;
    EXPECT_FALSE(Find(name).affects.empty()) << name;
    EXPECT_GT(Find(name).period_ns, 0) << name;
  }
}

TEST(HostProbes, AllReadTheFullRoot) {
  AllProbes all(kFixtures / "full", FixtureTarget());
  for (const auto& [name, availability] : all.availability()) {
    if (name == "accelerator") continue;  // no files: a library
    EXPECT_EQ(availability.state, Availability::State::kOk) << name << ": " << availability.reason;
  }
  all.Read();
  const Collected collected = all.Read();
  ExpectSound(collected);
  EXPECT_GT(collected.values.size(), 150u);
  for (const auto& [key, value] : collected.values) {
    if (FindMetric(key.first)->kind == MetricKind::kCounter) {
      EXPECT_EQ(value, 0) << Describe(key) << ": nothing has changed since the start";
    }
  }
  const auto of_thread = [](const std::string& thread) {
    Labels labels = OfProcess(4242);
    labels.thread = thread;
    return labels;
  };
  const std::map<FigureKey, double> expected = {
      {{"cgroup_cpu_quota_cores", Subject("/pipeline")}, 1.5},
      {{"cgroup_memory_limit_bytes", Subject("/pipeline")}, 8589934592.0},
      {{"cgroup_memory_high_bytes", Subject("/pipeline/job")}, 6442450944.0},
      {{"cgroup_memory_bytes", Subject("/pipeline/job")}, 4194967296.0},
      {{"cgroup_memory_use_bytes", Subject("/pipeline/job", "anonymous")}, 1073741824.0},
      {{"cgroup_memory_use_bytes", Subject("/pipeline/job", "page cache")}, 3221225472.0},
      {{"disk_queue_count", Subject("nvme0n1")}, 3},
      {{"host_memory_bytes", Cause("available")}, 24076432.0 * 1024},
      {{"host_tasks_count", Cause("runnable")}, 3},
      {{"link_bits_per_s", Subject("eth0")}, 25e9},
      {{"numa_memory_bytes", Subject("node1", "free")}, 8543779.0 * 1024},
      {{"cpu_frequency_hertz", Cause("mean")}, 2.9e9},
      {{"temperature_celsius", Subject("thermal_zone0 x86_pkg_temp")}, 54},
      {{"temperature_celsius", Subject("hwmon0 nvme Composite")}, 38.85},
      {{"process_rss_bytes", OfProcess(4242)}, 50000.0 * static_cast<double>(getpagesize())},
      {{"process_threads_count", OfProcess(4242)}, 3},
      {{"threads_count", of_thread("pt_data")}, 2},
  };
  for (const auto& [key, value] : expected) {
    const auto found = collected.Find(key.first, key.second);
    ASSERT_TRUE(found) << Describe(key);
    EXPECT_DOUBLE_EQ(*found, value) << Describe(key);
  }
  EXPECT_FALSE(collected.Find("cgroup_cpu_quota_cores", Subject("/pipeline/job")))
      << "\"max\" is no quota";
  EXPECT_FALSE(collected.Find("disk_queue_count", Subject("loop0"))) << "never used";
  EXPECT_FALSE(collected.Find("disk_queue_count", Subject("nvme0n1p1"))) << "a partition";
  EXPECT_FALSE(collected.Find("link_bits_per_s", Subject("lo")));
}

TEST(HostProbes, ProportionalMemoryIsReadNowAndThen) {
  const Host host(kFixtures / "full");
  const Target target = FixtureTarget();
  const auto probe = Find("process").make();
  ASSERT_TRUE(probe->Start(host, target).usable());
  Collected first, second;
  probe->Read(first);
  EXPECT_EQ(first.Find("process_shared_bytes", OfProcess(4242)), 50000.0 * 1024);
  EXPECT_EQ(first.Find("process_pss_bytes", OfProcess(4242)), 150000.0 * 1024);
  probe->Read(second);
  EXPECT_TRUE(second.Find("process_rss_bytes", OfProcess(4242)));
  EXPECT_FALSE(second.Find("process_pss_bytes", OfProcess(4242))) << "too soon: it costs";
}

TEST(HostProbes, GrowthIsCountedFromTheStart) {
  Fixture fixture("full");
  AllProbes all(fixture.root(), FixtureTarget());
  struct Change {
    const char *path, *from, *to, *metric;
    Labels labels;
    double expected;
  };
  Labels workers = OfProcess(4242);
  workers.thread = "pt_data";
  Labels switches = workers;
  switches.cause = "voluntary";
  const auto page = static_cast<double>(getpagesize());
  const Change changes[] = {
      {"/proc/pressure/cpu", "total=2666742746", "total=2666743746", "pressure_ns",
       Cause("cpu some"), 1e6},
      {"/sys/fs/cgroup/pipeline/job/io.pressure", "total=2500000", "total=2500001", "pressure_ns",
       Subject("/pipeline/job", "io full"), 1e3},
      {"/sys/fs/cgroup/pipeline/cpu.stat", "throttled_usec 7500000", "throttled_usec 7500002",
       "cgroup_throttled_ns", Subject("/pipeline"), 2e3},
      {"/sys/fs/cgroup/pipeline/job/cpu.stat", "nr_throttled 25", "nr_throttled 27",
       "cgroup_throttled_count", Subject("/pipeline/job"), 2},
      {"/sys/fs/cgroup/pipeline/job/cpu.stat", "usage_usec 98000000", "usage_usec 98000005",
       "cgroup_cpu_ns", Subject("/pipeline/job"), 5e3},
      {"/sys/fs/cgroup/pipeline/memory.events", "oom_kill 1", "oom_kill 2",
       "cgroup_memory_events_count", Subject("/pipeline", "oom_kill"), 1},
      {"/sys/fs/cgroup/pipeline/job/memory.stat", "workingset_refault_file 99887",
       "workingset_refault_file 99890", "cgroup_refaults_count", Subject("/pipeline/job", "file"),
       3},
      {"/sys/fs/cgroup/pipeline/job/io.stat", "rbytes=12345678848", "rbytes=12345682944",
       "cgroup_io_bytes", Subject("nvme0n1", "read"), 4096},
      {"/proc/diskstats", "402519 56753 24100450 273766", "402529 56753 24100530 273770",
       "disk_bytes", Subject("nvme0n1", "read"), 80 * 512},
      {"/proc/vmstat", "pgmajfault 19779", "pgmajfault 19789", "host_page_faults_count",
       Cause("major"), 10},
      {"/proc/vmstat", "pgsteal_direct 512", "pgsteal_direct 514", "host_reclaimed_bytes",
       Cause("direct"), 2 * page},
      {"/proc/stat",
       "5418 12 1118 1561",
       "5418 12 1118 1571",
       "steal_ns",
       {},
       10e9 / static_cast<double>(sysconf(_SC_CLK_TCK))},
      {"/proc/stat", "ctxt 11457781", "ctxt 11457791", "host_switches_count", {}, 10},
      {"/sys/class/net/eth0/statistics/rx_bytes", "1119711292", "1119712292", "nic_received_bytes",
       Subject("eth0"), 1000},
      {"/sys/class/net/eth0/statistics/rx_dropped", "4", "9", "nic_drops_count",
       Subject("eth0", "received"), 5},
      {"/proc/net/softnet_stat",
       "000010bb 00000003",
       "000010bc 00000004",
       "softnet_dropped_count",
       {},
       1},
      {"/proc/4242/net/snmp", "4247 2203 17", "4247 2203 20", "host_tcp_retransmits_count", {}, 3},
      {"/proc/4242/net/netstat", "TcpExt: 0 4 1 2 9", "TcpExt: 0 4 1 2 11", "host_tcp_events_count",
       Cause("fast retransmit"), 2},
      {"/sys/devices/system/node/node1/numastat", "numa_miss 121", "numa_miss 131",
       "numa_miss_count", Subject("node1"), 10},
      {"/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "42", "42",
       "thermal_throttles_count", Subject("package-0"), 0},
      {"/sys/class/powercap/intel-rapl:0/energy_uj", "261000000000", "1000000", "energy_joules",
       Subject("package-0"), (262143328850.0 - 261000000000.0 + 1000000.0) * 1e-6},  // wrapped
      {"/sys/class/powercap/intel-rapl:0:0/energy_uj", "1234567890", "1234567990", "energy_joules",
       Subject("package-0 dram"), 100e-6},
      {"/proc/4250/io", "rchar: 69760000", "rchar: 69760100", "process_read_call_bytes",
       OfProcess(4250), 100},
      {"/proc/4242/stat", "9900 12 77 0 250 50", "9900 12 80 0 251 50", "process_page_faults_count",
       OfProcess(4242, "major"), 3},
      {"/proc/4242/task/4243/schedstat", "123461032 991897", "123461132 991997", "thread_on_cpu_ns",
       workers, 100},
      {"/proc/4242/task/4244/schedstat", "991898 321", "991898 327", "thread_on_cpu_ns", workers,
       100},
      {"/proc/4242/task/4244/status", "voluntary_ctxt_switches:\t4344",
       "voluntary_ctxt_switches:\t4350", "thread_switches_count", switches, 6},
  };
  for (const Change& c : changes) fixture.Replace(c.path, c.from, c.to);
  const Collected collected = all.Read();
  for (const Change& c : changes) {
    const auto found = collected.Find(c.metric, c.labels);
    ASSERT_TRUE(found) << c.path << ": " << Describe({c.metric, c.labels});
    EXPECT_NEAR(*found, c.expected, 1e-6) << c.path << ": " << Describe({c.metric, c.labels});
  }
}

// A program of thousands of threads has hundreds at work: of the others one file is read.
TEST(HostProbes, OfThreadsThatDidNotRunOneFileIsRead) {
  const Fixture fixture("full");
  const Host host(fixture.root());
  const Target target = FixtureTarget();
  const auto probe = Find("scheduler").make();
  ASSERT_TRUE(probe->Start(host, target).usable());
  Labels workers = OfProcess(4242);
  workers.thread = "pt_data";
  const auto threads = [&] {
    Collected collected;
    probe->Read(collected);
    return collected.Find("threads_count", workers);
  };
  EXPECT_EQ(threads(), 2);
  fs::remove(fixture.Path("/proc/4242/task/4243/status"));
  EXPECT_EQ(threads(), 2) << "idle: not missed";
  fixture.Replace("/proc/4242/task/4243/schedstat", "991897 321", "991897 322");
  EXPECT_EQ(threads(), 1) << "it ran, and its switches cannot be read";
}

TEST(HostProbes, AThreadThatDidNotRunMayBeGivenAnotherName) {
  const Fixture fixture("full");
  const Host host(fixture.root());
  const Target target = FixtureTarget();
  const auto probe = Find("scheduler").make();
  ASSERT_TRUE(probe->Start(host, target).usable());
  WriteText(fixture.Path("/proc/4242/task/4243/comm"), "decoder-3\n");
  Labels decoders = OfProcess(4242);
  decoders.thread = "decoder";
  std::optional<double> found;
  for (int i = 0; i < 20 && !found; i++) {
    Collected collected;
    probe->Read(collected);
    found = collected.Find("threads_count", decoders);
  }
  EXPECT_EQ(found, 1);
}

// A share of pressure is of the time it was counted in, which is never shorter than what it counts.
TEST(HostProbes, PressureTellsSinceWhenItCounts) {
  const Host host(kFixtures / "full");
  const Target target = FixtureTarget();  // the probe keeps a reference
  const auto probe = Find("pressure").make();
  const int64_t before = MonotonicNs();
  ASSERT_TRUE(probe->Start(host, target).usable());
  const int64_t started = MonotonicNs();
  SleepUntilNs(started + 5'000'000);
  const int64_t read = MonotonicNs();
  Collected collected;
  probe->Read(collected);
  const int64_t after = MonotonicNs();
  const auto window = collected.Find("pressure_window_ns", {});
  ASSERT_TRUE(window);
  EXPECT_GE(*window, static_cast<double>(read - started));
  EXPECT_LE(*window, static_cast<double>(after - before));
}

TEST(HostProbes, CountersOutliveWhatBeginsAnewAndIgnoreJitter) {
  Growth growth;
  EXPECT_EQ(growth.Since("disk_bytes", Subject("a"), 1000), 0);
  growth.Begin();
  EXPECT_EQ(growth.Since("disk_bytes", Subject("a"), 1100), 100);
  EXPECT_EQ(growth.Since("disk_bytes", Subject("a"), 1099), 100) << "jitter";
  EXPECT_EQ(growth.Since("disk_bytes", Subject("a"), 1100), 100);
  EXPECT_EQ(growth.Since("disk_bytes", Subject("a"), 5), 105) << "plugged in again";
  EXPECT_EQ(growth.Since("disk_bytes", Subject("b"), 7), 7) << "new since the start";
}

TEST(HostProbes, FirstVersionControlGroupsOfAContainer) {
  const Host host(kFixtures / "cgroup_v1");
  Target target;
  target.root_pid = 4242;
  target.pids = {4242};
  const auto probe = Find("cgroup").make();
  const Availability availability = probe->Start(host, target);
  EXPECT_EQ(availability.state, Availability::State::kOk) << availability.reason;
  Collected collected;
  probe->Read(collected);
  ExpectSound(collected);
  EXPECT_EQ(collected.Find("cgroup_cpu_quota_cores", Subject("/docker/6f2c")), 4.0)
      << "the quota of the group above binds";
  EXPECT_FALSE(collected.Find("cgroup_cpu_quota_cores", Subject("/docker/6f2c/job")));
  EXPECT_EQ(collected.Find("cgroup_memory_limit_bytes", Subject("/docker/6f2c")), 8589934592.0);
  EXPECT_FALSE(collected.Find("cgroup_memory_limit_bytes", Subject("/docker/6f2c/job")))
      << "the largest number is no limit";
  EXPECT_EQ(collected.Find("cgroup_memory_bytes", Subject("/docker/6f2c/job")), 4194967296.0);
  EXPECT_EQ(collected.Find("cgroup_memory_use_bytes", Subject("/docker/6f2c/job", "page cache")),
            3221225472.0);
  EXPECT_EQ(collected.Find("cgroup_cpu_ns", Subject("/docker/6f2c/job")), 0.0);
  EXPECT_FALSE(collected.Find("cgroup_cpu_ns", Subject("/"))) << "the unified group is the machine";
  EXPECT_EQ(collected.Find("cgroup_io_bytes", Subject("259:0", "read")), 0.0);
}

TEST(HostProbes, EmptyRootIsUnavailableWithAReasonAndAFix) {
  const std::string root = testing::TempDir() + "/headrace-host-empty";
  fs::create_directories(root);
  const Host host(root);
  for (const std::string& name : HostProbeNames()) {
    SCOPED_TRACE(name);
    Collected collected;
    const Availability checked = Find(name).check(host);
    const Target target = FixtureTarget();
    const Availability started = Find(name).make()->Start(host, target);
    for (const Availability& availability : {checked, started}) {
      EXPECT_EQ(availability.state, Availability::State::kUnavailable);
      EXPECT_FALSE(availability.reason.empty());
      EXPECT_FALSE(availability.fix.empty());
    }
  }
}

TEST(HostProbes, ARootThatBecomesEmptyAddsNothing) {
  Fixture fixture("full");
  AllProbes all(fixture.root(), FixtureTarget());
  for (const auto& entry : fs::directory_iterator(fixture.root())) fs::remove_all(entry.path());
  const Collected collected = all.Read();
  for (const auto& [key, value] : collected.values) {
    EXPECT_EQ(FindMetric(key.first)->kind, MetricKind::kCounter) << Describe(key);
    EXPECT_EQ(value, 0) << Describe(key) << ": totals stay, nothing is added";
  }
}

// A file that names a group, a device or a sensor gives another name when damaged, no other figure.
bool GivesNames(const fs::path& file) {
  static const std::set<std::string> names = {
      "comm",   "name",   "type",      "temp1_label",
      "uevent", "cgroup", "mountinfo", "physical_package_id"};
  return names.contains(file.filename());
}

TEST(HostProbes, DamagedFilesCrashNothingAndInventNothing) {
  Fixture fixture("full");
  Collected full;
  {
    AllProbes all(fixture.root(), FixtureTarget());
    all.Read();
    full = all.Read();
  }
  const Collected with_memory = [&] {
    AllProbes all(fixture.root(), FixtureTarget());
    return all.Read();
  }();
  full.values.insert(with_memory.values.begin(), with_memory.values.end());
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fixture.root())) {
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  ASSERT_GT(files.size(), 100u);
  const uint64_t seed = TestSeed();
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const fs::path& file : files) {
    const std::string text = ReadText(file);
    const size_t cut = text.empty() ? 0 : random() % text.size();
    std::string binary(text.size(), '\0'), huge = text;
    for (char& c : binary) c = static_cast<char>(random());
    for (size_t i = 0; i < huge.size(); i++) {  // every number grows beyond 64 bits
      if (std::isdigit(static_cast<unsigned char>(huge[i]))) {
        huge.replace(i, 1, "9999999999999999999999");
        i += 21;
        while (i + 1 < huge.size() && std::isdigit(static_cast<unsigned char>(huge[i + 1]))) i++;
      }
    }
    const std::string variants[] = {"", text.substr(0, cut),
                                    text.substr(0, text.size() - (text.empty() ? 0 : 1)), binary,
                                    huge};
    for (size_t v = 0; v < std::size(variants); v++) {
      SCOPED_TRACE(file.string() + ", variant " + std::to_string(v));
      AllProbes before(fixture.root(), FixtureTarget());  // damaged while it runs
      WriteText(file, variants[v]);
      AllProbes after(fixture.root(), FixtureTarget());  // damaged before it starts
      for (const auto& [name, availability] : after.availability()) {
        if (availability.state == Availability::State::kOk) continue;
        EXPECT_FALSE(availability.reason.empty()) << name;
        EXPECT_FALSE(availability.fix.empty()) << name;
      }
      for (AllProbes* all : {&before, &after}) {
        const Collected damaged = all->Read();
        ExpectSound(damaged);
        if (GivesNames(file)) continue;
        for (const auto& [key, value] : damaged.values) {
          if (key.first == "nic_use_ratio") continue;       // needs two readings
          if (key.first == "pressure_window_ns") continue;  // a clock's, no file's
          const auto known = full.Find(key.first, key.second);
          ASSERT_TRUE(known) << Describe(key) << " is invented";
          if (key.first == "cpu_frequency_hertz" || key.first == "threads_count") {
            EXPECT_GT(value, 0);  // over those that can be read
          } else {
            EXPECT_EQ(value, *known) << Describe(key);
          }
        }
      }
      WriteText(file, text);
    }
  }
}

TEST(HostProbes, ThisMachine) {
  const Host host;
  const Target target = SelfTarget(host);
  ASSERT_EQ(target.root_pid, getpid());
  for (const std::string& name : HostProbeNames()) {
    SCOPED_TRACE(name);
    const Availability checked = Find(name).check(host);
    const auto probe = Find(name).make();
    const Availability started = probe->Start(host, target);
    EXPECT_EQ(checked.state, started.state);
    if (started.state != Availability::State::kOk) {
      EXPECT_FALSE(started.reason.empty());
      EXPECT_FALSE(started.fix.empty());
    }
    if (!started.usable()) continue;
    Collected first, second;
    probe->Read(first);
    usleep(20'000);
    probe->Read(second);
    probe->Stop();
    ExpectSound(first);
    ExpectSound(second);
    for (const auto& [key, value] : first.values) {
      if (FindMetric(key.first)->kind != MetricKind::kCounter) continue;
      const auto later = second.Find(key.first, key.second);
      if (later) {
        EXPECT_GE(*later, value) << Describe(key) << " fell";
      }
    }
  }
}

}  // namespace
}  // namespace headrace::probes
