// The course of a job of the preprocessing service as its dispatcher saw it: what FleetStore keeps,
// and what whoever reads the file gets.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace headrace::collectors {

// Columns of view job_interval.
struct JobInterval {
  int64_t start_ns = 0, duration_ns = 0, running_ns = 0;
  int64_t leases = 0, again = 0, again_rows = 0, lost = 0;
  int64_t serving_ns = 0, no_split_ns = 0, late_ns = 0;
  std::optional<int64_t> wanted, left_rows;
};
// Columns of view job_event.
struct JobEvent {
  int64_t at_ns = 0;
  std::string kind, instance, text;
  std::optional<int64_t> splits;
  // Of the member, as the store knows it by its instance; empty: none that measured.
  std::string role = {};
  int64_t number = 0;
};

}  // namespace headrace::collectors
