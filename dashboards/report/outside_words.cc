#include "dashboards/report/outside_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Outside;
using analysis::OutsideFlavour;
using analysis::OutsideKnowledge;
using analysis::OutsideLimit;
using analysis::RunView;
using analysis::Unit;
using analysis::UnitShares;

// A share of time: whole per cent, "none" for nothing at all.
std::string Share(double ratio) { return FormatPercent(std::clamp(ratio, 0.0, 1.0)); }

std::string Pids(const Outside& seen, const Unit& unit) {
  const std::vector<int64_t>& pids = seen.kinds[unit.kind].pids;
  std::string text;
  for (size_t i = 0; i < pids.size(); ++i) {
    if (i == 4) return text + ", ...";
    text += (i == 0 ? "" : ", ") + std::to_string(pids[i]);
  }
  return text;
}

bool HasProducers(const Outside& seen) {
  return std::any_of(seen.units.begin(), seen.units.end(),
                     [](const Unit& unit) { return unit.role == analysis::UnitRole::kProducer; });
}

// Waits of a thread that nothing feeds, as its whole `share` of the time: "waiting for a lock 60 %,
// waiting on a pipe 40 %".
std::vector<std::pair<double, std::string>> WaitsByCause(const Outside& seen, const Unit& unit,
                                                         double share) {
  using analysis::WaitCause;
  constexpr std::pair<WaitCause, const char*> kWords[] = {
      {WaitCause::kLock, "waiting for a lock"},
      {WaitCause::kPipe, "waiting on a pipe"},
      {WaitCause::kPoll, "waiting in poll"},
      {WaitCause::kChild, "waiting for a child process"},
      {WaitCause::kNetwork, "waiting on the network"},
      {WaitCause::kOther, "waiting, nobody saw for what"}};
  const auto& blocked = seen.groups[unit.key_group].time.blocked_s;
  double all = 0;
  for (const auto& [cause, words] : kWords) {
    // What is not ended by threads has its own share.
    if (cause != WaitCause::kNetwork || unit.shares.network <= 0) {
      all += blocked[static_cast<size_t>(cause)];
    }
  }
  if (all <= 0) return {{share, "waiting, nobody saw for what"}};
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [cause, words] : kWords) {
    if (cause == WaitCause::kNetwork && unit.shares.network > 0) continue;
    parts.push_back({share * blocked[static_cast<size_t>(cause)] / all, words});
  }
  return parts;
}

// "on a CPU 95 %, blocked on storage 2 %, ..." with the parts that matter.
std::string WhereTimeGoes(const Outside& seen, size_t u) {
  const UnitShares& shares = seen.units[u].shares;
  const bool consumer = u == 0;
  std::vector<std::pair<double, std::string>> parts = {{shares.on_cpu, "on a CPU"},
                                                       {shares.runnable, "ready but without a CPU"},
                                                       {shares.storage, "blocked on storage"},
                                                       {shares.network, "blocked on the network"},
                                                       {shares.sleep, "asleep by a timer"},
                                                       {shares.stopped, "stopped"}};
  if (consumer && !HasProducers(seen)) {
    const double waits = shares.lock + shares.wait_consumer + shares.wait_input + shares.other;
    for (auto& part : WaitsByCause(seen, seen.units[u], waits)) parts.push_back(std::move(part));
  } else {
    parts.insert(parts.end(), {{shares.lock, "waiting for each other"},
                               {shares.wait_consumer, "waiting for " + ConsumerWord(seen)},
                               {shares.wait_input, consumer ? "waiting for the other threads"
                                                            : "waiting for their input"},
                               {shares.other, "in waits that no thread of the tree ended"}});
  }
  std::string text;
  for (const auto& [share, words] : parts) {
    if (share < 0.01) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words, Share(share));
  }
  return text.empty() ? "idle" : text;
}

