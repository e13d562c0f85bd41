#include "collectors/recorder_target.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <pwd.h>
#include <unistd.h>

#include <string>

#include "base/error.h"
#include "collectors/segment_claims.h"
#include "probes/host.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

std::string UserName(uint32_t uid) {
  const passwd* user = getpwuid(uid);
  return user ? user->pw_name : fmt::format("user {}", uid);
}

}  // namespace

void CheckTarget(int64_t pid) {
  if (!probes::IsAlive(pid)) {
    std::string candidates;
    for (const SegmentClaim& claim : ReadSegmentClaims()) {
      if (claim.pid == 0) continue;
      const auto stat = probes::ReadProcessStat(claim.pid);
      candidates += fmt::format("{}{} {}", candidates.empty() ? "" : ", ", claim.pid,
                                stat ? Printable(stat->name) : "?");
    }
    throw Error(ExitCode::kBadData, fmt::format("no process {}", pid), "",
                candidates.empty() ? "no instrumented process runs here"
                                   : "running instrumented: " + candidates);
  }
  const auto owner = probes::ReadOwner(pid);
  if (owner && geteuid() != 0 && *owner != geteuid() &&
      !probes::Host().HasCapability(CAP_SYS_PTRACE).value_or(true)) {
    throw Error(ExitCode::kPrivilege,
                fmt::format("not allowed to read process {} (owner: {}, you: {})", pid,
                            UserName(*owner), UserName(geteuid())),
                "", "needs the same user or root; in a container: --cap-add SYS_PTRACE");
  }
}

}  // namespace headrace::collectors
