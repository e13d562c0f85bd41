#include "analysis/study/published.h"

#include <algorithm>
#include <array>

namespace headrace::analysis {
namespace {

using enum Sureness;

constexpr const char* kSizes = "ISCA'22, dataset sizes";
constexpr const char* kFeatures = "ISCA'22, dataset features";
constexpr const char* kUsed = "ISCA'22, model features";
constexpr const char* kReads = "ISCA'22, IO sizes";
constexpr const char* kWorkers = "ISCA'22, worker throughput";
constexpr const char* kDemand = "ISCA'22, trainer demand";
constexpr const char* kStall = "DSI, 2021 version, abstract";
constexpr const char* kHost = "ISCA'22, preprocessing on the trainer";
constexpr const char* kCycles = "ISCA'22, section 6.4";
constexpr const char* kSessions = "RecD, section 3";
constexpr double kPB = 1e15, kGB = 1e9, kKB = 1e3;

// By key, then by model; FindPublished and a test rely on no order but on unique pairs.
constexpr PublishedValue kValues[] = {
    {"all_partitions_bytes", "rm1", 13.45 * kPB, headrace::Unit::kBytes, kRecalled, kSizes},
    {"all_partitions_bytes", "rm2", 29.18 * kPB, headrace::Unit::kBytes, kRecalled, kSizes},
    {"all_partitions_bytes", "rm3", 2.93 * kPB, headrace::Unit::kBytes, kRecalled, kSizes},
    {"partition_bytes", "rm1", 0.15 * kPB, headrace::Unit::kBytes, kRecalled, kSizes},
    {"partition_bytes", "rm2", 0.32 * kPB, headrace::Unit::kBytes, kRecalled, kSizes},
    {"partition_bytes", "rm3", 0.07 * kPB, headrace::Unit::kBytes, kRecalled, kSizes},
    {"used_partitions_bytes", "rm1", 11.95 * kPB, headrace::Unit::kBytes, kSecondHand, kSizes},
    {"used_partitions_bytes", "rm2", 25.94 * kPB, headrace::Unit::kBytes, kSecondHand, kSizes},
    {"used_partitions_bytes", "rm3", 1.95 * kPB, headrace::Unit::kBytes, kSecondHand, kSizes},
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
    {"derived_features", "rm1", 304, headrace::Unit::kCount, kRecalled, kUsed},
    {"derived_features", "rm2", 317, headrace::Unit::kCount, kRecalled, kUsed},
    {"derived_features", "rm3", 1, headrace::Unit::kCount, kRecalled, kUsed},
    {"coverage_ratio", "rm1", 0.45, headrace::Unit::kRatio, kRecalled, kFeatures},
    {"coverage_ratio", "rm2", 0.41, headrace::Unit::kRatio, kRecalled, kFeatures},
    {"coverage_ratio", "rm3", 0.29, headrace::Unit::kRatio, kRecalled, kFeatures},
    {"list_length_mean_count", "rm1", 25.97, headrace::Unit::kCount, kRecalled, kFeatures},
    {"list_length_mean_count", "rm2", 25.57, headrace::Unit::kCount, kRecalled, kFeatures},
    {"list_length_mean_count", "rm3", 19.64, headrace::Unit::kCount, kRecalled, kFeatures},
    {"features_used_ratio", "rm1", 0.11, headrace::Unit::kRatio, kChecked, kUsed},
    {"features_used_ratio", "rm2", 0.10, headrace::Unit::kRatio, kChecked, kUsed},
    {"features_used_ratio", "rm3", 0.09, headrace::Unit::kRatio, kChecked, kUsed},
    {"bytes_used_ratio", "rm1", 0.37, headrace::Unit::kRatio, kChecked, kUsed},
    {"bytes_used_ratio", "rm2", 0.34, headrace::Unit::kRatio, kChecked, kUsed},
    {"bytes_used_ratio", "rm3", 0.21, headrace::Unit::kRatio, kChecked, kUsed},
    {"hot_bytes_ratio", "rm1", 0.39, headrace::Unit::kRatio, kRecalled, "ISCA'22, popularity"},
    {"hot_bytes_ratio", "rm2", 0.37, headrace::Unit::kRatio, kRecalled, "ISCA'22, popularity"},
    {"hot_bytes_ratio", "rm3", 0.18, headrace::Unit::kRatio, kRecalled, "ISCA'22, popularity"},
    {"io_mean_bytes", "rm1", 23.2 * kKB, headrace::Unit::kBytes, kRecalled, kReads},
    {"io_deviation_bytes", "rm1", 117 * kKB, headrace::Unit::kBytes, kRecalled, kReads},
    {"io_p5_bytes", "rm1", 18, headrace::Unit::kBytes, kRecalled, kReads},
    {"io_p25_bytes", "rm1", 451, headrace::Unit::kBytes, kRecalled, kReads},
    {"io_p50_bytes", "rm1", 1.24 * kKB, headrace::Unit::kBytes, kChecked, kReads},
    {"io_p75_bytes", "rm1", 3.92 * kKB, headrace::Unit::kBytes, kRecalled, kReads},
    {"io_p95_bytes", "rm1", 97.7 * kKB, headrace::Unit::kBytes, kRecalled, kReads},
    {"storage_bytes_per_s", "rm1", 0.80 * kGB, headrace::Unit::kBytesPerSecond, kRecalled,
     kWorkers},
    {"storage_bytes_per_s", "rm2", 1.20 * kGB, headrace::Unit::kBytesPerSecond, kRecalled,
     kWorkers},
    {"storage_bytes_per_s", "rm3", 0.80 * kGB, headrace::Unit::kBytesPerSecond, kRecalled,
     kWorkers},
    {"extracted_bytes_per_s", "rm1", 1.37 * kGB, headrace::Unit::kBytesPerSecond, kRecalled,
     kWorkers},
    {"extracted_bytes_per_s", "rm2", 0.96 * kGB, headrace::Unit::kBytesPerSecond, kRecalled,
     kWorkers},
    {"extracted_bytes_per_s", "rm3", 1.01 * kGB, headrace::Unit::kBytesPerSecond, kRecalled,
     kWorkers},
    {"tensor_bytes_per_s", "rm1", 0.68 * kGB, headrace::Unit::kBytesPerSecond, kChecked, kWorkers},
    {"tensor_bytes_per_s", "rm2", 0.50 * kGB, headrace::Unit::kBytesPerSecond, kChecked, kWorkers},
    {"tensor_bytes_per_s", "rm3", 0.22 * kGB, headrace::Unit::kBytesPerSecond, kChecked, kWorkers},
    {"storage_bytes_per_row", "rm1", 68.8 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"storage_bytes_per_row", "rm2", 150 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"storage_bytes_per_row", "rm3", 21.7 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"extracted_bytes_per_row", "rm1", 117.9 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"extracted_bytes_per_row", "rm2", 120.1 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"extracted_bytes_per_row", "rm3", 27.4 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"tensor_bytes_per_row", "rm1", 58.5 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"tensor_bytes_per_row", "rm2", 62.5 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"tensor_bytes_per_row", "rm3", 6.0 * kKB, headrace::Unit::kBytes, kDerived, kWorkers},
    {"extracted_per_storage_ratio", "rm1", 1.71, headrace::Unit::kCount, kDerived, kWorkers},
    {"extracted_per_storage_ratio", "rm2", 0.80, headrace::Unit::kCount, kDerived, kWorkers},
    {"extracted_per_storage_ratio", "rm3", 1.26, headrace::Unit::kCount, kDerived, kWorkers},
    {"tensor_per_storage_ratio", "rm1", 0.85, headrace::Unit::kCount, kDerived, kWorkers},
    {"tensor_per_storage_ratio", "rm2", 0.42, headrace::Unit::kCount, kDerived, kWorkers},
    {"tensor_per_storage_ratio", "rm3", 0.27, headrace::Unit::kCount, kDerived, kWorkers},
    {"worker_rows_per_s", "rm1", 11623, headrace::Unit::kRowsPerSecond, kRecalled, kWorkers},
    {"worker_rows_per_s", "rm2", 7995, headrace::Unit::kRowsPerSecond, kRecalled, kWorkers},
    {"worker_rows_per_s", "rm3", 36921, headrace::Unit::kRowsPerSecond, kRecalled, kWorkers},
    {"trainer_bytes_per_s", "rm1", 16.50 * kGB, headrace::Unit::kBytesPerSecond, kSecondHand,
     kDemand},
    {"trainer_bytes_per_s", "rm2", 4.69 * kGB, headrace::Unit::kBytesPerSecond, kSecondHand,
     kDemand},
    {"trainer_bytes_per_s", "rm3", 12.00 * kGB, headrace::Unit::kBytesPerSecond, kSecondHand,
     kDemand},
    {"workers_per_trainer_count", "rm1", 24.16, headrace::Unit::kCount, kChecked, kWorkers},
    {"workers_per_trainer_count", "rm2", 9.44, headrace::Unit::kCount, kChecked, kWorkers},
    {"workers_per_trainer_count", "rm3", 55.22, headrace::Unit::kCount, kChecked, kWorkers},
    {"stall_ratio", "rm1", 0.56, headrace::Unit::kRatio, kSecondHand, kStall},
    {"stall_cpu_ratio", "rm1", 0.92, headrace::Unit::kRatio, kSecondHand, kHost},
    {"stall_memory_bandwidth_ratio", "rm1", 0.54, headrace::Unit::kRatio, kSecondHand, kHost},
    {"nic_ingress_ratio", "rm1", 0.80 * kGB / kPublishedNodeNicBytesPerS, headrace::Unit::kRatio,
     kDerived, kWorkers},
    {"nic_ingress_ratio", "rm2", 1.20 * kGB / kPublishedNodeNicBytesPerS, headrace::Unit::kRatio,
     kDerived, kWorkers},
    {"nic_ingress_ratio", "rm3", 0.80 * kGB / kPublishedNodeNicBytesPerS, headrace::Unit::kRatio,
     kDerived, kWorkers},
    {"generation_ratio", "rm1", 0.75, headrace::Unit::kRatio, kSecondHand, kCycles},
    {"generation_ratio", "rm2", 0.75, headrace::Unit::kRatio, kSecondHand, kCycles},
    {"generation_ratio", "rm3", 0.75, headrace::Unit::kRatio, kSecondHand, kCycles},
    {"sparse_normalisation_ratio", "rm1", 0.20, headrace::Unit::kRatio, kRecalled, kCycles},
    {"sparse_normalisation_ratio", "rm2", 0.20, headrace::Unit::kRatio, kRecalled, kCycles},
    {"sparse_normalisation_ratio", "rm3", 0.20, headrace::Unit::kRatio, kRecalled, kCycles},
    {"dense_normalisation_ratio", "rm1", 0.05, headrace::Unit::kRatio, kRecalled, kCycles},
    {"dense_normalisation_ratio", "rm2", 0.05, headrace::Unit::kRatio, kRecalled, kCycles},
    {"dense_normalisation_ratio", "rm3", 0.05, headrace::Unit::kRatio, kRecalled, kCycles},
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
    {"rm1", "cores", "CPU and memory bandwidth (transforms)", kRecalled,
     "ISCA'22, worker bottlenecks"},
    {"rm2", "nic_ingress", "NIC ingress (over-read)", kChecked,
     "ISCA'22 and Meta's blog: NIC-bound at the reader's ingress"},
    {"rm3", "memory_capacity", "memory capacity (fewer threads, so as not to run out)", kChecked,
     "ISCA'22 and Meta's blog: fewer threads"},
};

}  // namespace

const char* SurenessName(Sureness sureness) {
  static constexpr std::array<const char*, 5> kNames = {"read", "second-hand", "recalled, checked",
                                                        "derived", "recalled"};
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
