// Published: the figures that characterization studies printed for three production ranking models;
// a sheet shows its own figures beside them. Each value says where it was published and how certain
// it is. Figures of the studies that no text at hand confirms are left out.
//
// Studies: Zhao et al., Understanding Data Storage and Ingestion for Large-Scale Deep
// Recommendation Model Training, ISCA 2022; Meta's engineering blog on the same, 2022; Zhao et al.,
// RecD, MLSys 2023.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "base/quantity.h"

namespace headrace::analysis {

inline constexpr const char* kPublishedModels[] = {"rm1", "rm2", "rm3"};

// Best first.
enum class Sureness : unsigned char {
  kRead,     // in the study or its code
  kQuoted,   // in a text that quotes the study
  kChecked,  // the table was not at hand; agrees with other figures that were published
  kDerived   // computed from other published figures
};
const char* SurenessName(Sureness sureness);  // "read", "quoted", "checked", "derived"

// One figure of one model. SI base units, as in Quantity; times are in nanoseconds.
struct PublishedValue {
  const char* key;    // key of a SheetFigure (sheet.h): "bytes_used_ratio"
  const char* model;  // one of kPublishedModels
  double value;
  headrace::Unit unit;
  Sureness sureness;
  const char* source;  // "ISCA'22, table 5"
};

// All values, ordered by key, then by model.
std::span<const PublishedValue> AllPublished();
// The value, or null where it was not published for that model, or not found.
const PublishedValue* FindPublished(std::string_view key, std::string_view model);

// What was published as the limit of a worker of that model; FindPublishedLimit returns null for
// other models.
struct PublishedLimit {
  const char* model;
  const char* resource;  // key of a WorkerLimit: "cores", "nic_ingress", "memory_capacity"
  const char* words;
  Sureness sureness;
  const char* source;
};
const PublishedLimit* FindPublishedLimit(std::string_view model);

// The worker node whose figures were published: 18 cores, 64 GB, a NIC of 12.5 Gbit/s.
inline constexpr double kPublishedNodeCores = 18;
inline constexpr double kPublishedNodeNicBytesPerS = 12.5e9 / 8;
inline constexpr double kPublishedNodeMemoryBytes = 64e9;
// The trainer's host of the experiment that preprocessed on it: two sockets of 28 cores.
inline constexpr double kPublishedTrainerHostCores = 56;

}  // namespace headrace::analysis
