#include "dashboards/report/outside_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/model/bottleneck.h"
#include "analysis/outside/file_locks.h"
#include "analysis/thresholds.h"
#include "base/units.h"
#include "dashboards/report/accelerator_words.h"
#include "dashboards/report/outside_advice.h"
#include "dashboards/report/outside_names.h"
#include "dashboards/report/own_work_words.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/report_state.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Outside;
using analysis::OutsideFlavour;
using analysis::OutsideKnowledge;
using analysis::OutsideLimit;
using analysis::OutsideUnit;
using analysis::RunView;
using analysis::UnitShares;

// A share of time: whole per cent, "none" for nothing at all.
std::string Share(double ratio) { return FormatPercent(std::clamp(ratio, 0.0, 1.0)); }

std::string Pids(const Outside& seen, const OutsideUnit& unit) {
  const std::vector<int64_t>& pids = seen.kinds[unit.kind].pids;
  std::string text;
  for (size_t i = 0; i < pids.size(); ++i) {
    if (i == 4) return text + ", ...";
    text += (i == 0 ? "" : ", ") + std::to_string(pids[i]);
  }
  return text;
}

// Waits of a thread that nothing feeds, as its whole `share` of the time: "waiting for a lock 60 %,
// waiting on a pipe 40 %".
std::vector<std::pair<double, std::string>> WaitsByCause(const Outside& seen,
                                                         const OutsideUnit& unit, double share) {
  using analysis::WaitCause;
  constexpr std::pair<WaitCause, const char*> kWords[] = {
      {WaitCause::kLock, "waiting for a lock"},
      {WaitCause::kPipe, "waiting on a pipe"},
      {WaitCause::kPoll, "waiting in poll"},
      {WaitCause::kChild, "waiting for a child process"},
      {WaitCause::kNetwork, "waiting on the network"},
      {WaitCause::kOther, "waiting, cause unknown"}};
  const auto& blocked = seen.groups[unit.key_group].time.blocked_s;
  double all = 0;
  for (const auto& [cause, words] : kWords) {
    // What is not ended by threads has its own share.
    if (cause != WaitCause::kNetwork || unit.shares.network <= 0) {
      all += blocked[static_cast<size_t>(cause)];
    }
  }
  if (all <= 0) return {{share, "waiting, cause unknown"}};
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
                                                       {shares.sleep, "sleeping on a timer"},
                                                       {shares.stopped, "stopped"}};
  if (consumer && !seen.HasProducers()) {
    const double waits = shares.lock + shares.wait_consumer + shares.wait_input + shares.other -
                         shares.database_lock;
    parts.emplace_back(shares.database_lock, "waiting for a lock in SQLite");
    for (auto& part : WaitsByCause(seen, seen.units[u], waits)) parts.push_back(std::move(part));
  } else {
    parts.insert(parts.end(), {{shares.lock, "waiting for each other"},
                               {shares.wait_consumer, "waiting for " + seen.ConsumerWord()},
                               {shares.wait_input, consumer ? "waiting for the other threads"
                                                            : "waiting for their input"},
                               {shares.other, "waiting for something outside the program"}});
    // Who ends a wait for a file's lock is not always known, or of the program.
    if (!consumer && analysis::StandsAtAFileLock(shares)) {
      const auto most = std::max_element(
          parts.end() - 4, parts.end(),
          [](const auto& one, const auto& other) { return one.first < other.first; });
      most->second = analysis::StandsAtADatabase(shares) ? "waiting for a lock in SQLite"
                                                         : "waiting to lock a file";
    }
  }
  std::string text;
  for (const auto& [share, words] : parts) {
    if (share < 0.01) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words, Share(share));
  }
  return text.empty() ? "idle" : text;
}

// Threads that Python did not start have the program's name, which says nothing of them.
std::string BusyThreadWord(const Outside& seen) {
  const analysis::PythonThreads& threads = *seen.python_threads;
  const bool is_named = !threads.busy_thread.starts_with("python");
  const std::string of_pool = PoolThreadDoes(seen);
  return fmt::format("another thread of {}'s process, {}{}", seen.ConsumerWord(),
                     is_named ? threads.busy_thread : "in " + threads.busy_function,
                     of_pool.empty() ? "" : ", which " + of_pool);
}

