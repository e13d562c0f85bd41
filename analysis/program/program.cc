#include "analysis/program/program.h"

#include <Cbc_C_Interface.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__)
// CoinUtils 2.11 forgets an array when it gives up presolving a problem.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:implied_free_action::presolve\n";
}
#endif

namespace headrace::analysis {
namespace {

// CBC greets on standard output whatever its log level; standard output is the user's data.
class QuietStdout {
 public:
  QuietStdout() {
    std::fflush(stdout);
    saved_ = dup(STDOUT_FILENO);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (saved_ >= 0 && null >= 0) dup2(null, STDOUT_FILENO);
    if (null >= 0) close(null);
  }
  ~QuietStdout() {
    std::fflush(stdout);
    if (saved_ >= 0) {
      dup2(saved_, STDOUT_FILENO);
      close(saved_);
    }
  }

 private:
  int saved_;
};

// Names for the LP format: letters, digits and '_', not first a digit or an 'e', which starts an
// exponent; none twice.
class SafeNames {
 public:
  // `first`: what a name begins with that may not begin with its own letter.
  std::string Of(const std::string& name, char first) {
    std::string safe;
    for (const char c : name) {
      safe += std::isalnum(static_cast<unsigned char>(c)) && (c & 0x80) == 0 ? c : '_';
    }
    if (safe.empty() || !std::isalpha(static_cast<unsigned char>(safe[0])) || safe[0] == 'e' ||
        safe[0] == 'E') {
      safe = std::string(1, first) + safe;
    }
    std::string unique = safe.substr(0, 100);
    for (int i = 2; !taken_.insert(unique).second; ++i) {
      unique = fmt::format("{}_{}", safe.substr(0, 90), i);
    }
    if (unique != name) notes_ += fmt::format("\\ {} is '{}'\n", unique, Printable(name));
    return unique;
  }
  // Names may come again: rows and columns have their own.
  void Forget() { taken_.clear(); }
  // Comments that say which names were changed.
  const std::string& notes() const { return notes_; }

 private:
  std::set<std::string> taken_;
  std::string notes_;
};

}  // namespace

size_t Program::Column(std::string name, double lower, double upper, bool integer) {
  columns_.push_back({std::move(name), lower, upper, 0, integer});
  return columns_.size() - 1;
}

void Program::Row(std::string name, std::vector<std::pair<size_t, double>> terms, double lower,
                  double upper) {
  // A column that is named twice counts twice; solvers differ about such rows.
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::pair<size_t, double>> sums;
  for (const auto& [column, value] : terms) {
    if (sums.empty() || sums.back().first != column) sums.push_back({column, 0});
    sums.back().second += value;
  }
  rows_.push_back({std::move(name), std::move(sums), lower, upper});
}

void Program::Objective(std::vector<std::pair<size_t, double>> terms, bool maximise) {
  for (ColumnEntry& column : columns_) column.cost = 0;
  for (const auto& [index, cost] : terms) columns_[index].cost += cost;
  maximise_ = maximise;
}

void Program::Load(void* model) const {
  std::vector<CoinBigIndex> starts(columns_.size() + 1, 0);
  for (const RowEntry& row : rows_) {
    for (const auto& [column, value] : row.terms) ++starts[column + 1];
  }
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  std::vector<int> indices(static_cast<size_t>(starts.back()));
  std::vector<double> values(indices.size());
  std::vector<CoinBigIndex> next(starts.begin(), starts.end() - 1);
  std::vector<double> row_lower, row_upper, lower, upper, cost;
  for (size_t r = 0; r < rows_.size(); ++r) {
    row_lower.push_back(rows_[r].lower);
    row_upper.push_back(rows_[r].upper);
    for (const auto& [column, value] : rows_[r].terms) {
      const size_t at = static_cast<size_t>(next[column]++);
      indices[at] = static_cast<int>(r);
      values[at] = value;
    }
  }
  for (const ColumnEntry& column : columns_) {
    lower.push_back(column.lower);
    upper.push_back(column.upper);
    cost.push_back((maximise_ ? -times_ : times_) * column.cost);
  }
  Cbc_loadProblem(model, static_cast<int>(columns_.size()), static_cast<int>(rows_.size()),
                  starts.data(), indices.data(), values.data(), lower.data(), upper.data(),
                  cost.data(), row_lower.data(), row_upper.data());
}

std::optional<std::vector<double>> Program::Solve(double max_seconds, Proof* proof) const {
  const auto start = std::chrono::steady_clock::now();
  QuietStdout quiet;
  const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> model(Cbc_newModel(), Cbc_deleteModel);
  Load(model.get());
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].integer) Cbc_setInteger(model.get(), static_cast<int>(i));
  }
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allowableGap", fmt::format("{:g}", times_ * allowed_gap_).c_str());
  if (!preprocess_) Cbc_setParameter(model.get(), "preprocess", "off");
  Cbc_setMaximumSeconds(model.get(), max_seconds);
  Cbc_solve(model.get());
  if (Cbc_isProvenInfeasible(model.get())) return std::nullopt;
  const bool optimal = Cbc_isProvenOptimal(model.get()) != 0;
  const bool late = Cbc_isSecondsLimitReached(model.get()) != 0;
  if (!optimal && !(late && Cbc_numberSavedSolutions(model.get()) > 0)) {
    throw Error(ExitCode::kFailure,
                late ? fmt::format("the solver found no solution within {:g} s", max_seconds)
                     : std::string("the solver stopped without an optimum"),
                "integer program", "report the run: this is not expected of a pipeline");
  }
  if (proof != nullptr) {
    const double value = Cbc_getObjValue(model.get());
    const double bound = Cbc_getBestPossibleObjValue(model.get());
    proof->optimal = optimal;
    proof->gap = optimal ? 0 : std::abs(value - bound) / std::max(std::abs(value), 1e-12);
    proof->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    proof->max_seconds = max_seconds;
  }
  const double* solution = Cbc_getColSolution(model.get());
  std::vector<double> result(solution, solution + columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].integer) result[i] = std::round(result[i]);
  }
  return result;
}

