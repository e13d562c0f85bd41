#include "experiments/json_fault.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace headrace::experiments {
namespace {

using nlohmann::json;

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ... - WHY"
std::string Words(std::string text) {
  for (const char* before : {"] ", ": ", " - "}) {
    const size_t at = text.find(before);
    if (at != std::string::npos) text.erase(0, at + std::string(before).size());
  }
  return Printable(text, 120);
}

class Check : public nlohmann::json_sax<json> {
 public:
  explicit Check(int most_levels) : most_levels_(most_levels) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(size_t) override { return Enter(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool parse_error(size_t byte, const std::string&, const json::exception& error) override {
    fault = {Words(error.what()), byte};
    return false;
  }

  std::optional<JsonFault> fault;

 private:
  bool Enter() {
    if (++level_ <= most_levels_) return true;
    fault = {fmt::format("more than {} levels deep", most_levels_), 0};
    return false;
  }
  bool Leave() {
    --level_;
    return true;
  }

  int most_levels_;
  int level_ = 0;
};

// The library does not say where it was when it was told to stop: brackets outside of strings are
// counted again.
size_t ByteOfLevel(const std::string& text, int level) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      if (--level == 0) return i + 1;
    } else if (!in_string && (c == ']' || c == '}')) {
      ++level;
    }
  }
  return text.size();
}

}  // namespace

std::optional<JsonFault> FindJsonFault(const std::string& text, int most_levels) {
  Check check(most_levels);
  json::sax_parse(text, &check);
  if (check.fault && check.fault->byte == 0) check.fault->byte = ByteOfLevel(text, most_levels + 1);
  return check.fault;
}

std::optional<double> NumberOf(const nlohmann::json& in, const char* key) {
  if (!in.is_object()) return std::nullopt;
  const auto found = in.find(key);
  if (found == in.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace headrace::experiments
