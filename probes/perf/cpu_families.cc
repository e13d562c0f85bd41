#include "probes/perf/cpu_families.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace headrace::probes::perf {
namespace {

using Events = std::vector<CatalogueEvent>;
using Groups = std::vector<CatalogueGroup>;

EventCode Raw(uint64_t config) { return {PERF_TYPE_RAW, config, 0, 0}; }
EventCode Kernel(uint64_t config) { return {PERF_TYPE_HARDWARE, config, 0, 0}; }

template <typename T>
std::vector<T> operator+(std::vector<T> a, std::vector<T> b) {
  a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
  return a;
}

Formula Share(std::string_view metric, std::string_view expression, std::string_view note = "") {
  return {metric, Expression(expression), true, note};
}

CatalogueGroup Base() {
  return {"base",
          {"cycles", "instructions"},
          {{"ipc_ratio", Expression("instructions / cycles"), false, ""}},
          true};
}
CatalogueGroup Branches() {
  return {"branches",
          {"branches", "branch_misses"},
          {Share("branch_miss_ratio", "branch_misses / branches")},
          false};
}
CatalogueGroup Llc() {
  return {"llc",
          {"llc_references", "llc_misses"},
          {Share("llc_miss_ratio", "llc_misses / llc_references")},
          false};
}
CatalogueGroup Dtlb() { return {"dtlb", {"dtlb_misses"}, {}, false}; }
Groups PlainGroups() { return {Base(), Branches(), Llc(), Dtlb()}; }
CatalogueGroup Stalls() {
  return {"stalls",
          {"stalls_frontend", "stalls_backend"},
          {Share("stalls_frontend_ratio", "stalls_frontend / cycles"),
           Share("stalls_backend_ratio", "stalls_backend / cycles")},
          false};
}
Groups StallGroups() { return PlainGroups() + Groups{Stalls()}; }

// Intel. Events of Intel's architectural list (SDM volume 3, "architectural performance events")
// are the same on all of these cores.

constexpr std::string_view kLlcIntel = "demand and prefetches of the core, not of the LLC itself";

Events IntelEvents(std::string_view llc_references) {
  return {
      {"cycles", Raw(0x3c), "UNHALTED_CORE_CYCLES", ""},
      {"instructions", Raw(0xc0), "INST_RETIRED:ANY_P", ""},
      {"branches", Raw(0xc4), "BR_INST_RETIRED:ALL_BRANCHES", ""},
      {"branch_misses", Raw(0xc5), "BR_MISP_RETIRED:ALL_BRANCHES", ""},
      {"llc_references", Raw(0x4f2e), llc_references, kLlcIntel},
      {"llc_misses", Raw(0x412e), "LONGEST_LAT_CACHE:MISS", kLlcIntel},
  };
}

constexpr std::string_view kWalks = "page walks completed for loads";
constexpr std::string_view kWalkCycles = "cycles with a page walk for a load";
constexpr std::string_view kStallsL3 = "execution stalls with a load that missed the LLC";

CatalogueGroup IntelDtlb() {
  return {"dtlb",
          {"dtlb_misses", "dtlb_walk_cycles"},
          {Share("dtlb_walk_ratio", "dtlb_walk_cycles / cycles")},
          false};
}
CatalogueGroup StallsMemory() {
  return {
      "stalls", {"stalls_memory"}, {Share("stalls_memory_ratio", "stalls_memory / cycles")}, false};
}

// Cascade Lake's core is Skylake's.
Events SkylakeEvents() {
  return IntelEvents("LONGEST_LAT_CACHE:REFERENCE") +
         Events{
             {"dtlb_misses", Raw(0x0e08), "DTLB_LOAD_MISSES:WALK_COMPLETED", kWalks},
             {"dtlb_walk_cycles", Raw(0x1001008), "DTLB_LOAD_MISSES:WALK_ACTIVE", kWalkCycles},
             {"stalls_memory", Raw(0x60006a3), "CYCLE_ACTIVITY:STALLS_L3_MISS", kStallsL3},
             {"uops_issued", Raw(0x010e), "UOPS_ISSUED:ANY", ""},
             {"uops_retired", Raw(0x02c2), "UOPS_RETIRED:RETIRE_SLOTS", "retirement slots used"},
             {"uops_not_delivered", Raw(0x019c), "IDQ_UOPS_NOT_DELIVERED:CORE", ""},
             {"recovery_cycles", Raw(0x010d), "INT_MISC:RECOVERY_CYCLES", ""},
         };
}
Groups SkylakeGroups() {
  constexpr std::string_view kSibling =
      "of all slots of the core: while the core's other thread runs too, this one has about half "
      "of them and the rest looks like \"backend\"";
  return {Base(),
          Branches(),
          Llc(),
          IntelDtlb(),
          StallsMemory(),
          {"topdown",
           {"uops_issued", "uops_retired", "uops_not_delivered", "recovery_cycles"},
           {Share("topdown_retiring_ratio", "uops_retired / (slots_per_cycle * cycles)", kSibling),
            Share("topdown_frontend_ratio", "uops_not_delivered / (slots_per_cycle * cycles)",
                  kSibling),
            Share("topdown_bad_speculation_ratio",
                  "(uops_issued - uops_retired + slots_per_cycle * recovery_cycles) / "
                  "(slots_per_cycle * cycles)",
                  kSibling),
            Share("topdown_backend_ratio",
                  "1 - (uops_not_delivered + uops_issued + slots_per_cycle * recovery_cycles) / "
                  "(slots_per_cycle * cycles)",
                  kSibling)},
           true}};
}

// Ice Lake and later: the kernel gives the PERF_METRICS register as events 0x8000 to 0x8300 (sysfs:
// cpu/events/topdown-*), valid only in a group that "slots" leads; their values are slots.
Events TopdownEvents() {
  constexpr std::string_view kMetric = "the kernel's name for a field of PERF_METRICS";
  return {
      {"slots", Raw(0x0400), "TOPDOWN:SLOTS", "fixed counter 3"},
      {"topdown_retiring", Raw(0x8000), "", kMetric},
      {"topdown_bad_speculation", Raw(0x8100), "", kMetric},
      {"topdown_frontend", Raw(0x8200), "", kMetric},
      {"topdown_backend", Raw(0x8300), "", kMetric},
  };
}
CatalogueGroup TopdownGroup() {
#define ALL_SLOTS \
  "(topdown_retiring + topdown_bad_speculation + topdown_frontend + topdown_backend)"
  return {"topdown",
          {"slots", "topdown_retiring", "topdown_bad_speculation", "topdown_frontend",
           "topdown_backend"},
          {Share("topdown_retiring_ratio", "topdown_retiring / " ALL_SLOTS),
           Share("topdown_bad_speculation_ratio", "topdown_bad_speculation / " ALL_SLOTS),
           Share("topdown_frontend_ratio", "topdown_frontend / " ALL_SLOTS),
           Share("topdown_backend_ratio", "topdown_backend / " ALL_SLOTS)},
          true};
#undef ALL_SLOTS
}

Events IceLakeEvents() {
  return IntelEvents("LONGEST_LAT_CACHE:REFERENCES") +
         Events{
             {"dtlb_misses", Raw(0x0e08), "DTLB_LOAD_MISSES:WALK_COMPLETED", kWalks},
             {"dtlb_walk_cycles", Raw(0x1001008), "DTLB_LOAD_MISSES:WALK_ACTIVE", kWalkCycles},
             {"stalls_memory", Raw(0x60006a3), "CYCLE_ACTIVITY:STALLS_L3_MISS", kStallsL3},
         } +
         TopdownEvents();
}
Events SapphireRapidsEvents() {
  return IntelEvents("LONGEST_LAT_CACHE:REFERENCE") +
         Events{
             {"dtlb_misses", Raw(0x0e12), "DTLB_LOAD_MISSES:WALK_COMPLETED", kWalks},
             {"dtlb_walk_cycles", Raw(0x1001012), "DTLB_LOAD_MISSES:WALK_ACTIVE", kWalkCycles},
             {"stalls_memory", Raw(0x9000947), "MEMORY_ACTIVITY:STALLS_L3_MISS", kStallsL3},
         } +
         TopdownEvents();
}
Events GraniteRapidsEvents() {
  return IntelEvents("LONGEST_LAT_CACHE:REFERENCE") +
         Events{{"dtlb_misses", Raw(0x0e12), "DTLB_LOAD_MISSES:WALK_COMPLETED", kWalks}} +
         TopdownEvents();
}
Groups IceLakeGroups() {
  return {Base(), Branches(), Llc(), IntelDtlb(), StallsMemory(), TopdownGroup()};
}

// AMD. Bits 8 to 11 of an event's number are bits 32 to 35 of its code. No event of the core counts
// misses of the LLC (it belongs to several cores); fills of the data cache, by where they came
// from, say the same.

constexpr std::string_view kFillsBeyondL2 =
    "data cache fills from beyond the core's L2, prefetches included";
constexpr std::string_view kFillsDram =
    "data cache fills from DRAM (or IO), prefetches into L1 included";
constexpr std::string_view kWalksAmd = "misses of both data TLBs, all page sizes";

Events AmdEvents() {
  return {
      {"cycles", Raw(0x76), "CYCLES_NOT_IN_HALT", ""},
      {"instructions", Raw(0xc0), "RETIRED_INSTRUCTIONS", ""},
      {"branches", Raw(0xc2), "RETIRED_BRANCH_INSTRUCTIONS", ""},
      {"branch_misses", Raw(0xc3), "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", ""},
      {"dtlb_misses", Raw(0xf045),
       "L1_DTLB_MISS:TLB_RELOAD_1G_L2_MISS:TLB_RELOAD_2M_L2_MISS:TLB_RELOAD_COALESCED_PAGE_MISS:"
       "TLB_RELOAD_4K_L2_MISS",
       kWalksAmd},
  };
}
Events Zen2Events() {
  return AmdEvents() +
         Events{
             {"llc_references", Raw(0x5a43),
              "DATA_CACHE_REFILLS_FROM_SYSTEM:LS_MABRESP_LCL_CACHE:LS_MABRESP_LCL_DRAM:"
              "LS_MABRESP_RMT_CACHE:LS_MABRESP_RMT_DRAM",
              "demand fills of the data cache from beyond the core's L2; prefetches are not in it"},
             {"llc_misses", Raw(0x4843),
              "DATA_CACHE_REFILLS_FROM_SYSTEM:LS_MABRESP_LCL_DRAM:LS_MABRESP_RMT_DRAM",
              "demand fills of the data cache from DRAM (or IO); prefetches are not in it"},
         };
}
Events Zen3Events() {
  return AmdEvents() +
         Events{
             {"llc_references", Raw(0x5e44),
              "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:INT_CACHE:EXT_CACHE_LCL:MEM_IO_LCL:EXT_CACHE_RMT:"
              "MEM_IO_RMT",
              kFillsBeyondL2},
             {"llc_misses", Raw(0x4844), "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:MEM_IO_LCL:MEM_IO_RMT",
              kFillsDram},
         };
}
Events Zen4Events() {
  return AmdEvents() +
         Events{
             {"llc_references", Raw(0x5e44),
              "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:LOCAL_CCX:NEAR_CACHE_NEAR_FAR:DRAM_IO_NEAR:"
              "FAR_CACHE_NEAR_FAR:DRAM_IO_FAR",
              kFillsBeyondL2},
             {"llc_misses", Raw(0x4844),
              "ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_NEAR:DRAM_IO_FAR", kFillsDram},
             {"slots_frontend", Raw(0x1000001a0), "DISPATCH_STALLS_1:FE_NO_OPS", ""},
             {"slots_backend", Raw(0x100001ea0), "DISPATCH_STALLS_1:BE_STALLS", ""},
             {"slots_sibling", Raw(0x1000060a0), "DISPATCH_STALLS_1:SMT_CONTENTION",
              "slots given to the core's other thread"},
             {"ops_dispatched", Raw(0x07aa),
              "OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER:OPCACHE:LOOP_BUFFER", ""},
             {"ops_retired", Raw(0xc1), "RETIRED_OPS", ""},
         };
}
Groups Zen4Groups() {
  return PlainGroups() +
         Groups{
             {"topdown_stalls",
              {"slots_frontend", "slots_backend", "slots_sibling"},
              {Share("topdown_frontend_ratio", "slots_frontend / (slots_per_cycle * cycles)"),
               Share("topdown_backend_ratio", "slots_backend / (slots_per_cycle * cycles)"),
               Share("topdown_sibling_ratio", "slots_sibling / (slots_per_cycle * cycles)")},
              true},
             {"topdown_work",
              {"ops_dispatched", "ops_retired"},
              {Share("topdown_retiring_ratio", "ops_retired / (slots_per_cycle * cycles)"),
               Share("topdown_bad_speculation_ratio",
                     "(ops_dispatched - ops_retired) / (slots_per_cycle * cycles)")},
              true},
         };
}

// Arm: numbers of the architecture (PMUv3, common events), which a core may leave out.

Events ArmEvents() {
  return {
      {"cycles", Raw(0x11), "CPU_CYCLES", ""},
      {"instructions", Raw(0x08), "INST_RETIRED", ""},
  };
}
Events CortexEvents() {
  return ArmEvents() +
         Events{
             {"branches", Raw(0x12), "BRANCH_PRED", "branches that could be predicted, executed"},
             {"branch_misses", Raw(0x10), "BRANCH_MISPRED", "speculative ones included"},
             {"llc_references", Raw(0x16), "L2D_CACHE_ACCESS", "the LLC of the cores is their L2"},
             {"llc_misses", Raw(0x17), "L2D_CACHE_REFILL", "the LLC of the cores is their L2"},
             {"dtlb_misses", Raw(0x05), "L1D_TLB_REFILL", "of the first TLB, not page walks"},
         };
}
Events NeoverseN1Events() {
  return ArmEvents() + Events{
                           {"branches", Raw(0x21), "BR_RETIRED", ""},
                           {"branch_misses", Raw(0x22), "BR_MIS_PRED_RETIRED", ""},
                           {"llc_references", Raw(0x36), "LL_CACHE_RD", "reads"},
                           {"llc_misses", Raw(0x37), "LL_CACHE_MISS_RD", "reads"},
                           {"dtlb_misses", Raw(0x34), "DTLB_WALK", "page walks for data"},
                           {"stalls_frontend", Raw(0x23), "STALL_FRONTEND", "cycles"},
                           {"stalls_backend", Raw(0x24), "STALL_BACKEND", "cycles"},
                       };
}

Events NeoverseV1Events() {
  return NeoverseN1Events() +
         Events{
             {"stalls_memory", Raw(0x4005), "STALL_BACKEND_MEM", "backend stalls on memory"},
             {"stall_slot", Raw(0x3f), "STALL_SLOT", ""},
             {"stall_slot_frontend", Raw(0x3e), "STALL_SLOT_FRONTEND", ""},
             {"stall_slot_backend", Raw(0x3d), "STALL_SLOT_BACKEND", ""},
             {"op_retired", Raw(0x3a), "OP_RETIRED", ""},
             {"op_spec", Raw(0x3b), "OP_SPEC", ""},
         };
}
CatalogueGroup ArmStallsMemory() {
  CatalogueGroup group = StallsMemory();
  group.name = "stalls_memory";
  return group;
}
Groups NeoverseV1Groups() {
  return StallGroups() +
         Groups{
             ArmStallsMemory(),
             {"topdown_stalls",
              {"stall_slot_frontend", "stall_slot_backend"},
              {Share("topdown_frontend_ratio", "stall_slot_frontend / (slots_per_cycle * cycles)"),
               Share("topdown_backend_ratio", "stall_slot_backend / (slots_per_cycle * cycles)")},
              true},
             {"topdown_work",
              {"stall_slot", "op_retired", "op_spec"},
              {Share("topdown_retiring_ratio",
                     "op_retired / op_spec * (1 - stall_slot / (slots_per_cycle * cycles))"),
               Share("topdown_bad_speculation_ratio",
                     "(1 - op_retired / op_spec) * (1 - stall_slot / (slots_per_cycle * cycles))")},
              true},
         };
}
// Neoverse N2 before r0p3 counts one stalled slot of the frontend too many in each cycle.
Groups EarlyNeoverseN2Groups() {
  constexpr std::string_view kErratum = "less one slot a cycle, which these revisions overcount";
  return StallGroups() +
         Groups{
             ArmStallsMemory(),
             {"topdown_stalls",
              {"stall_slot_frontend", "stall_slot_backend"},
              {Share("topdown_frontend_ratio",
                     "(stall_slot_frontend - cycles) / (slots_per_cycle * cycles)", kErratum),
               Share("topdown_backend_ratio", "stall_slot_backend / (slots_per_cycle * cycles)")},
              true},
             {"topdown_work",
              {"stall_slot", "op_retired", "op_spec"},
              {Share("topdown_retiring_ratio",
                     "op_retired / op_spec * (1 - (stall_slot - cycles) / "
                     "(slots_per_cycle * cycles))",
                     kErratum),
               Share("topdown_bad_speculation_ratio",
                     "(1 - op_retired / op_spec) * (1 - (stall_slot - cycles) / "
                     "(slots_per_cycle * cycles))",
                     kErratum)},
              true},
         };
}

// The kernel's generic events.

Events GenericEvents() {
  constexpr std::string_view kUnknown = "what the kernel takes it to be on this processor";
  return {
      {"cycles", Kernel(PERF_COUNT_HW_CPU_CYCLES), "PERF_COUNT_HW_CPU_CYCLES", ""},
      {"instructions", Kernel(PERF_COUNT_HW_INSTRUCTIONS), "PERF_COUNT_HW_INSTRUCTIONS", ""},
      {"branches", Kernel(PERF_COUNT_HW_BRANCH_INSTRUCTIONS), "PERF_COUNT_HW_BRANCH_INSTRUCTIONS",
       kUnknown},
      {"branch_misses", Kernel(PERF_COUNT_HW_BRANCH_MISSES), "PERF_COUNT_HW_BRANCH_MISSES",
       kUnknown},
      {"llc_references", Kernel(PERF_COUNT_HW_CACHE_REFERENCES), "PERF_COUNT_HW_CACHE_REFERENCES",
       kUnknown},
      {"llc_misses", Kernel(PERF_COUNT_HW_CACHE_MISSES), "PERF_COUNT_HW_CACHE_MISSES", kUnknown},
      {"dtlb_misses",
       {PERF_TYPE_HW_CACHE,
        PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |
            PERF_COUNT_HW_CACHE_RESULT_MISS << 16,
        0, 0},
       "PERF_COUNT_HW_CACHE_DTLB:READ:MISS",
       kUnknown},
      {"stalls_frontend", Kernel(PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
       "PERF_COUNT_HW_STALLED_CYCLES_FRONTEND", kUnknown},
      {"stalls_backend", Kernel(PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
       "PERF_COUNT_HW_STALLED_CYCLES_BACKEND", kUnknown},
  };
}

// Which processors are which.

using Vendor = CpuId::Vendor;
bool Intel(const CpuId& id, std::initializer_list<int> models) {
  return id.vendor == Vendor::kIntel && id.family == 6 &&
         std::find(models.begin(), models.end(), id.model) != models.end();
}
struct Models {
  int first, last;
};
bool Amd(const CpuId& id, int family, std::initializer_list<Models> models) {
  return id.vendor == Vendor::kAmd && id.family == family &&
         std::any_of(models.begin(), models.end(),
                     [&](const Models& m) { return id.model >= m.first && id.model <= m.last; });
}
bool Arm(const CpuId& id, int part) { return id.vendor == Vendor::kArm && id.part == part; }

constexpr int kNeoverseN2 = 0xd49;
constexpr int kR0p3 = 0x03;

}  // namespace

std::vector<CpuFamily> CpuFamilies() {
  constexpr std::string_view kSapphire =
      "the core of Sapphire Rapids, in whose table libpfm4's encodings are checked";
  return {
      {"Intel Skylake-SP", [](const CpuId& id) { return Intel(id, {0x55}) && id.stepping < 5; },
       "skx", SkylakeEvents(), SkylakeGroups(), 4, false, ""},
      {"Intel Cascade Lake", [](const CpuId& id) { return Intel(id, {0x55}) && id.stepping >= 5; },
       "clx", SkylakeEvents(), SkylakeGroups(), 4, false, "Cooper Lake too"},
      {"Intel Ice Lake-SP",
       [](const CpuId& id) {
         return Intel(id, {0x6a, 0x6c});
       },
       "icx", IceLakeEvents(), IceLakeGroups(), 0, false, ""},
      {"Intel Sapphire Rapids", [](const CpuId& id) { return Intel(id, {0x8f}); }, "spr",
       SapphireRapidsEvents(), IceLakeGroups(), 0, false, ""},
      {"Intel Emerald Rapids", [](const CpuId& id) { return Intel(id, {0xcf}); }, "spr",
       SapphireRapidsEvents(), IceLakeGroups(), 0, false, kSapphire},
      {"Intel Granite Rapids",
       [](const CpuId& id) {
         return Intel(id, {0xad, 0xae});
       },
       "",
       GraniteRapidsEvents(),
       {Base(), Branches(), Llc(), Dtlb(), TopdownGroup()},
       0,
       false,
       "libpfm4 4.13 does not know it. Architectural events and those of Linux's tables; stalls on "
       "memory are left out, as no second table was at hand"},
      {"AMD Zen 2",
       [](const CpuId& id) {
         return Amd(id, 0x17, {{0x30, 0x4f}, {0x60, 0x7f}, {0x90, 0x91}, {0xa0, 0xaf}});
       },
       "amd64_fam17h_zen2", Zen2Events(), PlainGroups(), 0, false, "no top-down on this core"},
      {"AMD Zen 3",
       [](const CpuId& id) {
         return Amd(id, 0x19, {{0x00, 0x0f}, {0x20, 0x5f}});
       },
       "amd64_fam19h_zen3", Zen3Events(), PlainGroups(), 0, false, "no top-down on this core"},
      {"AMD Zen 4",
       [](const CpuId& id) {
         return Amd(id, 0x19, {{0x10, 0x1f}, {0x60, 0xaf}});
       },
       "amd64_fam19h_zen4", Zen4Events(), Zen4Groups(), 6, false, ""},
      {"AMD Zen 5",
       [](const CpuId& id) {
         return Amd(id, 0x1a, {{0x00, 0x2f}, {0x40, 0x4f}, {0x60, 0x7f}});
       },
       "", Zen4Events(), Zen4Groups(), 8, false,
       "libpfm4 4.13 does not know it; the numbers are those of Zen 4 and were compared with "
       "Linux's own tables"},
      {"Arm Cortex-A57", [](const CpuId& id) { return Arm(id, 0xd07); }, "arm_ac57", CortexEvents(),
       PlainGroups(), 0, false, ""},
      {"Arm Cortex-A72", [](const CpuId& id) { return Arm(id, 0xd08); }, "", CortexEvents(),
       PlainGroups(), 0, false, "libpfm4 4.13 does not know it; the same events as Cortex-A57"},
      {"Arm Neoverse N1", [](const CpuId& id) { return Arm(id, 0xd0c); }, "arm_n1",
       NeoverseN1Events(), StallGroups(), 0, false, "stalls in cycles only, no top-down"},
      {"Arm Neoverse N2",
       [](const CpuId& id) { return Arm(id, kNeoverseN2) && id.stepping >= kR0p3; }, "arm_n2",
       NeoverseV1Events(), NeoverseV1Groups(), 0, false, "slots per cycle: of the PMU, 5"},
      {"Arm Neoverse N2 before r0p3",
       [](const CpuId& id) { return Arm(id, kNeoverseN2) && id.stepping < kR0p3; }, "arm_n2",
       NeoverseV1Events(), EarlyNeoverseN2Groups(), 0, false, "slots per cycle: of the PMU, 5"},
      {"Arm Neoverse V1", [](const CpuId& id) { return Arm(id, 0xd40); }, "arm_v1",
       NeoverseV1Events(), NeoverseV1Groups(), 0, false, "slots per cycle: of the PMU, 8"},
      {"Arm Neoverse V2", [](const CpuId& id) { return Arm(id, 0xd4f); }, "arm_v2",
       NeoverseV1Events(), NeoverseV1Groups(), 0, false, "slots per cycle: of the PMU, 8"},
      {"another processor", [](const CpuId&) { return true; }, "perf", GenericEvents(),
       StallGroups(), 0, true,
       "not in the catalogue: generic events, whose meaning differs between processors and kernel "
       "versions"},
  };
}

}  // namespace headrace::probes::perf
