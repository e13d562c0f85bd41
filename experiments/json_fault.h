// JsonFault: why a text of others is not JSON that this program reads, before it is taken apart.
//
// The library that takes it apart copies and writes values recursively: a text of a million open
// brackets is well-formed as far as it goes, and would end the program.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace headrace::experiments {

struct JsonFault {
  std::string what;  // "unexpected ']'; expected a value", "more than 32 levels deep"
  size_t byte = 0;   // where it was seen, from 1, as the library counts
};

// Nothing where `text` is one JSON value whose arrays and objects hold one another at most
// `most_levels` deep. Needs no memory to speak of.
std::optional<JsonFault> FindJsonFault(const std::string& text, int most_levels = 32);

}  // namespace headrace::experiments
