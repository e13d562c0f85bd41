// Trigger: what makes the flight recorder keep detail, as a user writes it: "stall > 200ms",
// "queue:ready < 10% or step > 1s".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectors/account_tree.h"

namespace headrace::collectors {

class Trigger {
 public:
  // Throws Error kUsage saying what is wrong and what exists.
  static Trigger Parse(const std::string& text);

  // What pulled the trigger in an interval of that length, in words: "stall 312 ms > 200 ms"; empty
  // if nothing did. Figures that are not known in the interval do not pull it.
  std::optional<std::string> Pulled(const Moment& moment, int64_t duration_ns) const;
  const std::string& text() const { return text_; }
  // The names a trigger may use, one line each, for help texts.
  static std::string Help();

 private:
  enum class Figure { kStall, kStep, kStallRatio, kSteps, kQueue };
  enum class Kind { kDuration, kRatio, kNumber };
  struct Term {
    Figure figure;
    Kind kind;
    std::string name, queue;
    bool greater = true, or_equal = false;
    double limit = 0;
  };
  std::vector<Term> terms_;  // any of them pulls the trigger
  std::string text_;
};

}  // namespace headrace::collectors
