#include "probes/perf/expression.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "probes/host/text.h"

namespace headrace::probes::perf {
namespace {

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

int Precedence(char op) { return op == '*' || op == '/' ? 2 : op == '+' || op == '-' ? 1 : 0; }

}  // namespace

Expression::Expression(std::string_view text) : text_(text) {
  std::vector<char> waiting;  // operators and brackets
  bool operand_next = true;
  const auto pop = [&] {
    steps_.push_back({waiting.back()});
    waiting.pop_back();
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == ' ') {
      i++;
    } else if (IsWordCharacter(c)) {
      HR_CHECK(operand_next, "formula of the event catalogue");
      size_t end = i;
      while (end < text.size() && IsWordCharacter(text[end])) end++;
      const std::string_view word = text.substr(i, end - i);
      if (const auto number = Count(word)) {
        steps_.push_back({'#', static_cast<double>(*number)});
      } else {
        const auto at = std::find(words_.begin(), words_.end(), word);
        steps_.push_back({'w', 0, static_cast<size_t>(at - words_.begin())});
        if (at == words_.end()) words_.push_back(word);
      }
      operand_next = false;
      i = end;
    } else if (c == '(') {
      HR_CHECK(operand_next, "formula of the event catalogue");
      waiting.push_back(c);
      i++;
    } else if (c == ')') {
      HR_CHECK(!operand_next, "formula of the event catalogue");
      while (!waiting.empty() && waiting.back() != '(') pop();
      HR_CHECK(!waiting.empty(), "formula of the event catalogue");
      waiting.pop_back();
      i++;
    } else {
      HR_CHECK(Precedence(c) > 0 && !operand_next, "formula of the event catalogue");
      while (!waiting.empty() && Precedence(waiting.back()) >= Precedence(c)) pop();
      waiting.push_back(c);
      operand_next = true;
      i++;
    }
  }
  HR_CHECK(!operand_next, "formula of the event catalogue");
  while (!waiting.empty()) {
    HR_CHECK(waiting.back() != '(', "formula of the event catalogue");
    pop();
  }
}

std::optional<double> Expression::Evaluate(const Lookup& value_of) const {
  std::vector<double> stack;
  for (const Step& step : steps_) {
    if (step.kind == '#') {
      stack.push_back(step.number);
    } else if (step.kind == 'w') {
      const auto value = value_of(words_[step.word]);
      if (!value) return std::nullopt;
      stack.push_back(*value);
    } else {
      const double b = stack.back();
      stack.pop_back();
      double& a = stack.back();
      switch (step.kind) {
        case '+':
          a += b;
          break;
        case '-':
          a -= b;
          break;
        case '*':
          a *= b;
          break;
        default:
          if (b == 0) return std::nullopt;
          a /= b;
      }
    }
  }
  if (!std::isfinite(stack.back())) return std::nullopt;
  return stack.back();
}

}  // namespace headrace::probes::perf
