// FleetProgram: how many nodes of each type, as an integer program.
//
// Columns: N_t, whole nodes of each type, and X, rows per second. Rows: the nodes do X; X reaches
// the target; what the nodes share (storage, clients' NICs, dispatcher) bears X; N_t at most its
// maximum. Objectives in order: price, then power, then fewest nodes.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace headrace::analysis {

// The most nodes of one type in a plan where the file names no maximum.
inline constexpr int kMostNodes = 1'000'000;

struct FleetType {
  std::string name;
  double rows_per_s = 0;  // of one node
  double price_per_hour = 0;
  std::optional<double> watts;  // of one node at that rate
  std::optional<int> max_count;
};

struct FleetLimit {
  std::string name;
  double rows_per_s = 0;  // at most
};

struct FleetProblem {
  std::vector<FleetType> types;
  std::vector<FleetLimit> limits;
  double target = 0;  // rows per second
};

// Nodes of each type; empty when no number of them reaches the target. Power is an objective only
// when every type that may be used has one. `text`, if given, receives the program in words, `lp`
// the program of the first objective in LP format.
std::optional<std::vector<int>> SolveFleet(const FleetProblem& problem, std::string* text = nullptr,
                                           std::string* lp = nullptr);

}  // namespace headrace::analysis