std::string LimitWord(const Outside& seen, OutsideLimit limit) {
  switch (limit) {
    case OutsideLimit::kProducers:
      return seen.culprit != 0 ? UnitWord(seen, seen.culprit) : "the threads that feed it";
    case OutsideLimit::kCores:
      return "the cores";
    case OutsideLimit::kStorage:
      return "storage";
    case OutsideLimit::kNetwork:
      return "the network, or what answers on it";
    case OutsideLimit::kLock:
      return "a lock";
    case OutsideLimit::kSleep:
      return "a timer";
    case OutsideLimit::kConsumer:
      return ConsumerWord(seen);
    case OutsideLimit::kAlone:
      return "one thread that loads and computes in turn";
    case OutsideLimit::kNone:
      break;
  }
  return "nothing that was seen";
}

bool IsAre(const std::string& word) { return word.ends_with("s") && word != "this"; }

std::string IsLimit(const std::string& word) {
  return fmt::format("{} {} the limit", word, IsAre(word) ? "are" : "is");
}

std::string Probability(double probability) {
  return probability > 0.99 ? "probability >0.99" : fmt::format("probability {:.2f}", probability);
}

// What reads look like, if that was measured: "reads of 4.00 KiB take 95 us each".
std::string ReadSizes(const RunView& run) {
  double requests = 0, bytes = 0, latency = 0;
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.cause != "read" || !row.value) continue;
    if (row.metric == "block_requests_count") requests += *row.value;
    if (row.metric == "block_bytes") bytes += *row.value;
    if (row.metric == "block_latency_ns") latency += *row.value;
  }
  if (requests <= 0) return "";
  std::string text = fmt::format("; reads are of {} each", FormatBytes(bytes / requests));
  if (latency > 0) text += fmt::format(" and take {}", FormatDuration(latency / requests));
  return text;
}

std::string Advice(const RunView& run, const Outside& seen) {
  const Unit& unit = seen.units[seen.culprit];
  const bool torch = seen.flavour == OutsideFlavour::kTorch;
  const std::string cheaper =
      torch ? "a cheaper __getitem__ or collate_fn" : "less work per element";
  const auto processes = static_cast<double>(seen.kinds[unit.kind].pids.size());
  switch (seen.findings[0].limit) {
    case OutsideLimit::kProducers: {
      const double now = std::max(1.0, std::round(unit.threads_count));
      const double wanted = std::ceil(now / std::max(0.05, 1 - seen.stall_ratio));
      const double cores = run.run.cores_count.value_or(0);
      if (!seen.cores_free || cores <= 0) {
        return fmt::format("more of {}, while cores are left; or {}", UnitWord(seen, seen.culprit),
                           cheaper);
      }
      const double free = *seen.cores_free;
      const double room = now + std::floor(free / std::max(0.05, unit.shares.on_cpu));
      const double to = std::min(wanted, room);
      if (to <= now) return fmt::format("{}: no core is left for more of them", cheaper);
      const bool feeds_processes = processes > 1 || unit.name.starts_with("process");
      return fmt::format(
          "{} {:.0f} -> {:.0f} ({:.1f} of {:.1f} cores are free, each takes {:.2f}); or {}",
          torch && feeds_processes ? "num_workers" : UnitWord(seen, seen.culprit), now, to, free,
          cores, unit.shares.on_cpu, cheaper);
    }
    case OutsideLimit::kCores:
      if (seen.cores_free && seen.cores_others &&
          *seen.cores_others > 0.25 * run.run.cores_count.value_or(1)) {
        return fmt::format("keep other programs off these cores: they use {:.1f}; else {}",
                           *seen.cores_others, cheaper);
      }
      return fmt::format("{}, or more cores: more threads or processes gain nothing", cheaper);
    case OutsideLimit::kStorage:
      return "larger or fewer reads, more of them at once, or data on a faster device" +
             ReadSizes(run);
    case OutsideLimit::kNetwork:
      return "more requests at once, larger ones, or a copy nearby";
    case OutsideLimit::kLock:
      return "hold the lock for less time or split it: more threads only wait for it";
    case OutsideLimit::kSleep:
      return "find what sleeps: a retry, a rate limit or polling (stacks off the CPU name it)";
    case OutsideLimit::kConsumer: {
      std::string text = "nothing in the loading: it keeps up";
      if (unit.role == analysis::UnitRole::kConsumer && seen.units.size() > 1) {
        for (const Unit& other : seen.units) {
          if (other.role != analysis::UnitRole::kProducer || other.distance > 1) continue;
          const double now = std::round(other.threads_count);
          const double enough = std::max(1.0, std::ceil(now * (1 - other.shares.wait_consumer)));
          if (now >= 2 && enough < now) {
            text += fmt::format("; {:.0f} of the {:.0f} {} would do", enough, now,
                                torch ? "workers" : "threads");
          }
          break;
        }
      }
      return text;
    }
    default:
      return "";
  }
}

