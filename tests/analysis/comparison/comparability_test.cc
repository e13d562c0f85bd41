#include "analysis/comparison/comparability.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace headrace::analysis {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

RunView Typical(int64_t id) {
  RunView view;
  RunRow& run = view.run;
  run.run_id = id;
  run.state = "complete";
  run.program = "ads";
  run.pipeline_path = "ads/pipeline.toml";
  run.pipeline_text = "source = 1\nstage = 2\n";
  run.hostname = "host-a";
  run.kernel = "Linux 6.1.44-generic";
  run.cpu_model = "Xeon";
  run.headrace_version = "0.1.0";
  run.cores_count = 4;
  run.cores_bound_by = "affinity";
  run.memory_bytes = int64_t{8} << 30;
  run.memory_bound_by = "cgroup";
  run.accounting_level = 3;
  run.kind = "pipeline";
  run.settings_text = "decode.parallelism=1";
  run.table_text = "3 files, 1000 bytes, 00ff";
  run.cold = 0;
  run.resident_ratio = 1.0;
  run.duration_ns = 10 * kSecond;
  run.started_realtime_ns = 1'000'000 * kSecond + id * 20 * kSecond;
  return view;
}

const ConditionDifference* Find(const Comparability& result, const std::string& what) {
  for (const ConditionDifference& difference : result.differences) {
    if (difference.what == what) return &difference;
  }
  return nullptr;
}

TEST(Comparability, EqualConditionsDifferInNothing) {
  const Comparability result = CompareConditions(Typical(1), Typical(2));
  EXPECT_TRUE(result.differences.empty()) << result.differences[0].text;
  EXPECT_FALSE(result.refused());
  EXPECT_EQ(result.Refusal(), "");
}

struct Case {
  const char* name;
  std::function<void(RunView*)> change;  // of the second run
  const char* what;                      // the only difference
  ConditionSeverity severity;
  const char* text;  // part of the sentence
};

constexpr auto kNote = ConditionSeverity::kNote;
constexpr auto kRefuse = ConditionSeverity::kRefuse;

const Case kCases[] = {
    {"CPU", [](RunView* v) { v->run.cpu_model = "Epyc"; }, "cpu", kRefuse, "CPU: Xeon and Epyc"},
    {"CPU not recorded", [](RunView* v) { v->run.cpu_model = ""; }, "cpu", kNote,
     "Xeon and not known"},
    {"host", [](RunView* v) { v->run.hostname = "host-b"; }, "host", kNote, "host-a and host-b"},
    {"kernel's series", [](RunView* v) { v->run.kernel = "Linux 6.18.44"; }, "kernel", kRefuse,
     "6.18"},
    {"kernel's patch", [](RunView* v) { v->run.kernel = "Linux 6.1.45-generic"; }, "kernel", kNote,
     "6.1.45"},
    {"version", [](RunView* v) { v->run.headrace_version = "0.2.0"; }, "version", kNote,
     "0.1.0 and 0.2.0"},
    {"cores", [](RunView* v) { v->run.cores_count = 16; }, "cores", kRefuse,
     "cores: 4 (affinity) and 16 (affinity)"},
    {"quota instead of affinity", [](RunView* v) { v->run.cores_bound_by = "cgroup quota"; },
     "cores", kNote, "4 (cgroup quota)"},
    {"cores not known", [](RunView* v) { v->run.cores_count.reset(); }, "cores", kNote,
     "not known"},
    {"a little less memory", [](RunView* v) { *v->run.memory_bytes -= int64_t{1} << 30; }, "memory",
     kNote, "8.00 GiB (cgroup) and 7.00 GiB (cgroup)"},
    {"a third of the memory", [](RunView* v) { *v->run.memory_bytes /= 3; }, "memory", kRefuse,
     "GiB"},
    {"table", [](RunView* v) { v->run.table_text = "3 files, 1000 bytes, 0100"; }, "table", kRefuse,
     "0100"},
    {"no table", [](RunView* v) { v->run.table_text = ""; }, "table", kRefuse, "none"},
    {"cold", [](RunView* v) { v->run.cold = 1; }, "cache", kRefuse, "cold"},
    {"half in the cache", [](RunView* v) { v->run.resident_ratio = 0.4; }, "cache", kRefuse,
     "100 % of the table in the page cache and 40 %"},
    {"a little less in the cache", [](RunView* v) { v->run.resident_ratio = 0.8; }, "cache", kNote,
     "80 %"},
    {"cache not known", [](RunView* v) { v->run.resident_ratio.reset(); }, "cache", kNote,
     "not known"},
    {"ceiling", [](RunView* v) { v->run.kind = "ceiling"; }, "kind", kRefuse,
     "pipeline and ceiling"},
    {"settings", [](RunView* v) { v->run.settings_text = "decode.parallelism=2\nx.y=3"; },
     "settings", kNote, "decode.parallelism: 1 and 2, x.y: of the file and 3"},
    {"file changed", [](RunView* v) { v->run.pipeline_text = "source = 1\nstage = 3\n"; },
     "pipeline", kNote, "ads/pipeline.toml changed in between: 1 line, the first is line 2"},
    {"added work", [](RunView* v) { v->added_work = "--checksum"; }, "added work", kRefuse,
     "none and --checksum"},
    {"accounting", [](RunView* v) { v->run.accounting_level = 1; }, "accounting", kNote,
     "measured at level 3 and at level 1"},
    {"from outside", [](RunView* v) { v->run.accounting_level = 0; }, "accounting", kNote,
     "measured at level 3 and from outside"},
    {"deep", [](RunView* v) { v->run.deep = 1; }, "deep", kRefuse, "--deep"},
    {"flight recorder", [](RunView* v) { v->run.ring_ns = kSecond; }, "ring", kNote, "in part"},
    {"interrupted", [](RunView* v) { v->run.state = "interrupted"; }, "state", kNote,
     "run 2 is interrupted"},
    {"short", [](RunView* v) { v->run.duration_ns = 4 * kSecond; }, "duration", kNote,
     "10.0 s and 4.00 s"},
    {"at once", [](RunView* v) { v->run.started_realtime_ns -= 15 * kSecond; }, "time", kRefuse,
     "shared the machine"},
    {"days apart", [](RunView* v) { v->run.started_realtime_ns += 12 * 86400 * kSecond; }, "time",
     kNote, "12 days apart"},
};

