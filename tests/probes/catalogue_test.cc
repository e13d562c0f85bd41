// The event catalogue against libpfm4's tables, against itself, and against processors we lack.
#include "probes/perf/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "probes/metric.h"

namespace headrace::probes::perf {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = HEADRACE_SOURCE_DIR;

// libpfm4, told to encode for processors that are not here.
class Libpfm {
 public:
  Libpfm() {
    setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
    if (pfm_initialize() != PFM_SUCCESS) return;
    int pmu;
    pfm_for_all_pmus(pmu) {
      pfm_pmu_info_t info;
      memset(&info, 0, sizeof info);
      info.size = sizeof info;
      if (pfm_get_pmu_info(static_cast<pfm_pmu_t>(pmu), &info) == PFM_SUCCESS) {
        pmus_.insert(info.name);
      }
    }
  }
  ~Libpfm() { pfm_terminate(); }
  bool Has(std::string_view pmu) const { return pmus_.count(std::string(pmu)) > 0; }

  std::optional<EventCode> Encode(std::string_view pmu, std::string_view event) const {
    const std::string name = std::string(pmu) + "::" + std::string(event);
    perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    pfm_perf_encode_arg_t arg;
    memset(&arg, 0, sizeof arg);
    arg.size = sizeof arg;
    arg.attr = &attr;
    if (pfm_get_os_event_encoding(name.c_str(), PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg) !=
        PFM_SUCCESS) {
      return std::nullopt;
    }
    return EventCode{attr.type, attr.config, attr.config1, attr.config2};
  }

