#include "collectors/trigger.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/registry.h"
#include "base/units.h"

namespace headrace::collectors {
namespace {

constexpr const char* kFix =
    "there are: stall (longest wait of the trainer), step (wait + compute), stall_ratio, "
    "steps_per_s, queue:NAME (fill); e.g. 'stall > 200ms', 'queue:ready < 10% or step > 1s'";

Error Wrong(const std::string& what) { return Error(ExitCode::kUsage, what, "--trigger", kFix); }

std::string Trimmed(const std::string& text) {
  size_t begin = 0, end = text.size();
  while (begin < end && std::isspace(static_cast<unsigned char>(text[begin]))) begin++;
  while (end > begin && std::isspace(static_cast<unsigned char>(text[end - 1]))) end--;
  return text.substr(begin, end - begin);
}

double ParseNumber(const std::string& text, const std::string& name, bool ratio) {
  std::string digits = text;
  const bool percent = ratio && !digits.empty() && digits.back() == '%';
  if (percent) digits = Trimmed(digits.substr(0, digits.size() - 1));
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end != 0 || !std::isfinite(value) || value < 0) {
    throw Wrong(fmt::format("'{}' is not a {} for {}", Printable(text, 60),
                            ratio ? "share such as 10%" : "number", name));
  }
  const double scaled = percent ? value / 100 : value;
  if (ratio && scaled > 1) {
    throw Wrong(fmt::format("{} is a share: '{}' is more than 100%", name, Printable(text, 60)));
  }
  return scaled;
}

}  // namespace

std::string Trigger::Help() { return kFix; }

Trigger Trigger::Parse(const std::string& text) {
  Trigger trigger;
  trigger.text_ = Trimmed(text);
  if (trigger.text_.empty()) throw Wrong("is empty");
  std::string rest = trigger.text_;
  for (bool more = true; more;) {
    const size_t at = rest.find(" or ");
    more = at != std::string::npos;
    const std::string part = Trimmed(rest.substr(0, at));
    if (more) rest = rest.substr(at + 4);
    const size_t sign = part.find_first_of("<>");
    if (sign == std::string::npos) {
      throw Wrong(
          fmt::format("'{}' compares nothing: a name, > or <, and a value", Printable(part, 80)));
    }
    Term term;
    term.greater = part[sign] == '>';
    term.or_equal = sign + 1 < part.size() && part[sign + 1] == '=';
    term.name = Trimmed(part.substr(0, sign));
    const std::string value = Trimmed(part.substr(sign + (term.or_equal ? 2 : 1)));
    if (value.empty()) {
      throw Wrong(fmt::format("'{}' lacks the value to compare with", Printable(part, 80)));
    }
    if (term.name == "stall" || term.name == "step") {
      term.figure = term.name == "stall" ? Figure::kStall : Figure::kStep;
      term.kind = Kind::kDuration;
      term.limit = static_cast<double>(ParseDuration(value, "--trigger"));
    } else if (term.name == "stall_ratio") {
      term.figure = Figure::kStallRatio;
      term.kind = Kind::kRatio;
      term.limit = ParseNumber(value, term.name, true);
    } else if (term.name == "steps_per_s") {
      term.figure = Figure::kSteps;
      term.kind = Kind::kNumber;
      term.limit = ParseNumber(value, term.name, false);
    } else if (term.name.rfind("queue:", 0) == 0 && term.name.size() > 6) {
      term.figure = Figure::kQueue;
      term.kind = Kind::kRatio;
      term.queue = term.name.substr(6);
      term.limit = ParseNumber(value, term.name, true);
    } else {
      const std::string near =
          NearestName(term.name, {"stall", "step", "stall_ratio", "steps_per_s", "queue:"});
      throw Wrong(fmt::format("nothing is called '{}'{}", Printable(term.name, 60),
                              near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
    }
    trigger.terms_.push_back(std::move(term));
  }
  return trigger;
}

std::optional<std::string> Trigger::Pulled(const Moment& moment, int64_t duration_ns) const {
  for (const Term& term : terms_) {
    std::optional<double> value;
    switch (term.figure) {
      case Figure::kStall:
        if (moment.steps > 0) value = static_cast<double>(moment.longest_wait_ns);
        break;
      case Figure::kStep:
        if (moment.steps > 0) value = static_cast<double>(moment.longest_step_ns);
        break;
      case Figure::kStallRatio:
        if (moment.wait_ns + moment.compute_ns > 0) {
          value = static_cast<double>(moment.wait_ns) /
                  static_cast<double>(moment.wait_ns + moment.compute_ns);
        }
        break;
      case Figure::kSteps:
        if (moment.has_steps && duration_ns > 0) {
          value = static_cast<double>(moment.steps) * 1e9 / static_cast<double>(duration_ns);
        }
        break;
      case Figure::kQueue:
        if (const auto it = moment.queue_fill.find(term.queue); it != moment.queue_fill.end()) {
          value = it->second;
        }
        break;
    }
    if (!value) continue;
    const bool pulled = (term.greater ? *value > term.limit : *value < term.limit) ||
                        (term.or_equal && *value == term.limit);
    if (!pulled) continue;
    const auto text = [&](double v) {
      return term.kind == Kind::kDuration ? FormatDuration(v)
             : term.kind == Kind::kRatio  ? fmt::format("{:.3g} %", v * 100)
                                          : fmt::format("{:.3g}", v);
    };
    return fmt::format("{} {} {}{} {}", term.name, text(*value), term.greater ? ">" : "<",
                       term.or_equal ? "=" : "", text(term.limit));
  }
  return std::nullopt;
}

}  // namespace headrace::collectors
