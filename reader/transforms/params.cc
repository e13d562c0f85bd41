#include "reader/transforms/params.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace headrace::reader {
namespace {

template <typename T>
std::string Scalar(const T& value) {
  if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
  if constexpr (std::is_same_v<T, std::string>) return '"' + Printable(value) + '"';
  if constexpr (!std::is_same_v<T, bool> && !std::is_same_v<T, std::string>)
    return fmt::format("{}", value);
}

template <typename T>
std::string List(const std::vector<T>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : ", ") + Scalar<T>(static_cast<T>(values[i]));
  return text + "]";
}

struct Texter {
  template <typename T>
  std::string operator()(const T& value) const {
    return Scalar(value);
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    return List(values);
  }
};

}  // namespace

std::string ParamText(const ParamValue& value) { return std::visit(Texter(), value); }

const ParamValue* Params::Find(const std::string& name) const {
  auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

const ParamValue& Params::Required(const std::string& name) const {
  const ParamValue* value = Find(name);
  if (value == nullptr)
    throw Error(ExitCode::kUsage, fmt::format("{}: parameter '{}' is missing", op_, name), where_,
                fmt::format("add '{} = ...'", name));
  return *value;
}

void Params::WrongType(const std::string& name, const char* expected) const {
  throw Error(ExitCode::kUsage,
              fmt::format("{}: parameter '{}' must be {}, not {}", op_, name, expected,
                          ParamText(*Find(name))),
              where_);
}

void Params::Require(bool holds, const std::string& name, const std::string& must) const {
  if (holds) return;
  const ParamValue* value = Find(name);
  throw Error(ExitCode::kUsage,
              fmt::format("{}: parameter '{}' must {}{}", op_, name, must,
                          value == nullptr ? "" : ", not " + ParamText(*value)),
              where_);
}

int64_t Params::Integer(const std::string& name) const {
  if (const auto* value = std::get_if<int64_t>(&Required(name))) return *value;
  WrongType(name, "an integer");
}

int64_t Params::Integer(const std::string& name, int64_t fallback) const {
  return Has(name) ? Integer(name) : fallback;
}

double Params::Real(const std::string& name) const {
  const ParamValue& value = Required(name);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  WrongType(name, "a number");
}

double Params::Real(const std::string& name, double fallback) const {
  return Has(name) ? Real(name) : fallback;
}

float Params::Float(const std::string& name) const {
  const float value = static_cast<float>(Real(name));
  Require(std::isfinite(value), name, "be finite in single precision");
  return value;
}

float Params::Float(const std::string& name, float fallback) const {
  return Has(name) ? Float(name) : fallback;
}

std::string Params::Text(const std::string& name) const {
  if (const auto* value = std::get_if<std::string>(&Required(name))) return *value;
  WrongType(name, "a text in quotes");
}

std::string Params::Text(const std::string& name, const std::string& fallback) const {
  return Has(name) ? Text(name) : fallback;
}

bool Params::Flag(const std::string& name, bool fallback) const {
  if (!Has(name)) return fallback;
  if (const auto* value = std::get_if<bool>(&Required(name))) return *value;
  WrongType(name, "true or false");
}

std::vector<int64_t> Params::Integers(const std::string& name) const {
  const ParamValue& value = Required(name);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return *list;
  if (const auto* integer = std::get_if<int64_t>(&value)) return {*integer};
  WrongType(name, "a list of integers");
}

std::vector<double> Params::Reals(const std::string& name) const {
  const ParamValue& value = Required(name);
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return *list;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
    return {list->begin(), list->end()};
  if (std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value))
    return {Real(name)};
  WrongType(name, "a list of numbers");
}

}  // namespace headrace::reader