std::string LimitWord(const Outside& seen, OutsideLimit limit) {
  switch (limit) {
    case OutsideLimit::kProducers:
      if (seen.culprit == 0) break;
      if (Unpickles(seen)) return "unpickling in " + UnitWord(seen, seen.culprit);
      if (seen.is_busy_thread) return BusyThreadWord(seen);
      if (analysis::ExchangeWithPool(seen)) {
        return fmt::format("handing over tasks and results, in the threads of {}'s Pool",
                           seen.ConsumerWord());
      }
      if (seen.units[seen.culprit].uneven) {
        return "the slowest of " + UnitWord(seen, seen.culprit);
      }
      if (StartsWorkers(seen)) return "the start of " + UnitWord(seen, seen.culprit);
      if (analysis::IsCulpritShortLived(seen)) {
        return UnitWord(seen, seen.culprit) + ", started again and again";
      }
      return UnitWord(seen, seen.culprit);
    case OutsideLimit::kCores:
      if (seen.core_budget.quota) return QuotaWord(seen);
      if (seen.IsHeldBack()) return "a CPU quota, or a set of cores, that holds it back";
      break;
    case OutsideLimit::kConsumer:
      if (analysis::MayUnpickle(seen)) {
        return seen.ConsumerWord() + "'s thread: its step, or sampling or unpickling in it";
      }
      if (analysis::MayLoad(seen)) {
        return seen.ConsumerWord() + "'s thread: its step, or loading in it";
      }
      break;
    case OutsideLimit::kHandOver:
      return seen.LimitWord(limit) + ", pickled, through a pipe";
    case OutsideLimit::kLock:
      if (analysis::StandsAtADatabase(seen.units[seen.culprit].shares)) {
        return "a lock on an SQLite database";
      }
      if (analysis::StandsAtAFileLock(seen.units[seen.culprit].shares)) return "a lock on a file";
      break;
    case OutsideLimit::kInterpreter:
      if (analysis::PoolTakesInterpreter(seen)) {
        return seen.LimitWord(limit) + ", which a Pool's threads take for each task";
      }
      break;
    case OutsideLimit::kPauses:
      if (AreWorkersShortLived(seen)) return "the start of the workers, again and again";
      if (seen.culprit != 0) return "pauses of " + UnitWord(seen, seen.culprit);
      break;
    case OutsideLimit::kOwnWork:
      return OwnWorkWord(seen, seen.ConsumerWord());
    default:
      break;
  }
  return seen.LimitWord(limit);
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

std::string Unknown(const Outside& seen) {
  std::string unknown;
  for (const std::string& each : seen.unknown) unknown += (unknown.empty() ? "" : "; ") + each;
  return unknown;
}

// What threads of Go wait for each other says nothing then.
bool IsGoroutineAtStorage(const Outside& seen) {
  return seen.decided && seen.findings[0].limit == OutsideLimit::kStorage && seen.goroutines &&
         seen.goroutines->WaitsForStorage();
}

// Whether a timer limits that the consumer itself sleeps by, as where it looks again and again for
// what others have ready: that ends no wait, and is one.
bool SleepsItself(const Outside& seen) {
  constexpr double kMostly = 0.5;
  return seen.decided && seen.findings[0].limit == OutsideLimit::kSleep && seen.HasProducers() &&
         seen.stall_ratio < analysis::kSmallStall && seen.units[0].shares.sleep > kMostly;
}

// Whether line 1 is about the waits of the consumer's thread, however it grades them.
bool IsAboutWaits(const Outside& seen) {
  return !IsGoroutineAtStorage(seen) && !SleepsItself(seen) &&
         !(seen.decided && seen.findings[0].limit == OutsideLimit::kCollector);
}

void AddOutsideStall(const Outside& seen, FirstPage* page) {
  const std::string who = Capital(seen.ConsumerWord());
  if (seen.IsByFunctions()) {
    AddOwnWork(seen, who, page);
    return;
  }
  if (const auto waits = WaitsForUnseen(seen)) {
    page->badge = StallGrade(*waits);
    page->severity = SeverityOf(*waits);
    page->verdict = fmt::format("{} waits for batches {} of its time, by its sampled functions.",
                                who, FormatPercent(*waits));
    return;
  }
  if (seen.decided && seen.findings[0].limit == OutsideLimit::kCollector) {
    page->badge = "GARBAGE COLLECTION";
    const OutsideUnit& unit = seen.units[seen.culprit];
    page->verdict = fmt::format(
        "{} waits at a lock while garbage is collected: the threads that do so use {:.1f} cores.",
        who, unit.shares.on_cpu * std::max(1.0, unit.threads_count));
    return;
  }
  if (IsGoroutineAtStorage(seen)) {
    const analysis::StorageWaits& waits = seen.goroutines->storage;
    page->badge = "GOROUTINES";
    page->verdict =
        waits.is_main ? fmt::format("{}'s main goroutine waits for storage {} of the time.", who,
                                    Share(waits.goroutines))
                      : fmt::format("Goroutines of {} wait for storage, {:.1f} of them at a time.",
                                    waits.entry, waits.goroutines);
    return;
  }
  if (SleepsItself(seen)) {
    page->badge = "SLEEPING";
    page->verdict = fmt::format("{} sleeps {} of the time, by a timer, with others to feed it.",
                                who, Share(seen.units[0].shares.sleep));
    return;
  }
  if (!seen.HasProducers()) {
    page->badge = "ONE THREAD";
    page->verdict = who + " loads and computes in turn in one thread: nothing feeds it.";
    return;
  }
  const bool is_busy = !seen.decided && seen.findings[0].limit == OutsideLimit::kOwnWork;
  if (is_busy || (seen.findings[0].limit == OutsideLimit::kConsumer && analysis::MayLoad(seen))) {
    page->badge = "ONE THREAD BUSY";
    page->verdict = fmt::format(
        "{}'s main thread hardly waits ({} of the time): it trains, or {}.", who,
        Share(seen.stall_ratio),
        analysis::MayUnpickle(seen) ? "samples and unpacks batches" : "does part of the loading");
    return;
  }
  if (seen.is_step_elsewhere) {
    page->badge = StallGrade(0);
    page->severity = SeverityOf(0);
    page->verdict =
        fmt::format("{}'s main thread waits {} of the time for threads that compute its step.", who,
                    Share(seen.stall_ratio));
    return;
  }
  page->badge = StallGrade(seen.stall_ratio);
  page->severity = SeverityOf(seen.stall_ratio);
  page->verdict = StallSentence(who, "of the time", seen.stall_ratio, seen.stall_interval);
  if (seen.stall_assumed) page->verdict += " All its waits count, whoever ended them.";
}

// Who feeds whom, the furthest from the trainer first.
std::vector<PicturePart> DrawUnits(const Outside& seen) {
  constexpr size_t kMostUnits = 6;
  std::vector<size_t> chain;
  for (size_t u = 1; u < seen.units.size() && chain.size() < kMostUnits; ++u) {
    if (seen.units[u].role == analysis::UnitRole::kProducer) chain.push_back(u);
  }
  std::vector<PicturePart> parts;
  const bool limited = seen.decided && seen.findings[0].limit != OutsideLimit::kConsumer;
  for (size_t i = chain.size(); i-- > 0;) {
    const OutsideUnit& unit = seen.units[chain[i]];
    parts.push_back({PicturePart::Kind::kStage, seen.groups[unit.key_group].thread,
                     std::llround(std::max(1.0, unit.threads_count)),
                     std::clamp(unit.shares.work(), 0.0, 1.0),
                     limited && chain[i] == seen.culprit});
    const bool alike = i > 0 && seen.units[chain[i - 1]].distance == unit.distance;
    parts.push_back({alike ? PicturePart::Kind::kMerge : PicturePart::Kind::kQueue,
                     alike ? "+" : "",
                     0,
                     {},
                     false});
  }
  if (parts.empty()) return {};
  parts.push_back({PicturePart::Kind::kStage, seen.ConsumerName(), 0,
                   std::clamp(1 - seen.stall_ratio, 0.0, 1.0), seen.decided && !limited});
  return parts;
}

// "the slowest of 2 ranks, pid 4321: ", or "one" where they are alike; empty: there are not
// several.
std::string RankWord(const Outside& seen) {
  if (!seen.rank) return "";
  return fmt::format("{} of {} ranks, pid {}: ", seen.rank->is_slowest ? "the slowest" : "one",
                     seen.rank->ranks, seen.rank->pid);
}

std::string LimitOfOne(const Outside& seen) {
  constexpr double kMostly = 0.5;
  const analysis::OutsideFinding& first = seen.findings[0];
  const OutsideUnit& unit = seen.units[seen.culprit];
  // A timer may stand for anything: a poll, a pause, a device.
  const double sleeps = seen.units[0].shares.sleep;
  const auto named = [&](const analysis::OutsideFinding& finding) {
    const std::string timer =
        finding.limit == OutsideLimit::kConsumer && sleeps > kMostly
            ? fmt::format(", sleeping on a timer {} of the time", Share(sleeps))
            : "";
    const auto taker =
        finding.limit == OutsideLimit::kCores ? analysis::TakesCores(seen) : std::nullopt;
    const std::string taken = taker ? ", mostly used by " + seen.units[*taker].name : "";
    return fmt::format("{}{}{} (probability {})", LimitWord(seen, finding.limit), timer, taken,
                       ProbabilityText(finding.probability));
  };
  if (const std::string waits = WaitsAlone(seen); !waits.empty()) {
    return fmt::format("{} ({}): {}{}", LimitWord(seen, OutsideLimit::kAlone), unit.name, waits,
                       seen.IsByFunctions() ? "; " + InTurn(seen) : "");
  }
  if (WaitsForUnseen(seen)) {
    return "undecided: who makes the batches that it waits for was not seen";
  }
  const bool is_one = !seen.HasProducers() && first.limit != OutsideLimit::kInterpreter;
  if (!seen.decided && (first.limit == OutsideLimit::kAlone || is_one)) {
    const std::string in_turn = InTurn(seen);
    const bool tells = in_turn.empty() && seen.beside_training;
    const bool is_placed = in_turn.empty() && !seen.compute_place.empty();
    return fmt::format(
        "{} ({}{}){}{}", LimitWord(seen, OutsideLimit::kAlone), unit.name,
        is_placed ? ", most of it in " + seen.compute_place : "",
        in_turn.empty() ? "" : ": " + in_turn,
        tells ? ": " + seen.beside_training->Words("it", seen.beside_training->place.name) : "");
  }
  if (seen.decided) {
    if (seen.is_busy_thread) {
      return fmt::format("{}: pid {}", named(first), seen.kinds[unit.kind].pids[0]);
    }
    if (unit.uneven) return fmt::format("{}: pid {}", named(first), unit.uneven->pid);
    if (first.limit == OutsideLimit::kConsumer && !analysis::MayLoad(seen)) {
      return fmt::format("{}: {}{}", named(first), unit.name, StepFunction(seen));
    }
    if (first.limit == OutsideLimit::kCores && analysis::TakesCores(seen)) {
      return fmt::format("{}; {} hardly gets one", named(first), unit.name);
    }
    if (IsGoroutineAtStorage(seen) && seen.culprit == 0) {
      return fmt::format("{}: the main goroutine, in {}", named(first), seen.activity_place);
    }
    const bool said = LimitWord(seen, first.limit) == unit.name;
    const std::string pids = Pids(seen, unit);
    const bool has_pids = unit.name.ends_with("(" + pids + ")");  // "process pt_data_worker (200)"
    std::string text = named(first);
    if (has_pids) {
      text += said ? "" : ": " + unit.name;
    } else {
      text += fmt::format(": {}pid {}", said ? "" : unit.name + ", ", pids);
    }
    if (seen.is_asked_over_network) text += ", a server that is asked over the network";
    if (!seen.compute_place.empty()) {
      text += ", most of it in " + seen.compute_place;
    } else if (!seen.activity_place.empty()) {
      text += ", in " + seen.activity_place;
    } else if (first.limit == OutsideLimit::kOwnWork && !seen.python->operator_name.empty() &&
               !seen.python->function.empty()) {
      text += ", in " + seen.python->function;
    }
    const auto asked = first.limit == OutsideLimit::kProducers ? AskedProcess(seen) : std::nullopt;
    if (asked) {
      const bool many = seen.kinds[unit.kind].pids.size() > 1;
      text += fmt::format("; {} of {} time {} for answers of {}", Share(asked->wait_ratio),
                          many ? "their" : "its", many ? "they wait" : "it waits", asked->name);
    }
    return text;
  }
  const bool none = first.limit == OutsideLimit::kNone;
  std::string text =
      none ? "undecided: nothing that was seen explains its waits" : "undecided: " + named(first);
  constexpr double kWorthSaying = 0.1;
  if (seen.findings.size() > 1 && seen.findings[1].probability >= kWorthSaying) {
    text += (none ? ", or " : " or ") + named(seen.findings[1]);
  }
  return text;
}

std::string LimitLine(const Outside& seen) {
  const std::string memory = seen.new_memory_ratio
                                 ? fmt::format("; {} of its time on a CPU is for new memory",
                                               Share(*seen.new_memory_ratio))
                                 : "";
  return RankWord(seen) + LimitOfOne(seen) + memory;
}

// " Of them pid 4321 works 96.2 % of its time, the others 15.0 %."; empty where they work alike.
std::string SlowestText(const OutsideUnit& unit) {
  if (!unit.uneven) return "";
  return fmt::format(
      " Of them pid {} works {} of its time, the other{} {}. Taken in turn, they are as fast as "
      "the "
      "slowest.",
      unit.uneven->pid, Share(unit.uneven->busiest_ratio), unit.uneven->processes > 2 ? "s" : "",
      Share(unit.uneven->others_ratio));
}

std::string WhyLine(const Outside& seen) {
  std::string text;
  if (seen.rank && !seen.rank->by_accounts.empty()) {
    text = seen.rank->by_accounts;
  } else if (seen.rank && seen.rank->is_slowest) {
    text = fmt::format(
        "Of {} ranks pid {} waits least for the others, {} of its time; one of them waits {}.",
        seen.rank->ranks, seen.rank->pid, Share(seen.rank->wait_ratio),
        Share(seen.rank->others_wait_ratio));
  }
  for (size_t u = 0; u < seen.units.size(); ++u) {
    const OutsideUnit& each = seen.units[u];
    const bool culprit = u == seen.culprit && seen.decided;
    if (!culprit && each.role != analysis::UnitRole::kConsumer &&
        each.role != analysis::UnitRole::kProducer) {
      continue;
    }
    const std::string sentence = Capital(u == 0 ? seen.ConsumerWord() : each.name) + ": " +
                                 WhereTimeGoes(seen, u) + "." + (culprit ? SlowestText(each) : "");
    // What limits comes first.
    text = culprit ? sentence + (text.empty() ? "" : " " + text)
                   : text + (text.empty() ? "" : " ") + sentence;
  }
  if (seen.cores_busy_ratio && seen.core_budget.cores) {
    text += fmt::format(" {:.1f} of {:.1f} cores are in use{}",
                        *seen.cores_busy_ratio * *seen.core_budget.cores, *seen.core_budget.cores,
                        seen.cores_free ? "" : " by this program");
    if (seen.cores_free && seen.cores_others && *seen.cores_others > 0.1) {
      text += fmt::format(", {:.1f} of them by other programs", *seen.cores_others);
    }
    text += ".";
  }
  return text;
}

}  // namespace

