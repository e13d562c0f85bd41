#include "reader/pipeline/spec/value.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/registry.h"
#include "base/units.h"

namespace headrace::reader {
namespace {

const toml::node& Node(const void* node) { return *static_cast<const toml::node*>(node); }

template <typename T>
std::optional<T> As(const void* node) {
  if (node == nullptr) return std::nullopt;
  const toml::value<T>* value = Node(node).as<T>();
  return value == nullptr ? std::nullopt : std::optional<T>(value->get());
}

}  // namespace

void SpecValue::Fail(const std::string& what) const {
  throw Error(ExitCode::kUsage, what, Place());
}

std::string SpecValue::Place() const {
  return line() == 0 ? file_->path : fmt::format("{}:{}:{}", file_->path, line(), column());
}

uint32_t SpecValue::line() const { return node_ == nullptr ? 0 : Node(node_).source().begin.line; }

uint32_t SpecValue::column() const {
  return node_ == nullptr ? 0 : Node(node_).source().begin.column;
}

bool SpecValue::is_table() const { return node_ != nullptr && Node(node_).is_table(); }
bool SpecValue::is_list() const { return node_ != nullptr && Node(node_).is_array(); }

std::optional<std::string> SpecValue::AsText() const { return As<std::string>(node_); }
std::optional<int64_t> SpecValue::AsInteger() const { return As<int64_t>(node_); }
std::optional<double> SpecValue::AsReal() const { return As<double>(node_); }
std::optional<bool> SpecValue::AsFlag() const { return As<bool>(node_); }

std::optional<double> SpecValue::AsNumber() const {
  if (node_ == nullptr || !Node(node_).is_number()) return std::nullopt;
  return Node(node_).value<double>();
}

std::vector<SpecValue> SpecValue::Items() const {
  std::vector<SpecValue> items;
  if (is_list())
    for (const toml::node& item : *Node(node_).as_array())
      items.emplace_back(*file_, &item, fmt::format("{}[{}]", name_, items.size()));
  return items;
}

std::vector<std::pair<std::string, SpecValue>> SpecValue::Members() const {
  std::vector<std::pair<std::string, SpecValue>> members;
  if (is_table())
    for (const auto& [key, value] : *Node(node_).as_table())
      members.emplace_back(std::string(key.str()), (*this)[std::string(key.str())]);
  return members;
}

void SpecValue::CheckKeys(const std::string& section,
                          const std::vector<std::string>& allowed) const {
  if (node_ == nullptr) return;
  for (const auto& [key, value] : *Node(node_).as_table()) {
    const std::string name(key.str());
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    // A key that a setting added has no place in the file.
    const auto place = key.source().begin;
    const std::string where = place.line > 0
                                  ? fmt::format("{}:{}:{}", file_->path, place.line, place.column)
                                  : file_->path + " with its settings";
    throw Error(ExitCode::kUsage,
                fmt::format("unknown key '{}' in {}{}", Printable(name, 60), section,
                            DidYouMean(name, allowed)),
                where);
  }
}

SpecValue SpecValue::operator[](const std::string& key) const {
  return {*file_, is_table() ? Node(node_).as_table()->get(key) : nullptr,
          name_.empty() ? key : name_ + "." + key};
}

SpecValue SpecValue::Noted(const std::string& key, const std::string& otherwise) const {
  const SpecValue value = (*this)[key];
  if (file_->settings == nullptr) return value;
  std::string& text = (*file_->settings)[value.name_];
  text = otherwise;
  if (const auto written = value.AsText()) text = *written;
  if (const auto integer = value.AsInteger()) text = std::to_string(*integer);
  if (const auto real = value.AsReal()) text = fmt::format("{}", *real);
  if (const auto flag = value.AsFlag()) text = *flag ? "true" : "false";
  return value;
}

SpecValue SpecValue::Table(const std::string& key) const {
  const SpecValue value = (*this)[key];
  if (value && !value.is_table()) value.Fail(fmt::format("'{}' is not a table", key));
  return value;
}

std::string SpecValue::Text(const std::string& key, const std::string& otherwise) const {
  const SpecValue value = Noted(key, otherwise);
  if (!value) return otherwise;
  if (const auto text = value.AsText()) return *text;
  value.Fail(fmt::format("expected a text for {}", key));
}

uint64_t SpecValue::Count(const std::string& key, uint64_t otherwise, uint64_t low,
                          uint64_t high) const {
  const SpecValue value = Noted(key, std::to_string(otherwise));
  if (!value) return otherwise;
  const auto count = value.AsInteger();
  if (!count) value.Fail(fmt::format("expected a whole number for {}", key));
  if (*count < 0 || static_cast<uint64_t>(*count) < low || static_cast<uint64_t>(*count) > high)
    value.Fail(fmt::format("{} must be from {} to {}, got {}", key, low, high, *count));
  return static_cast<uint64_t>(*count);
}

bool SpecValue::Flag(const std::string& key, bool otherwise) const {
  const SpecValue value = Noted(key, otherwise ? "true" : "false");
  if (!value) return otherwise;
  if (const auto flag = value.AsFlag()) return *flag;
  value.Fail(fmt::format("expected true or false for {}", key));
}

double SpecValue::Number(const std::string& key, double otherwise) const {
  const SpecValue value = Noted(key, fmt::format("{}", otherwise));
  if (!value) return otherwise;
  const auto number = Node(value.node_).value<double>();
  if (!number || value.AsText()) value.Fail(fmt::format("expected a number for {}", key));
  if (!std::isfinite(*number)) value.Fail(fmt::format("{} must be finite, got {}", key, *number));
  return *number;
}

bool SpecValue::IsSecond(const std::string& key, const char* first, const char* second) const {
  const std::string text = Text(key, first);
  if (text != first && text != second)
    (*this)[key].Fail(
        fmt::format("{} is \"{}\" or \"{}\", got \"{}\"", key, first, second, Printable(text, 40)));
  return text == second;
}

double SpecValue::Duration(const std::string& key, double otherwise_ns) const {
  const SpecValue value =
      Noted(key, otherwise_ns == 0 ? "0" : fmt::format("{:.0f}ns", otherwise_ns));
  if (!value) return otherwise_ns;
  if (value.AsInteger() == 0) return 0;
  const auto text = value.AsText();
  if (!text) value.Fail(fmt::format("expected a duration such as \"5ms\" for {}", key));
  try {
    return static_cast<double>(ParseDuration(*text, key));
  } catch (const Error& error) {
    value.Fail(fmt::format("{}: {}; {}", key, error.fact(), error.fix()));
  }
}

uint64_t SpecValue::Bytes(const std::string& key, uint64_t otherwise) const {
  const SpecValue value = Noted(key, std::to_string(otherwise));
  if (!value) return otherwise;
  if (const auto count = value.AsInteger(); count && *count >= 0)
    return static_cast<uint64_t>(*count);
  const auto text = value.AsText();
  if (!text) value.Fail(fmt::format("expected a size such as \"64KiB\" for {}", key));
  try {
    return ParseBytes(*text, key);
  } catch (const Error& error) {
    value.Fail(fmt::format("{}: {}; {}", key, error.fact(), error.fix()));
  }
}

double SpecValue::Rate(const std::string& key, double otherwise) const {
  const SpecValue value = Noted(key, otherwise == 0 ? "0" : fmt::format("{:.0f}B/s", otherwise));
  if (!value) return otherwise;
  std::string text = value.AsText().value_or("");
  if (text.ends_with("/s")) {
    text.resize(text.size() - 2);
    try {
      const double rate = static_cast<double>(ParseBytes(text, key));
      if (rate > 0) return rate;
    } catch (const Error&) {
    }
  }
  value.Fail(fmt::format("expected a rate such as \"200MB/s\" for {}", key));
}

std::string SpecValue::Path(const std::string& path) const {
  const std::filesystem::path p(path);
  if (p.is_absolute()) return p.string();
  return (std::filesystem::path(file_->folder) / p).lexically_normal().string();
}

std::string DidYouMean(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest);
}

}  // namespace headrace::reader
