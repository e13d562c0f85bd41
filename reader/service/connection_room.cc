#include "reader/service/connection_room.h"

#include <sys/resource.h>

#include <algorithm>

namespace headrace::reader::service {

size_t RoomForConnections(size_t most, size_t descriptors) {
  constexpr rlim_t kOthers = 384;  // strangers alone may be 256 (guarded_listener.cc)
  constexpr size_t kUnknown = 256;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::min(most, kUnknown);
  const rlim_t wanted = std::min<rlim_t>(most * descriptors + kOthers, limit.rlim_max);
  if (limit.rlim_cur < wanted) {
    const rlimit raised = {wanted, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const rlim_t free = limit.rlim_cur > 2 * kOthers ? limit.rlim_cur - kOthers : limit.rlim_cur / 2;
  return std::clamp<size_t>(free / descriptors, 1, most);
}

std::string FixForMoreConnections(size_t most, size_t wished) {
  if (most >= wished) return "a dispatcher takes no more: give the job fewer and larger workers";
  // The soft limit was raised as far as the hard one goes.
  return "raise the dispatcher's hard limit of open files, as root: LimitNOFILE= of its unit, or "
         "limits.conf ('ulimit -Hn' shows it)";
}

}  // namespace headrace::reader::service
