// How many connections a process of the service may have at a time.
#pragma once
#include <cstddef>
#include <string>

namespace headrace::reader::service {

// `most`, or fewer where the system allows the process too few descriptors: each connection takes
// `descriptors`, and some hundred are kept for files, and for strangers that greet. The process's
// limit of descriptors is raised as far as it goes and is needed. At least 1.
size_t RoomForConnections(size_t most, size_t descriptors = 1);

// What to do where a process may not have more connections than `most`, which RoomForConnections
// gave for a wish of `wished`.
std::string FixForMoreConnections(size_t most, size_t wished);

}  // namespace headrace::reader::service
