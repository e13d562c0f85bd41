#include "collectors/accounting_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kLookAgainNs = 5'000'000'000;  // for what is in the way of accounts

}  // namespace

void AccountingRow::Write(RunStore* store, const AccountingState& now) {
  const account::AccountSegment* segment = now.accounts.first();
  if (segment) {
    program_ = segment->program();
    account_level_ = segment->level();
    if (!described_clock_) {
      described_clock_ = true;
      store->SetProbe(now.run_id, "account clock", segment->uses_tsc() ? "active" : "degraded",
                      segment->uses_tsc() ? "" : "no invariant time-stamp counter: clock_gettime",
                      "");
      const bool clock = segment->level() >= 2;
      store->SetProbe(now.run_id, "thread CPU clock", clock ? "active" : "unavailable",
                      clock ? "" : "HEADRACE_ACCOUNT_LEVEL=1",
                      clock ? "" : "leave HEADRACE_ACCOUNT_LEVEL unset");
    }
  } else if (!now.accounts.ever_attached()) {
    if (const TreeProcess* root = now.tree.Find(now.pid)) program_ = root->row.name;
  }
  int64_t reached = 0;
  std::string note;
  const bool kernel = now.runner.has_splits();
  if (!now.accounts.ever_attached()) {
    note = now.level == 0 ? "seen from outside: --level 0"
           : kernel       ? "seen from outside, with eBPF: the process is not instrumented"
                          : "seen from outside: the process is not instrumented";
  } else {
    reached = std::min(account_level_, int64_t{now.level});
    note = reached >= 2 ? "c by the thread CPU clock, q by the scheduler, b the rest"
                        : "c, b and q in one figure";
    if (kernel) {
      reached = 3;
      note = "b and q by eBPF at every switch of a thread, c the rest";
    }
    if (now.runner.level_reached() >= 4) {
      reached = 4;
      note += "; hardware counters by operator";
    }
  }
  if (!now.accounts.ever_attached()) FindObstacle(now);
  const std::string all =
      fmt::format("{} {} {} {} {}", reached, program_, note, now.refused, obstacle_.reason);
  if (all == described_) return;
  described_ = all;
  store->SetAccounting(now.run_id, program_, reached, note);
  const bool has = now.accounts.ever_attached();
  store->SetProbe(now.run_id, "operator accounts", has ? "active" : "unavailable",
                  has                        ? now.refused
                  : now.level == 0           ? "left out by --level 0"
                  : !now.refused.empty()     ? now.refused
                  : obstacle_.reason.empty() ? "the process keeps none"
                                             : "the process keeps none: " + obstacle_.reason,
                  has                        ? ""
                  : now.level == 0           ? "--level 1"
                  : obstacle_.reason.empty() ? "write them with headrace/account.h"
                                             : obstacle_.fix,
                  has ? "" : "operators, queues, steps");
}

void AccountingRow::FindObstacle(const AccountingState& now) {
  constexpr size_t kMostAsked = 16;
  if (now.level == 0 || MonotonicNs() < next_obstacle_ns_) return;
  next_obstacle_ns_ = MonotonicNs() + kLookAgainNs;
  const std::vector<int64_t>& live = now.tree.live();  // of the dead, what was found stays
  for (size_t i = 0; i < std::min(kMostAsked, live.size()); i++) {
    obstacle_ = SegmentSearch(live[i]).FindObstacle();
    if (obstacle_.reason.empty()) continue;
    if (live[i] != now.pid) {
      obstacle_.reason = fmt::format("of {}, {}", live[i], obstacle_.reason);
    }
    return;
  }
}

}  // namespace headrace::collectors