ReportState StateOf(const Outside& seen) {
  if (!seen.decided) return ReportState::kUndecided;
  if (seen.findings[0].limit != OutsideLimit::kConsumer) return ReportState::kLimited;
  return analysis::MayLoad(seen) ? ReportState::kConsumerBoundOrLoading
                                 : ReportState::kConsumerBound;
}

void AddOutsideFacts(const RunView& run, const Outside& seen, Section* section) {
  const bool ebpf = seen.knowledge >= OutsideKnowledge::kWakers;
  Quantity stall = Quantity::Of(seen.stall_ratio, headrace::Unit::kRatio,
                                ebpf ? Source::kEbpf : Source::kEstimate);
  if (seen.stall_interval) {
    stall = stall.WithInterval(seen.stall_interval->low, seen.stall_interval->high);
  }
  const analysis::OutsideFinding& first = seen.findings[0];
  section->facts = {{"state", ReportStateName(StateOf(seen))},
                    {"basis", "outside"},
                    {"basis_text", Basis(seen)},
                    {"stall_ratio", stall},
                    {"cores_used_by_others", Number(seen.cores_others, headrace::Unit::kCores,
                                                    "the machine's load was not recorded")},
                    {"limit.name", LimitWord(seen, first.limit)},
                    {"limit.kind", OutsideLimitName(first.limit)},
                    {"limit.group", seen.units[seen.culprit].name},
                    {"limit.pids", Pids(seen, seen.units[seen.culprit])},
                    {"limit.probability",
                     Quantity::Of(first.probability, headrace::Unit::kRatio, Source::kEstimate)}};
  const bool by_functions = seen.IsByFunctions();
  const std::optional<double> waits = WaitsForUnseen(seen);
  const bool is_graded = by_functions || waits || seen.HasProducers();
  if (is_graded && IsAboutWaits(seen)) {  // else line 1 has none either
    const double ratio = by_functions             ? seen.InLoader().value_or(seen.stall_ratio)
                         : waits                  ? *waits
                         : seen.is_step_elsewhere ? 0
                                                  : seen.stall_ratio;
    section->facts.push_back({"grade", StallGradeKey(ratio)});
  }
  const std::string advice = seen.decided || IsOneThread(seen) ? Advice(run, seen) : "";
  if (!advice.empty()) section->facts.push_back({"advice", advice});
  if (seen.decided) {
    if (const auto gain = MostGain(seen)) {
      section->facts.push_back(
          {"predicted.most_gain_ratio",
           Quantity::Of(*gain - 1, headrace::Unit::kRatio, Source::kEstimate)});
    }
  } else {
    section->facts.push_back({"measure", seen.measure});
  }
  section->facts.push_back({"unknown", Unknown(seen)});
  section->tables.push_back(Findings(seen));
}

