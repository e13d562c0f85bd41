#include "analysis/study/published.h"

#include <algorithm>
#include <array>

namespace headrace::analysis {
namespace {

using enum Sureness;

constexpr const char* kFeatures = "ISCA'22, table 5";
constexpr const char* kUsed = "ISCA'22, table 4";
constexpr const char* kReads = "ISCA'22, table 6";
constexpr const char* kWorkers = "ISCA'22, table 9";
constexpr const char* kDemand = "ISCA'22, table 8";
constexpr const char* kStall = "arXiv 2108.09373v1, abstract";
constexpr const char* kHost = "ISCA'22, table 7";
constexpr const char* kCycles = "ISCA'22, section 6";
constexpr const char* kSessions = "RecD, section 3";
constexpr double kGB = 1e9, kKB = 1e3;

// By key, then by model; FindPublished and a test rely on no order but on unique pairs.
constexpr PublishedValue kValues[] = {
    {"stored_dense_features", "rm1", 12115, headrace::Unit::kCount, kChecked, kFeatures},
    {"stored_dense_features", "rm2", 12596, headrace::Unit::kCount, kChecked, kFeatures},
    {"stored_dense_features", "rm3", 5707, headrace::Unit::kCount, kChecked, kFeatures},
    {"stored_sparse_features", "rm1", 1763, headrace::Unit::kCount, kChecked, kFeatures},
    {"stored_sparse_features", "rm2", 1817, headrace::Unit::kCount, kChecked, kFeatures},
    {"stored_sparse_features", "rm3", 188, headrace::Unit::kCount, kChecked, kFeatures},
    {"used_dense_features", "rm1", 1221, headrace::Unit::kCount, kChecked, kUsed},
    {"used_dense_features", "rm2", 1113, headrace::Unit::kCount, kChecked, kUsed},
    {"used_dense_features", "rm3", 504, headrace::Unit::kCount, kChecked, kUsed},
    {"used_sparse_features", "rm1", 298, headrace::Unit::kCount, kChecked, kUsed},
    {"used_sparse_features", "rm2", 306, headrace::Unit::kCount, kChecked, kUsed},
    {"used_sparse_features", "rm3", 42, headrace::Unit::kCount, kChecked, kUsed},
    {"features_used_ratio", "rm1", 0.11, headrace::Unit::kRatio, kChecked, kFeatures},
    {"features_used_ratio", "rm2", 0.10, headrace::Unit::kRatio, kChecked, kFeatures},
    {"features_used_ratio", "rm3", 0.09, headrace::Unit::kRatio, kChecked, kFeatures},
    {"bytes_used_ratio", "rm1", 0.37, headrace::Unit::kRatio, kChecked, kFeatures},
    {"bytes_used_ratio", "rm2", 0.34, headrace::Unit::kRatio, kChecked, kFeatures},
    {"bytes_used_ratio", "rm3", 0.21, headrace::Unit::kRatio, kChecked, kFeatures},
    {"io_p50_bytes", "rm1", 1.24 * kKB, headrace::Unit::kBytes, kChecked, kReads},
    {"tensor_bytes_per_s", "rm1", 0.68 * kGB, headrace::Unit::kBytesPerSecond, kChecked, kWorkers},
    {"tensor_bytes_per_s", "rm2", 0.50 * kGB, headrace::Unit::kBytesPerSecond, kChecked, kWorkers},
    {"tensor_bytes_per_s", "rm3", 0.22 * kGB, headrace::Unit::kBytesPerSecond, kChecked, kWorkers},
    {"trainer_bytes_per_s", "rm1", 16.50 * kGB, headrace::Unit::kBytesPerSecond, kQuoted, kDemand},
    {"trainer_bytes_per_s", "rm2", 4.69 * kGB, headrace::Unit::kBytesPerSecond, kQuoted, kDemand},
    {"trainer_bytes_per_s", "rm3", 12.00 * kGB, headrace::Unit::kBytesPerSecond, kQuoted, kDemand},
    {"workers_per_trainer_count", "rm1", 24.16, headrace::Unit::kCount, kChecked, kWorkers},
    {"workers_per_trainer_count", "rm2", 9.44, headrace::Unit::kCount, kChecked, kWorkers},
    {"workers_per_trainer_count", "rm3", 55.22, headrace::Unit::kCount, kChecked, kWorkers},
    {"stall_ratio", "rm1", 0.56, headrace::Unit::kRatio, kRead, kStall},
    {"stall_cpu_ratio", "rm1", 0.92, headrace::Unit::kRatio, kQuoted, kHost},
    {"stall_memory_bandwidth_ratio", "rm1", 0.54, headrace::Unit::kRatio, kQuoted, kHost},
    {"generation_ratio", "rm1", 0.75, headrace::Unit::kRatio, kQuoted, kCycles},
    {"generation_ratio", "rm2", 0.75, headrace::Unit::kRatio, kQuoted, kCycles},
    {"generation_ratio", "rm3", 0.75, headrace::Unit::kRatio, kQuoted, kCycles},
    // 16.5 samples of a session, 80 % of the values repeated: 16.5 / (1 + 15.5 * 0.2); without
    // clustering 1.15 of them in a batch: 1.15 / (1 + 0.15 * 0.2). Over the models.
    {"duplication_now_ratio", "rm1", 1.12, headrace::Unit::kCount, kDerived, kSessions},
    {"duplication_now_ratio", "rm2", 1.12, headrace::Unit::kCount, kDerived, kSessions},
    {"duplication_now_ratio", "rm3", 1.12, headrace::Unit::kCount, kDerived, kSessions},
    {"duplication_clustered_ratio", "rm1", 4.02, headrace::Unit::kCount, kDerived, kSessions},
    {"duplication_clustered_ratio", "rm2", 4.02, headrace::Unit::kCount, kDerived, kSessions},
    {"duplication_clustered_ratio", "rm3", 4.02, headrace::Unit::kCount, kDerived, kSessions},
};

constexpr PublishedLimit kLimits[] = {
    {"rm1", "cores", "CPU and memory bandwidth (transforms)", kQuoted, "ISCA'22, figure 9"},
    {"rm2", "nic_ingress", "NIC ingress (over-read)", kRead,
     "Meta's engineering blog, 2022: NIC-bound at the reader's ingress"},
    {"rm3", "memory_capacity", "memory capacity (fewer threads, so as not to run out)", kRead,
     "Meta's engineering blog, 2022: fewer threads"},
};

}  // namespace

const char* SurenessName(Sureness sureness) {
  static constexpr std::array<const char*, 4> kNames = {"read", "quoted", "checked", "derived"};
  return kNames[static_cast<size_t>(sureness)];
}

std::span<const PublishedValue> AllPublished() { return kValues; }

const PublishedValue* FindPublished(std::string_view key, std::string_view model) {
  for (const PublishedValue& value : kValues)
    if (key == value.key && model == value.model) return &value;
  return nullptr;
}

const PublishedLimit* FindPublishedLimit(std::string_view model) {
  for (const PublishedLimit& limit : kLimits)
    if (model == limit.model) return &limit;
  return nullptr;
}

}  // namespace headrace::analysis
