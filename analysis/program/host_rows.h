// HostRows: the columns and rows of the allocation program (host_program.h) that all its objectives
// share, and the sums that these consist of.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/program/host_choices.h"
#include "analysis/program/program.h"

namespace headrace::analysis {

using Terms = std::vector<std::pair<size_t, double>>;

struct Sum {
  double constant = 0;
  Terms terms;
};

// The problem must outlive it. Times are in units of `unit_s`.
class HostRows {
 public:
  // `shares`, if given, fixes the share that each site keeps; it must outlive this object. With
  // `memory` false there is no memory row, because everything fits.
  HostRows(const HostProblem& problem, Lists lists, double unit_s, bool memory,
           const std::vector<double>* shares = nullptr);

  Program& program() { return program_; }
  const std::vector<size_t>& shares() const { return kept_; }
  const std::vector<size_t>& uses() const { return uses_; }

  // For P1: adds T and T_fill as columns.
  void AddTimes();
  Terms TimeTerms() const;
  // For P2 and later: T and T_fill are given, `cores` is a column.
  void AddRates(double batch_s, double fill_s, size_t cores);

  // Time of the stage's threads that one batch takes, in units of `unit_s`.
  Sum Load(size_t s, CachePhase phase) const;
  // CPU time of one batch, in units of `unit_s`.
  Sum CoresLoad(CachePhase phase) const;
  // Adds a row that says how much must be given up so that the memory suffices, over the columns
  // that change. Without it the solver's relaxation would shorten a hundred queues by a hundredth
  // each. `changed` are the columns that are 1 where the queue of a stage is shorter.
  void AddRelief(const std::vector<std::optional<size_t>>& changed);
  // How many threads' work a stage does.
  Terms Workers(size_t s) const;
  template <typename Value>
  Terms OverChoices(size_t s, Value value) const {
    Terms terms;
    for (size_t m = 0; m < lists_[s].size(); ++m) {
      double before = 0;
      for (size_t o = 0; o < lists_[s][m].size(); ++o) {
        const double now = value(lists_[s][m][o]);
        if (now != before) terms.push_back({chosen_[s][m][o], now - before});
        before = now;
      }
    }
    return terms;
  }
  const std::optional<size_t>& queue(size_t s) const { return queues_[s]; }
  const std::vector<std::vector<size_t>>& modes() const { return modes_; }

  // row: terms - sum >= 0
  void AtLeast(const std::string& name, Terms terms, const Sum& sum);

  HostSolution Read(const std::vector<double>& values) const;

 private:
  std::string Name(const char* what, size_t s, CachePhase phase) const;
  void AddKept(const std::vector<double>& of, Sum* sum) const;

  void AddSets();

  // The column of a choice is 1 if the stage uses this choice or a wider one. The column of a
  // list's first choice is its mode's column, or always 1.
  void AddChoices();

  void AddSites();

  void AddMemory();

  // T >= load / workers of the choice that is taken.
  void AddStageTime(size_t s, CachePhase phase);

  // Rows for the cores, for what all stages share, and for the tiers' devices. `time` is T in units
  // of `unit_s`.
  void AddShared(CachePhase phase, const Sum& time, std::optional<size_t> cores);

  const HostProblem& problem_;
  Lists lists_;
  double unit_s_;
  bool memory_;
  const std::vector<double>* shares_;
  std::vector<std::vector<size_t>> behind_;
  Program program_;
  std::vector<std::vector<size_t>> modes_;                // by set
  std::vector<std::vector<std::vector<size_t>>> chosen_;  // by stage, mode, choice
  std::vector<std::optional<size_t>> queues_;
  std::vector<size_t> uses_, kept_;
  std::optional<size_t> time_[2];
};

}  // namespace headrace::analysis
