// Cells of a query's result where 0 stands for what is not there.
#pragma once
#include <cstdint>

#include "dashboards/export/sql_values.h"

namespace headrace::dashboards {

inline double RealOf(const collectors::SqlValue& value) { return NumberOf(value).value_or(0); }
inline int64_t IntegerOf(const collectors::SqlValue& value) { return WholeOf(value).value_or(0); }

}  // namespace headrace::dashboards