void AddOutsidePage(const RunView& run, const Outside& seen, FirstPage* page) {
  AddOutsideStall(seen, page);
  page->picture = DrawUnits(seen);
  page->picture_shares = "time without waits for its neighbours";
  page->lines.push_back({"limit", LimitLine(seen)});
  page->lines.push_back({"why", WhyLine(seen)});
  if (seen.accelerators) {
    page->lines.push_back({"gpu", AcceleratorLine(*seen.accelerators, seen.ConsumerWord()) + "."});
  }
  if (seen.decided) {
    page->lines.push_back({"fix", Advice(run, seen)});
    if (seen.flavour == OutsideFlavour::kTorch && !seen.is_busy_thread &&
        seen.findings[0].limit != OutsideLimit::kConsumer &&
        seen.findings[0].limit != OutsideLimit::kOwnWork) {
      page->lines.push_back({"",
                             fmt::format("{} plan {} --emit dataloader{}", run.program,
                                         run.run.run_id, run.database_option),
                             true});
    }
    if (const auto gain = MostGain(seen)) page->lines.push_back({"next", NextLine(seen, *gain)});
  } else {
    const std::string alone = IsOneThread(seen) ? Advice(run, seen) : "";
    if (!alone.empty()) page->lines.push_back({"fix", alone});
    if (!seen.WaitsAlone()) page->lines.push_back({"check", seen.measure});
  }
  page->lines.push_back({"basis", "seen from outside: " + Basis(seen)});
  if (const std::string unknown = Unknown(seen); !unknown.empty()) {
    page->lines.push_back({"unseen", unknown});
  }
}

}  // namespace headrace::dashboards