std::string Basis(const Outside& seen) {
  switch (seen.knowledge) {
    case OutsideKnowledge::kWakers:
      return "threads' times, causes of waits and who ended them, timed by eBPF";
    case OutsideKnowledge::kCounts:
      return "threads' times, causes of waits, and counts of who ended them";
    case OutsideKnowledge::kCauses:
      return "threads' times and causes of waits; not who ended them";
    default:
      return "threads' time on a CPU only";
  }
}

Table Findings(const Outside& seen) {
  Table table{"findings",
              "",
              {{"name", "row"}, {"kind", "kind"}, {"probability", "probability"}},
              {},
              true};
  for (const analysis::OutsideFinding& finding : seen.findings) {
    table.rows.push_back(
        {LimitWord(seen, finding.limit), OutsideLimitName(finding.limit),
         Quantity::Of(finding.probability, headrace::Unit::kRatio, Source::kEstimate)});
  }
  return table;
}

}  // namespace

std::string ConsumerWord(const Outside& seen) {
  return seen.flavour == OutsideFlavour::kPlain ? "the consumer" : "the trainer";
}

std::string UnitWord(const Outside& seen, size_t u) {
  if (u == 0) return ConsumerWord(seen);
  const Unit& unit = seen.units[u];
  const std::string& kind = seen.kinds[unit.kind].name;
  if (kind.starts_with("pt_data_worker")) return "the workers";
  if (seen.flavour == OutsideFlavour::kTensorflow && unit.kind == seen.units[0].kind) {
    return "tf.data's threads";
  }
  return unit.name;
}

