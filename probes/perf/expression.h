// Expression: the formulas of the event catalogue.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace headrace::probes::perf {

// Arithmetic over words: numbers, words, + - * / and brackets.
class Expression {
 public:
  // Aborts if `text` is not an expression, because expressions are part of the program.
  explicit Expression(std::string_view text);

  using Lookup = std::function<std::optional<double>(std::string_view word)>;
  // Nothing if a word has no value, or for a division by 0.
  std::optional<double> Evaluate(const Lookup& value_of) const;
  std::string_view text() const { return text_; }
  const std::vector<std::string_view>& words() const { return words_; }  // each once

 private:
  struct Step {  // reverse Polish: '#' a number, 'w' a word, else an operator
    char kind;
    double number = 0;
    size_t word = 0;
  };
  std::string_view text_;
  std::vector<Step> steps_;
  std::vector<std::string_view> words_;
};

}  // namespace headrace::probes::perf