std::string Program::Lp() const {
  SafeNames names;
  std::vector<std::string> columns, rows;
  for (const ColumnEntry& column : columns_) columns.push_back(names.Of(column.name, 'x'));
  names.Forget();
  for (const RowEntry& row : rows_) rows.push_back(names.Of(row.name, 'r'));
  const auto sum = [&](const std::vector<std::pair<size_t, double>>& terms) {
    std::string text;
    for (const auto& [column, value] : terms) {
      // One term a line: some readers bound the length of lines.
      text += fmt::format("\n   {} {:.17g} {}", value < 0 ? '-' : '+', std::abs(value),
                          columns[column]);
    }
    return text.empty() ? fmt::format("\n   + 0 {}", columns.empty() ? "x" : columns[0]) : text;
  };
  std::vector<std::pair<size_t, double>> costs;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].cost != 0) costs.push_back({i, columns_[i].cost});
  }
  std::string text = names.notes() + (maximise_ ? "Maximize\n obj:" : "Minimize\n obj:") +
                     sum(costs) + "\nSubject To\n";
  for (size_t r = 0; r < rows_.size(); ++r) {
    const std::string terms = sum(rows_[r].terms);
    const double lower = rows_[r].lower, upper = rows_[r].upper;
    if (lower == upper) {
      text += fmt::format(" {}:{}\n   = {:.17g}\n", rows[r], terms, lower);
      continue;
    }
    // Two rows where both ends are finite: a range is written differently by each of the readers.
    if (std::isfinite(lower)) {
      text += fmt::format(" {}_low:{}\n   >= {:.17g}\n", rows[r], terms, lower);
    }
    if (std::isfinite(upper)) {
      text += fmt::format(" {}_high:{}\n   <= {:.17g}\n", rows[r], terms, upper);
    }
  }
  text += "Bounds\n";
  std::string integers;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const ColumnEntry& column = columns_[i];
    const auto bound = [](double value) {
      return std::isfinite(value) ? fmt::format("{:.17g}", value)
                                  : std::string(value > 0 ? "+inf" : "-inf");
    };
    text += fmt::format(" {} <= {} <= {}\n", bound(column.lower), columns[i], bound(column.upper));
    if (column.integer) integers += fmt::format(" {}\n", columns[i]);
  }
  if (!integers.empty()) text += "General\n" + integers;
  return text + "End\n";
}

std::string Program::Text() const {
  const auto sum = [&](const std::vector<std::pair<size_t, double>>& terms) {
    std::string text;
    for (const auto& [column, value] : terms) {
      if (value == 0) continue;
      const double size = std::abs(value);
      text += text.empty() ? (value < 0 ? "-" : "") : value < 0 ? " - " : " + ";
      const std::string number = fmt::format("{:g}", size);
      if (number != "1") text += number + " ";
      text += Printable(columns_[column].name);
    }
    return text.empty() ? std::string("0") : text;
  };
  // "2 <= x <= 5", "x >= 2", "x = 2"
  const auto bounded = [](double lower, const std::string& what, double upper) {
    if (lower == upper) return fmt::format("{} = {:g}", what, lower);
    if (!std::isfinite(lower) && !std::isfinite(upper)) return what + " free";
    if (!std::isfinite(lower)) return fmt::format("{} <= {:g}", what, upper);
    if (!std::isfinite(upper)) return fmt::format("{} >= {:g}", what, lower);
    return fmt::format("{:g} <= {} <= {:g}", lower, what, upper);
  };
  std::vector<std::pair<size_t, double>> costs;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].cost != 0) costs.push_back({i, columns_[i].cost});
  }
  std::string text = fmt::format("{} {}\n", maximise_ ? "maximise" : "minimise", sum(costs));
  for (const RowEntry& row : rows_) {
    text += fmt::format("  {}: {}\n", Printable(row.name),
                        bounded(row.lower, sum(row.terms), row.upper));
  }
  for (const ColumnEntry& column : columns_) {
    text += fmt::format("  {}{}\n", bounded(column.lower, Printable(column.name), column.upper),
                        column.integer ? ", whole" : "");
  }
  return text;
}

}  // namespace headrace::analysis
