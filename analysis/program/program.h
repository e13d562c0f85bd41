// Program: a mixed integer linear program in rows and columns with names, solved by CBC.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headrace::analysis {

// How well a solution is known to be the best.
struct Proof {
  bool optimal = false;
  double gap = 0;  // (bound - value) / |value|; 0 when optimal
  double seconds = 0, max_seconds = 0;
};

class Program {
 public:
  // Adds a column and returns its index. Bounds may be infinite (HUGE_VAL).
  size_t Column(std::string name, double lower, double upper, bool integer);
  // lower <= sum coefficient * column <= upper. Coefficients of a column that appears twice add up,
  // also in objectives.
  void Row(std::string name, std::vector<std::pair<size_t, double>> terms, double lower,
           double upper);
  void Objective(std::vector<std::pair<size_t, double>> terms, bool maximise);

  // Turns off the solver's integer preprocessing, because that of CBC 2.10 loses the optimum of
  // some small covering programs (FleetProgram.APlanThatPreprocessingLoses). Slower for large
  // programs.
  void WithoutPreprocessing() { preprocess_ = false; }
  // Distinguishes objective values that differ by 1e-5 / `times`. CBC itself ignores improvements
  // below 1e-5, whatever the unit.
  void Finely(double times) { times_ = times; }
  // Accepts a solution if no other is better by more than `gap`, in units of the objective.
  void AllowGap(double gap) { allowed_gap_ = gap; }

  // The optimum's column values, proven within the solver's tolerance; empty when infeasible.
  // Throws Error kFailure when the solver stops for another reason (unbounded), or at the time
  // limit without any solution; at the limit with one, that is returned and `proof` tells.
  std::optional<std::vector<double>> Solve(double max_seconds = 10, Proof* proof = nullptr) const;

  // The program in words, one row a line.
  std::string Text() const;
  // The program in the LP format that CBC, GLPK, HiGHS and CPLEX read. Names are written so that
  // all of them take them; where that changes one, a comment says what it stands for.
  std::string Lp() const;

 private:
  struct ColumnEntry {
    std::string name;
    double lower, upper, cost;
    bool integer;
  };
  struct RowEntry {
    std::string name;
    std::vector<std::pair<size_t, double>> terms;
    double lower, upper;
  };
  void Load(void* model) const;  // into a Cbc_Model

  std::vector<ColumnEntry> columns_;
  std::vector<RowEntry> rows_;
  bool maximise_ = true;
  bool preprocess_ = true;
  double allowed_gap_ = 0, times_ = 1;
};

}  // namespace headrace::analysis
