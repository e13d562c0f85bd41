// Values of a query as plain types. A database may come from anyone: a value of another type than
// its column promises is converted, or absent.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

// Nothing for NULL and for a text. A real number is cut to a whole one; out of range: nothing.
std::optional<int64_t> WholeOf(const collectors::SqlValue& value);
// Nothing for NULL, for a text, and for what is not finite.
std::optional<double> NumberOf(const collectors::SqlValue& value);
// The same, where 0 may stand for what is not there.
inline int64_t IntegerOf(const collectors::SqlValue& value) { return WholeOf(value).value_or(0); }
inline double RealOf(const collectors::SqlValue& value) { return NumberOf(value).value_or(0); }
// Empty for NULL; numbers in decimal.
std::string TextOf(const collectors::SqlValue& value);

// The value in JSON: a number, a string, or null for NULL and for what is not finite.
std::string JsonValue(const collectors::SqlValue& value);

// The end of a window, without overflow.
int64_t EndOfWindow(int64_t start_ns, int64_t duration_ns);

}  // namespace headrace::dashboards
