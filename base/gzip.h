// Text as a gzip member, as HTTP and pprof carry it, and as the executable carries what it embeds.
#pragma once
#include <string>
#include <string_view>

namespace headrace {

// Throws Error kResources without memory.
std::string Gzipped(std::string_view text);

// Of one member that the build of this program made: another one is a broken invariant.
std::string Gunzipped(std::string_view member);

}  // namespace headrace