TEST(Comparability, NamesEachDifferenceAlone) {
  for (const Case& one : kCases) {
    RunView changed = Typical(2);
    one.change(&changed);
    const Comparability result = CompareConditions(Typical(1), changed);
    ASSERT_EQ(result.differences.size(), 1u) << one.name;
    const ConditionDifference& difference = result.differences[0];
    EXPECT_EQ(difference.what, one.what) << one.name;
    EXPECT_EQ(difference.severity, one.severity) << one.name;
    EXPECT_NE(difference.text.find(one.text), std::string::npos)
        << one.name << ": " << difference.text;
    EXPECT_EQ(result.refused(), one.severity == kRefuse) << one.name;
    // And the same with sides exchanged.
    const Comparability turned = CompareConditions(changed, Typical(1));
    ASSERT_EQ(turned.differences.size(), 1u) << one.name;
    EXPECT_EQ(turned.differences[0].severity, one.severity) << one.name;
  }
}

TEST(Comparability, WhatIsMeantToDifferIsNoted) {
  RunView other = Typical(2);
  other.run.table_text = "4 files, 2000 bytes, 0100";
  other.run.cold = 1;
  other.run.cores_count = 2;
  *other.run.memory_bytes /= 4;
  EXPECT_TRUE(CompareConditions(Typical(1), other).refused());
  const Comparability meant =
      CompareConditions(Typical(1), other, {.table = true, .cache = true, .cores = true});
  EXPECT_FALSE(meant.refused()) << meant.Refusal();
  EXPECT_EQ(meant.differences.size(), 4u);
}

TEST(Comparability, AChangedFileIsRefusedWhereNoneWasMeant) {
  RunView other = Typical(2);
  other.run.pipeline_text += "# edited\n";
  EXPECT_TRUE(CompareConditions(Typical(1), other, {.pipeline = false}).refused());
}

TEST(Comparability, RefusalIsOneLineOfAllThatRefuses) {
  RunView other = Typical(2);
  other.run.cores_count = 16;
  other.run.headrace_version = "0.2.0";
  other.run.cpu_model = "Epyc";
  const Comparability result = CompareConditions(Typical(1), other);
  EXPECT_EQ(result.Refusal(),
            "not comparable: CPU: Xeon and Epyc; cores: 4 (affinity) and 16 (affinity)");
  EXPECT_EQ(result.differences.back().what, "version") << "notes come last";
}

TEST(Comparability, OfARunThatTellsNothingOnlyNotes) {
  RunView bare;
  bare.run.run_id = 2;
  const Comparability result = CompareConditions(Typical(1), bare);
  for (const ConditionDifference& difference : result.differences) {
    if (difference.what == "pipeline" || difference.what == "program") continue;
    EXPECT_EQ(difference.severity, kNote) << difference.text;
    EXPECT_EQ(difference.text.find("  "), std::string::npos) << difference.text;
  }
  EXPECT_FALSE(result.refused()) << result.Refusal();
  EXPECT_TRUE(CompareConditions(bare, bare).differences.empty());
}

TEST(Comparability, OfSetsNamesEachKindOnceAndWithinASide) {
  RunView a1 = Typical(1), a2 = Typical(2), a3 = Typical(3);
  RunView b1 = Typical(4), b2 = Typical(5);
  for (RunView* b : {&b1, &b2}) b->run.settings_text = "decode.parallelism=2";
  a3.run.settings_text = "decode.parallelism=8";
  const RunView* a[] = {&a1, &a2, &a3};
  const RunView* b[] = {&b1, &b2};
  const Comparability result = CompareConditions(a, b);
  ASSERT_EQ(result.differences.size(), 2u);
  EXPECT_EQ(result.differences[0].severity, kRefuse);
  EXPECT_EQ(result.differences[0].text,
            "runs 1 and 3 of one side: settings: decode.parallelism: 1 and 8");
  EXPECT_EQ(result.differences[1].severity, kNote);
  EXPECT_EQ(result.differences[1].text,
            "settings: decode.parallelism: 1 and 2 (and in 1 more run)");
}

TEST(Comparability, OfSetsFindsAnyTwoRunsAtOnce) {
  RunView a1 = Typical(1), a2 = Typical(2), b1 = Typical(3), b2 = Typical(4);
  b1.run.started_realtime_ns = a2.run.started_realtime_ns + kSecond;
  const RunView* a[] = {&a1, &a2};
  const RunView* b[] = {&b1, &b2};
  const Comparability result = CompareConditions(a, b);
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.Refusal(),
            "not comparable: runs 2 and 3 ran at the same time, and shared the machine");
  EXPECT_TRUE(Find(result, "time") != nullptr);
  EXPECT_TRUE(CompareConditions(std::span<const RunView* const>(), b).differences.empty());
}

}  // namespace
}  // namespace headrace::analysis