void AddOutsideVerdict(const RunView& run, const Outside& seen, Section* section) {
  const bool ebpf = seen.knowledge >= OutsideKnowledge::kWakers;
  Quantity stall = Quantity::Of(seen.stall_ratio, headrace::Unit::kRatio,
                                ebpf ? Source::kEbpf : Source::kEstimate);
  if (seen.stall_interval) {
    stall = stall.WithInterval(seen.stall_interval->low, seen.stall_interval->high);
  }
  const analysis::OutsideFinding& first = seen.findings[0];
  const bool alone = first.limit == OutsideLimit::kAlone || seen.units.size() == 1;
  const bool producers = HasProducers(seen);
  std::string verdict;
  if (!producers) {
    verdict = fmt::format(
        "{} does everything in one thread: nothing feeds it, so it never waits "
        "for data, it fetches it",
        ConsumerWord(seen));
  } else {
    verdict = fmt::format("{}: {} waited {} of the time{}", StallGrade(seen.stall_ratio),
                          ConsumerWord(seen), FormatPercent(seen.stall_ratio),
                          seen.stall_assumed ? " (all its waits, whoever ended them)" : "");
    if (seen.stall_interval) verdict += "  " + PercentInterval(*seen.stall_interval);
    verdict += std::string("  ") + StallThresholds();
  }
  section->sentences.push_back({"VERDICT", verdict});
  section->facts = {
      {"state", seen.decided
                    ? (first.limit == OutsideLimit::kConsumer ? "consumer bound" : "limited")
                    : "undecided"},
      {"basis", "outside"},
      {"basis_text", Basis(seen)},
      {"grade", StallGradeKey(seen.stall_ratio)},
      {"stall_ratio", stall},
      {"cores_used_by_others",
       Number(seen.cores_others, headrace::Unit::kCores, "the machine's load was not recorded")},
      {"limit.name", LimitWord(seen, first.limit)},
      {"limit.kind", OutsideLimitName(first.limit)},
      {"limit.group", seen.units[seen.culprit].name},
      {"limit.pids", Pids(seen, seen.units[seen.culprit])},
      {"limit.probability",
       Quantity::Of(first.probability, headrace::Unit::kRatio, Source::kEstimate)}};

  const std::string word = LimitWord(seen, first.limit);
  const Unit& unit = seen.units[seen.culprit];
  if (alone) {
    section->sentences.push_back(
        {"CULPRIT", fmt::format("{} ({}): {}", word, unit.name, WhereTimeGoes(seen, 0))});
  } else if (seen.decided) {
    section->sentences.push_back(
        {"CULPRIT",
         fmt::format("{}, {}: {} ({}; pid {}): {}", IsLimit(word), Probability(first.probability),
                     unit.name, analysis::UnitRoleName(unit.role), Pids(seen, unit),
                     WhereTimeGoes(seen, seen.culprit))});
  } else {
    std::string text = fmt::format("undecided: {} ({})", word, Probability(first.probability));
    if (seen.findings.size() > 1) {
      text += fmt::format(" or {} ({:.2f})", LimitWord(seen, seen.findings[1].limit),
                          seen.findings[1].probability);
    }
    section->sentences.push_back({"CULPRIT", text});
  }
  if (!alone) {
    std::string because;
    for (size_t u = 0; u < seen.units.size(); ++u) {
      const Unit& each = seen.units[u];
      if (u == seen.culprit && seen.decided) continue;
      if (each.role != analysis::UnitRole::kConsumer && each.role != analysis::UnitRole::kProducer)
        continue;
      because += fmt::format("{}{}: {}", because.empty() ? "" : "; ",
                             u == 0 ? ConsumerWord(seen) : each.name, WhereTimeGoes(seen, u));
    }
    if (seen.cores_busy_ratio && run.run.cores_count) {
      because += fmt::format("{}{:.1f} of {:.1f} cores in use{}", because.empty() ? "" : "; ",
                             *seen.cores_busy_ratio * *run.run.cores_count, *run.run.cores_count,
                             seen.cores_free ? "" : " by this program");
      if (seen.cores_free && seen.cores_others && *seen.cores_others > 0.1) {
        because += fmt::format(", {:.1f} of them by other programs", *seen.cores_others);
      }
    }
    section->sentences.push_back({"BECAUSE", because});
  }
  if (seen.decided) {
    section->sentences.push_back({"DO NEXT", Advice(run, seen)});
    section->facts.push_back({"advice", Advice(run, seen)});
    if (first.limit != OutsideLimit::kConsumer && seen.stall_ratio > 0.02 &&
        seen.stall_ratio < 0.98 && producers) {
      const double gain = 1 / (1 - seen.stall_ratio);
      section->sentences.push_back(
          {"THEN", fmt::format("limited by {}, at {:.1f} times the rate at most",
                               ConsumerWord(seen), gain)});
      section->facts.push_back({"predicted.most_gain_ratio",
                                Quantity::Of(gain - 1, headrace::Unit::kRatio, Source::kEstimate)});
    }
  } else {
    section->sentences.push_back({"MEASURE", seen.measure});
    section->facts.push_back({"measure", seen.measure});
  }
  section->sentences.push_back({"BASIS", "seen from outside: " + Basis(seen)});
  std::string unknown;
  for (const std::string& each : seen.unknown) unknown += (unknown.empty() ? "" : "; ") + each;
  section->sentences.push_back({"UNKNOWN", unknown});
  section->facts.push_back({"unknown", unknown});
  section->tables.push_back(Findings(seen));
}

}  // namespace headrace::dashboards
