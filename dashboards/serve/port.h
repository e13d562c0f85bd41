// The port of `headrace serve` where no other is asked for.
#pragma once

namespace headrace::dashboards {

inline constexpr int kServePort = 7070;

}  // namespace headrace::dashboards
