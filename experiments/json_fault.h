// JsonFault: why a text from elsewhere is not JSON that this program accepts; checked before it is
// parsed.
//
// The JSON library copies and writes values recursively: a million open brackets are a valid
// beginning, and would overflow the stack.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace headrace::experiments {

struct JsonFault {
  std::string what;  // "unexpected ']'; expected a value", "more than 32 levels deep"
  size_t byte = 0;   // position at which it was seen, from 1, as the library counts
};

// Nothing where `text` is one JSON value whose arrays and objects are nested at most `most_levels`
// deep. Needs hardly any memory.
std::optional<JsonFault> FindJsonFault(const std::string& text, int most_levels = 32);

// The number under `key`; empty where `in` is no object, or has none there.
std::optional<double> NumberOf(const nlohmann::json& in, const char* key);

}  // namespace headrace::experiments