 private:
  std::set<std::string> pmus_;
};

const Libpfm& Library() {
  static const Libpfm library;
  return library;
}

std::string Show(const EventCode& code) {
  std::ostringstream out;
  out << "type " << code.type << " config 0x" << std::hex << code.config;
  return out.str();
}

// What differs between a family and libpfm4, in words.
std::vector<std::string> Mismatches(const CpuFamily& family) {
  std::vector<std::string> found;
  for (const CatalogueEvent& event : family.events) {
    if (event.libpfm.empty()) continue;
    const std::string name = std::string(family.name) + " " + std::string(event.word);
    const auto code = Library().Encode(family.libpfm, event.libpfm);
    if (!code) {
      found.push_back(name + ": libpfm4 has no " + std::string(event.libpfm));
    } else if (*code != event.code) {
      found.push_back(name + ": " + Show(event.code) + ", libpfm4 says " + Show(*code));
    }
  }
  return found;
}

bool IsArm(const CpuFamily& family) { return family.name.starts_with("Arm "); }
// libpfm4 is built with the tables of one architecture only.
bool Checkable(const CpuFamily& family) {
  return !family.libpfm.empty() && Library().Has(family.libpfm);
}

TEST(Catalogue, EncodingsAreThoseOfLibpfm4) {
  std::set<std::string> checked;
  for (const CpuFamily& family : Catalogue()) {
    if (!Checkable(family)) continue;
    checked.insert(std::string(family.name));
    EXPECT_THAT(Mismatches(family), testing::IsEmpty());
  }
  // Those that cannot be checked, and why.
  const std::map<std::string, std::string> unknown = {
      {"Intel Granite Rapids", "newer than libpfm4 4.13"},
      {"AMD Zen 5", "newer than libpfm4 4.13"},
      {"Arm Cortex-A72", "never was in libpfm4"},
  };
#if defined(__x86_64__)
  const bool arm_here = false;
#else
  const bool arm_here = true;
#endif
  for (const CpuFamily& family : Catalogue()) {
    const std::string name(family.name);
    const bool excused = unknown.count(name) > 0 || (IsArm(family) != arm_here && !family.generic);
    EXPECT_EQ(checked.count(name) == 0, excused) << name;
    if (unknown.count(name)) {
      EXPECT_EQ(family.libpfm, "") << name;
    }
  }
}

TEST(Catalogue, OneWrongBitIsFound) {
  size_t tried = 0;
  for (const CpuFamily& family : Catalogue()) {
    if (!Checkable(family)) continue;
    for (size_t i = 0; i < family.events.size(); i++) {
      if (family.events[i].libpfm.empty()) continue;
      for (const int bit : {0, 3, 8, 13, 24, 32}) {
        CpuFamily wrong = family;
        wrong.events[i].code.config ^= uint64_t{1} << bit;
        ASSERT_EQ(Mismatches(wrong).size(), 1u) << family.name << " " << family.events[i].word;
        tried++;
      }
    }
  }
  EXPECT_GT(tried, 100u);
}

// Entries of libpfm4 4.13 that are wrong: it leaves the event's number out, and what remains is
// counted as another event. The right codes are Intel's (event 0xa4).
TEST(Catalogue, KnownErrorsOfLibpfm4AreNotUsed) {
  if (!Library().Has("spr")) GTEST_SKIP() << "this libpfm4 has no Intel tables";
  struct Error {
    const char *pmu, *event;
    uint64_t libpfm, right;
    const char* reason;
  };
  const Error errors[] = {
      {"icx", "TOPDOWN:BACKEND_BOUND_SLOTS", 0x200, 0x2a4, "0x200 is a reserved fixed event"},
      {"icx", "TOPDOWN:BR_MISPREDICT_SLOTS", 0x800, 0x8a4, "0x800 is no event"},
      {"spr", "TOPDOWN:BACKEND_BOUND_SLOTS", 0x200, 0x2a4, "0x200 is a reserved fixed event"},
      {"spr", "TOPDOWN:BAD_SPEC_SLOTS", 0x400, 0x4a4, "0x400 is SLOTS itself"},
      {"spr", "TOPDOWN:BR_MISPREDICT_SLOTS", 0x800, 0x8a4, "0x800 is no event"},
      {"spr", "TOPDOWN:MEMORY_BOUND_SLOTS", 0x1000, 0x10a4, "0x1000 is no event"},
  };
  for (const Error& error : errors) {
    SCOPED_TRACE(std::string(error.pmu) + "::" + error.event + ": " + error.reason);
    const auto code = Library().Encode(error.pmu, error.event);
    ASSERT_TRUE(code);
    EXPECT_NE(code->config, error.right) << "libpfm4 was mended: take it off this list";
    if (code->config == error.right) continue;
    EXPECT_EQ(code->config, error.libpfm);
    for (const CpuFamily& family : Catalogue()) {
      for (const CatalogueEvent& event : family.events) EXPECT_NE(event.libpfm, error.event);
    }
  }
  // Without a name in libpfm4: only the kernel's names for the fields of PERF_METRICS.
  for (const CpuFamily& family : Catalogue()) {
    for (const CatalogueEvent& event : family.events) {
      if (!event.libpfm.empty()) continue;
      EXPECT_TRUE(event.code.config >= 0x8000 && event.code.config <= 0x8300 &&
                  event.word.starts_with("topdown_"))
          << family.name << " " << event.word;
    }
  }
}

TEST(Catalogue, IsConsistent) {
  std::set<std::string_view> names;
  for (const CpuFamily& family : Catalogue()) {
    SCOPED_TRACE(std::string(family.name));
    EXPECT_TRUE(names.insert(family.name).second);
    std::set<std::string_view> words, used;
    std::set<EventCode> codes;
    for (const CatalogueEvent& event : family.events) {
      EXPECT_TRUE(words.insert(event.word).second) << event.word;
      EXPECT_TRUE(codes.insert(event.code).second) << event.word << " counts what another does";
      EXPECT_EQ(family.Find(event.word), &event);
    }
    EXPECT_EQ(family.Find("no_such_word"), nullptr);
    ASSERT_FALSE(family.groups.empty());
    EXPECT_THAT(family.groups[0].words, testing::ElementsAre("cycles", "instructions"));
    for (const CatalogueGroup& group : family.groups) {
      SCOPED_TRACE(std::string(group.name));
      size_t general = 0;
      for (const std::string_view word : group.words) {
        // Granite Rapids and others without an event simply lack the word.
        const CatalogueEvent* event = family.Find(word);
        ASSERT_NE(event, nullptr) << word;
        used.insert(word);
        const bool fixed = word == "slots" || event->libpfm.empty();
        general += !fixed;
      }
      EXPECT_LE(general, 4u) << "some processors have no more counters";
      for (const Formula& formula : group.formulas) {
        const Metric* metric = FindMetric(formula.metric);
        ASSERT_NE(metric, nullptr) << formula.metric;
        EXPECT_EQ(metric->unit, "ratio");
        EXPECT_EQ(metric->kind, MetricKind::kGauge);
        for (const std::string_view word : formula.expression.words()) {
          if (word == "slots_per_cycle") {
            EXPECT_TRUE(family.slots_per_cycle > 0 || IsArm(family));
            continue;
          }
          const auto in = [&](const CatalogueGroup& g) {
            return std::find(g.words.begin(), g.words.end(), word) != g.words.end();
          };
          EXPECT_TRUE(in(group) || in(family.groups[0]))
              << word << " is not counted together with the rest of " << formula.metric;
        }
      }
    }
    EXPECT_EQ(words, used) << "an event that no group counts";
  }
  for (const char* word : {"cycles", "instructions", "llc_misses", "stalls_memory"}) {
    const auto metric = MetricOfWord(word);
    ASSERT_TRUE(metric) << word;
    EXPECT_NE(FindMetric(*metric), nullptr) << *metric;
  }
  EXPECT_FALSE(MetricOfWord("uops_issued"));
}

TEST(Catalogue, TheDocumentIsWrittenFromIt) {
  const fs::path path = kSource / "docs/events.md";
  const std::string expected = CatalogueDocument();
  if (getenv("HEADRACE_UPDATE_GOLDEN")) std::ofstream(path) << expected;
  std::ifstream in(path);
  const std::string found{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(found == expected)
      << "docs/events.md is not what the catalogue says; HEADRACE_UPDATE_GOLDEN=1 writes it";
}

TEST(Expression, Computes) {
  const std::map<std::string_view, double> values = {{"a", 2}, {"b_1", 3}, {"zero", 0}};
  const auto lookup = [&](std::string_view word) -> std::optional<double> {
    const auto it = values.find(word);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  };
  const std::pair<const char*, std::optional<double>> cases[] = {
      {"7", 7},
      {"a + b_1 * 2", 8},
      {"(a + b_1) * 2", 10},
      {"a - b_1 - 4", -5},
      {"12 / a / b_1", 2},
      {"1 - (a + b_1 * (a - 1)) / (4 * a)", 0.375},
      {"a / zero", std::nullopt},
      {"zero / a", 0},
      {"a + unknown", std::nullopt},
      {"unknown * zero", std::nullopt},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(Expression(text).Evaluate(lookup), expected) << text;
  }
  EXPECT_THAT(Expression("a / (a + b_1)").words(), testing::ElementsAre("a", "b_1"));
}

TEST(ExpressionDeathTest, RefusesWhatIsNone) {
  for (const char* text :
       {"", " ", "a +", "+ a", "a b", "(a", "a)", "()", "a ? b", "a (b)", "A", "a * / b"}) {
    EXPECT_DEATH(Expression{text}, "formula") << text;
  }
}

TEST(Formula, SharesStayBetween0And1) {
  const Formula share{"topdown_backend_ratio", Expression("x"), true, ""};
  const Formula ratio{"ipc_ratio", Expression("x"), false, ""};
  const auto at = [](const Formula& f, double x) {
    return f.Evaluate([&](std::string_view) { return std::optional(x); });
  };
  EXPECT_EQ(at(share, 0.25), 0.25);
  EXPECT_EQ(at(share, -0.01), 0.0);
  EXPECT_EQ(at(share, 1.05), 1.0);
  EXPECT_EQ(at(share, -0.2), std::nullopt) << "counted wrongly: nothing, not 0";
  EXPECT_EQ(at(share, 1.2), std::nullopt);
  EXPECT_EQ(at(share, std::nan("")), std::nullopt);
  EXPECT_EQ(at(ratio, 3.5), 3.5);
}

const CpuFamily& Family(std::string_view name) {
  for (const CpuFamily& family : Catalogue()) {
    if (family.name == name) return family;
  }
  throw std::runtime_error("no such family");
}

// Counts of an interval, and what must come out.
TEST(Formula, TopDownOfEachMaker) {
  struct Case {
    const char* family;
    std::map<std::string_view, double> counts, expected;
  };
  const Case cases[] = {
      {"Intel Skylake-SP",
       {{"cycles", 1000},
        {"slots_per_cycle", 4},
        {"uops_issued", 2400},
        {"uops_retired", 2000},
        {"uops_not_delivered", 800},
        {"recovery_cycles", 50}},
       {{"topdown_retiring_ratio", 0.5},
        {"topdown_frontend_ratio", 0.2},
        {"topdown_bad_speculation_ratio", 0.15},
        {"topdown_backend_ratio", 0.15}}},
      {"Intel Sapphire Rapids",
       {{"slots", 6000},
        {"topdown_retiring", 3000},
        {"topdown_bad_speculation", 600},
        {"topdown_frontend", 900},
        {"topdown_backend", 1500}},
       {{"topdown_retiring_ratio", 0.5},
        {"topdown_bad_speculation_ratio", 0.1},
        {"topdown_frontend_ratio", 0.15},
        {"topdown_backend_ratio", 0.25}}},
      {"AMD Zen 4",
       {{"cycles", 1000},
        {"slots_per_cycle", 6},
        {"slots_frontend", 1200},
        {"slots_backend", 1800},
        {"slots_sibling", 600},
        {"ops_dispatched", 2400},
        {"ops_retired", 2100}},
       {{"topdown_frontend_ratio", 0.2},
        {"topdown_backend_ratio", 0.3},
        {"topdown_sibling_ratio", 0.1},
        {"topdown_retiring_ratio", 0.35},
        {"topdown_bad_speculation_ratio", 0.05}}},
      {"Arm Neoverse V1",
       {{"cycles", 1000},
        {"slots_per_cycle", 8},
        {"stall_slot", 4000},
        {"stall_slot_frontend", 1600},
        {"stall_slot_backend", 2400},
        {"op_retired", 3600},
        {"op_spec", 4000}},
       {{"topdown_frontend_ratio", 0.2},
        {"topdown_backend_ratio", 0.3},
        {"topdown_retiring_ratio", 0.45},
        {"topdown_bad_speculation_ratio", 0.05}}},
      {"Arm Neoverse N2 before r0p3",  // the same work, a slot too many a cycle
       {{"cycles", 1000},
        {"slots_per_cycle", 5},
        {"stall_slot", 3500},
        {"stall_slot_frontend", 2000},
        {"stall_slot_backend", 1500},
        {"op_retired", 2250},
        {"op_spec", 2500}},
       {{"topdown_frontend_ratio", 0.2},
        {"topdown_backend_ratio", 0.3},
        {"topdown_retiring_ratio", 0.45},
        {"topdown_bad_speculation_ratio", 0.05}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.family);
    std::map<std::string_view, double> found;
    double sum = 0;
    for (const CatalogueGroup& group : Family(c.family).groups) {
      for (const Formula& formula : group.formulas) {
        if (!formula.metric.starts_with("topdown_")) continue;
        const auto value = formula.Evaluate([&](std::string_view word) -> std::optional<double> {
          const auto it = c.counts.find(word);
          return it == c.counts.end() ? std::nullopt : std::optional(it->second);
        });
        ASSERT_TRUE(value) << formula.metric;
        found[formula.metric] = *value;
        sum += *value;
      }
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    ASSERT_EQ(found.size(), c.expected.size());
    for (const auto& [metric, value] : c.expected)
      EXPECT_NEAR(found[metric], value, 1e-9) << metric;
  }
}

using Files = std::map<std::string, std::string>;

// A root with the given files.
class Root {
 public:
  explicit Root(const Files& files = {}) {
    std::string pattern = testing::TempDir() + "/headrace-cpu-XXXXXX";
    path_ = mkdtemp(pattern.data());
    for (const auto& [name, text] : files) {
      fs::create_directories((path_ / name.substr(1)).parent_path());
      std::ofstream(path_ / name.substr(1), std::ios::binary) << text;
    }
  }
  ~Root() { fs::remove_all(path_); }
  Host host() const { return Host(path_); }

 private:
  fs::path path_;
};

constexpr const char* kCpuinfo = "/proc/cpuinfo";
constexpr const char* kMidr = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";

std::string X86(const char* vendor, int family, int model, int stepping) {
  std::ostringstream out;
  out << "processor\t: 0\nvendor_id\t: " << vendor << "\ncpu family\t: " << family
      << "\nmodel\t\t: " << model
      << "\nmodel name\t: A Processor @ 2.0GHz\nstepping\t: " << stepping
      << "\nflags\t\t: fpu vme\n\nprocessor\t: 1\nvendor_id\t: Other\nmodel\t\t: 1\n\n";
  return out.str();
}
std::string Arm64(const char* implementer, const char* part, const char* variant, int revision) {
  std::ostringstream out;
  out << "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: " << implementer
      << "\nCPU architecture: 8\nCPU variant\t: " << variant << "\nCPU part\t: " << part
      << "\nCPU revision\t: " << revision << "\n\n";
  return out.str();
}

TEST(CpuId, FamiliesByTheirNumbers) {
  const std::pair<std::string, const char*> cases[] = {
      {X86("GenuineIntel", 6, 85, 4), "Intel Skylake-SP"},
      {X86("GenuineIntel", 6, 85, 7), "Intel Cascade Lake"},
      {X86("GenuineIntel", 6, 106, 6), "Intel Ice Lake-SP"},
      {X86("GenuineIntel", 6, 143, 8), "Intel Sapphire Rapids"},
      {X86("GenuineIntel", 6, 207, 2), "Intel Emerald Rapids"},
      {X86("GenuineIntel", 6, 173, 1), "Intel Granite Rapids"},
      {X86("GenuineIntel", 6, 158, 9), "another processor"},  // a desktop one
      {X86("GenuineIntel", 15, 85, 9), "another processor"},
      {X86("AuthenticAMD", 23, 1, 2), "another processor"},  // Zen 1
      {X86("AuthenticAMD", 23, 49, 0), "AMD Zen 2"},
      {X86("AuthenticAMD", 25, 1, 1), "AMD Zen 3"},
      {X86("AuthenticAMD", 25, 17, 1), "AMD Zen 4"},
      {X86("AuthenticAMD", 25, 160, 2), "AMD Zen 4"},
      {X86("AuthenticAMD", 26, 2, 1), "AMD Zen 5"},
      {X86("AuthenticAMD", 26, 80, 1), "another processor"},  // Zen 6
      {X86("HygonGenuine", 24, 1, 1), "another processor"},
      {Arm64("0x41", "0xd07", "0x1", 0), "Arm Cortex-A57"},
      {Arm64("0x41", "0xd08", "0x0", 3), "Arm Cortex-A72"},
      {Arm64("0x41", "0xd0c", "0x3", 1), "Arm Neoverse N1"},
      {Arm64("0x41", "0xd40", "0x1", 1), "Arm Neoverse V1"},
      {Arm64("0x41", "0xd49", "0x0", 0), "Arm Neoverse N2 before r0p3"},
      {Arm64("0x41", "0xd49", "0x0", 3), "Arm Neoverse N2"},
      {Arm64("0x41", "0xd4f", "0x0", 1), "Arm Neoverse V2"},
      {Arm64("0xc0", "0xd0c", "0x0", 1), "another processor"},  // not Arm's
      {Arm64("0x41", "0xfff", "0x0", 1), "another processor"},
  };
  for (const auto& [cpuinfo, family] : cases) {
    const Root root(Files{{kCpuinfo, cpuinfo}});
    EXPECT_EQ(FindFamily(ReadCpuId(root.host())).name, family) << cpuinfo;
  }
  const Root midr(Files{{kMidr, "0x00000000413fd0c1\n"}});
  EXPECT_EQ(FindFamily(ReadCpuId(midr.host())).name, "Arm Neoverse N1") << "cpuinfo is not needed";
  EXPECT_EQ(ReadCpuId(midr.host()).stepping, 0x31);
}

TEST(CpuId, DamagedFilesLeaveItUnknown) {
  const std::string whole = X86("GenuineIntel", 6, 143, 8);
  const std::string cases[] = {
      "",
      "\n\n",
      "vendor_id",
      "vendor_id\t: GenuineIntel",  // cut off
      "vendor_id\t: GenuineIntel\ncpu family\t: six\nmodel\t\t: 143\n",
      "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 99999999999999999999\n",
      "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: -143\n",
      "CPU implementer\t: 0x41\nCPU part\t: 0xd0c0d0c0d\n",
      std::string("vendor_id\0: GenuineIntel\ncpu family\t: 6\n", 40),
      std::string(100000, ':'),
      std::string(100000, '\xff'),
  };
  for (const std::string& text : cases) {
    const Root root(Files{{kCpuinfo, text}, {kMidr, text}});
    const CpuFamily& family = FindFamily(ReadCpuId(root.host()));
    EXPECT_TRUE(family.generic) << text.substr(0, 80);
  }
  for (size_t length = 0; length < whole.size(); length++) {
    const Root root(Files{{kCpuinfo, whole.substr(0, length)}});
    const auto name = FindFamily(ReadCpuId(root.host())).name;
    EXPECT_TRUE(name == "another processor" || name == "Intel Sapphire Rapids") << length;
  }
  EXPECT_EQ(ReadCpuId(Root().host()), CpuId());
}

TEST(CpuId, ThisMachineHasAFamily) {
  const CpuFamily& family = FindFamily(ReadCpuId(Host()));
  EXPECT_FALSE(family.name.empty());
  RecordProperty("family", std::string(family.name));
}

TEST(SlotsPerCycle, OfTheFamilyOrThePmu) {
  const std::string slots = "/sys/bus/event_source/devices/armv8_pmuv3_0/caps/slots";
  EXPECT_EQ(SlotsPerCycle(Family("AMD Zen 5"), Root().host()), 8.0);
  EXPECT_EQ(SlotsPerCycle(Family("Arm Neoverse V1"), Root(Files{{slots, "0x00000008\n"}}).host()),
            8.0);
  EXPECT_EQ(SlotsPerCycle(Family("Arm Neoverse V1"), Root().host()), std::nullopt);
  for (const char* damaged : {"", "0x", "0x00000000\n", "eight\n", "0xffffffffffffffff\n", "8\n"}) {
    EXPECT_EQ(SlotsPerCycle(Family("Arm Neoverse V1"), Root(Files{{slots, damaged}}).host()),
              std::nullopt)
        << damaged;
  }
}

}  // namespace
}  // namespace headrace::probes::perf
