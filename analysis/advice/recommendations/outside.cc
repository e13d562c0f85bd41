#include "analysis/advice/recommendations/outside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// The machine's stall time for this cause, as a share of the time that was measured; empty: not
// measured.
Real Pressure(const RunView& run, const std::string& cause) {
  double ns = static_cast<double>(run.run.duration_ns);
  Real sum;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "pressure_window_ns" && row.last_value) ns = std::max(ns, *row.last_value);
    if (row.metric != "pressure_ns" || row.cause != cause || row.process_id || !row.value) continue;
    if (row.subject.empty()) sum = sum.value_or(0) + *row.value;
  }
  if (!sum || ns <= 0) return std::nullopt;
  return std::min(1.0, *sum / ns);
}

Real Sum(const RunView& run, const std::string& metric, const std::string& cause = "") {
  Real sum;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != metric || !row.value || (!cause.empty() && row.cause != cause)) continue;
    if (metric.starts_with("process_") && !row.process_id) continue;  // all of them together
    sum = sum.value_or(0) + *row.value;
  }
  return sum;
}

struct Seen {
  const RunView& run;
  const Outside& outside;
  OutsideLimit limit = OutsideLimit::kNone;  // kNone: undecided
  const OutsideUnit* producer = nullptr;     // that does most of the work; null: none
  double stall = 0;
  Real free_cores = std::nullopt;

  std::string who() const { return outside.ConsumerWord(); }
  // "at most 1.8 times the rate": the consumer's own, without a wait.
  std::string MostGain() const {
    if (stall <= kHardlyWaits) return fmt::format("nothing to gain: {} almost never waits", who());
    if (stall >= kAlwaysWaits) return who() + "'s own rate, which its waits hide";
    return fmt::format("{:.1f} times the rate at most, then {} is the limit", 1 / (1 - stall),
                       who());
  }
  bool consumer_bound() const { return limit == OutsideLimit::kConsumer; }
};

Recommendation Fires(std::string why, std::string act) {
  Recommendation result;
  result.advice = Advice::kFires;
  result.why = std::move(why);
  result.act = std::move(act);
  return result;
}

std::string Waited(const Seen& seen) {
  return fmt::format("{} waits {} of the time", seen.who(), FormatPercent(seen.stall));
}

// R1
Recommendation Workers(const Seen& seen) {
  if (seen.consumer_bound()) return DoesNotFire(Waited(seen) + ": more workers would wait too");
  if (seen.limit == OutsideLimit::kCores && seen.outside.GetsAnotherShare()) {
    return Fires(fmt::format("other programs use {:.1f} cores, and one more of these takes a share",
                             *seen.outside.cores_others),
                 "one more worker");
  }
  if (seen.limit == OutsideLimit::kCores || (seen.free_cores && *seen.free_cores < kNoCoreFree)) {
    return DoesNotFire("no core is left for more of them: " +
                       (seen.free_cores ? fmt::format("{:.1f} are free", *seen.free_cores)
                                        : std::string("how many are free is not known")));
  }
  if (seen.limit != OutsideLimit::kProducers || seen.producer == nullptr) {
    return DoesNotFire(fmt::format("the number of workers is not the limit: {}",
                                   seen.outside.LimitWord(seen.limit)));
  }
  if (seen.outside.is_busy_thread) {
    return DoesNotFire(
        fmt::format("one thread, {}, limits: more of the others do not share its work",
                    seen.outside.python_threads->busy_thread));
  }
  if (seen.producer->uneven) {
    return DoesNotFire(
        fmt::format("one of {} works {} of its time and the others {}: more of them "
                    "do not share its work",
                    seen.producer->name, FormatPercent(seen.producer->uneven->busiest_ratio),
                    FormatPercent(seen.producer->uneven->others_ratio)));
  }
  if (const std::string why = WhyMoreDoNotHelp(seen.outside, seen.producer->name); !why.empty()) {
    return DoesNotFire(why);
  }
  if (!seen.free_cores) {
    return CannotSay("how many cores are free is not known", "record with the probe cpu");
  }
  const double now = std::max(1.0, std::round(seen.producer->threads_count));
  const MoreProducers more =
      RoomForMore(now, seen.stall, seen.producer->shares.on_cpu, *seen.free_cores);
  if (more.count <= now) {
    return DoesNotFire(fmt::format("{:.1f} free cores have no room for one more of {}",
                                   *seen.free_cores, seen.producer->name));
  }
  return Fires(
      fmt::format("{}; of the time of {}, {} is work, and {:.1f} cores are free: {:.1f} times the "
                  "rate at most",
                  Waited(seen), seen.producer->name, FormatPercent(seen.producer->shares.work()),
                  *seen.free_cores, more.at_most),
      fmt::format(
          "{}: {:.0f} -> {:.0f}",
          seen.outside.flavour == OutsideFlavour::kTorch ? "num_workers" : seen.producer->name, now,
          more.count));
}

// R3
Recommendation Prefetch(const Seen& seen) {
  if (seen.producer == nullptr) return DoesNotFire("one thread does everything: nothing is ahead");
  if (seen.outside.knowledge < OutsideKnowledge::kCounts) {
    return CannotSay("who ended the waits is not known", "record with eBPF (level 3)");
  }
  const double idle = seen.producer->shares.wait_consumer;
  if (seen.stall < kSmallStall) return DoesNotFire(Waited(seen) + ": what is ahead is enough");
  if (idle < kProducerHasTime) {
    return DoesNotFire(
        fmt::format("of the time of {}, only {} is waiting for {}: no time to work ahead",
                    seen.producer->name, FormatPercent(idle), seen.who()));
  }
  return Fires(
      fmt::format("{}, and of the time of {}, {} is waiting for it: they wait for each other in "
                  "turn, as when a queue is short or work comes in bursts; {}",
                  Waited(seen), seen.producer->name, FormatPercent(idle), seen.MostGain()),
      seen.outside.flavour == OutsideFlavour::kTorch
          ? "raise prefetch_factor"
          : "let more elements wait between them (a longer queue)");
}

// R5
Recommendation Coalesce(const Seen& seen) {
  const Real requests = Sum(seen.run, "block_requests_count", "read");
  const Real bytes = Sum(seen.run, "block_bytes", "read");
  if (seen.limit != OutsideLimit::kStorage) return DoesNotFire("storage is not the limit");
  if (!requests || !bytes || *requests <= 0) {
    return CannotSay("requests to devices were not counted", "record with eBPF (level 3)");
  }
  const double size = *bytes / *requests;
  const std::string seen_reads =
      fmt::format("storage limits, and a read of a device is {} long", FormatBytes(size));
  if (size >= kSmallDeviceRead) return DoesNotFire(seen_reads + ": joining reads gains little");
  return Fires(
      fmt::format("{}; {}", seen_reads, seen.MostGain()),
      "read more with each request: larger blocks, records packed into larger files, reads "
      "in the order of the file");
}

// R10
Recommendation SmallBatches(const Seen& seen) {
  const Real pressed = Pressure(seen.run, "memory some");
  if (!pressed)
    return CannotSay("memory pressure was not recorded", "record with the probe pressure");
  const std::string text =
      fmt::format("tasks waited for memory {} of the time", FormatPercent(*pressed));
  if (*pressed < kPressed) return DoesNotFire(text);
  return Fires(text + ": what the workers hold does not fit",
               "fewer elements ahead in each worker, smaller batches in workers that are joined "
               "later, or fewer workers");
}

// R12
Recommendation Cache(const Seen& seen) {
  const Real device = Sum(seen.run, "process_read_bytes");
  const Real asked = Sum(seen.run, "process_read_call_bytes");
  if (seen.limit != OutsideLimit::kStorage) {
    return DoesNotFire(
        device && asked && *asked > 0
            ? fmt::format("storage is not the limit: devices delivered {} for {} that was read",
                          FormatBytes(*device), FormatBytes(*asked))
            : std::string("storage is not the limit"));
  }
  return CannotSay(
      "storage limits; how often the same data is read is not known from outside",
      "instrumentation with epochs (docs/accounts.md), or two epochs recorded one by one");
}

// R17
Recommendation Place(const Seen& seen) {
  if (seen.limit != OutsideLimit::kCores) return DoesNotFire("CPU cores are not the limit");
  // Other programs' use of the cores that this run may use. If these are only some of the machine's
  // cores, the others may run on the rest, so it is not known.
  const Real others = seen.outside.cores_free ? seen.outside.cores_others : std::nullopt;
  return Fires(
      fmt::format("CPU cores are the limit: {} by this program, {} by other programs",
                  seen.outside.cores_used ? fmt::format("{:.1f} in use", *seen.outside.cores_used)
                                          : std::string("an unknown part in use"),
                  others ? fmt::format("{:.1f}", *others) : std::string("an unknown part")) +
          "; " + seen.MostGain(),
      others && *others > 1 ? "keep other programs off these cores, or read elsewhere"
                            : "read and prepare on another machine, and send the batches");
}

// R21
Recommendation Hardware(const Seen& seen) {
  const Real throttled = Sum(seen.run, "cgroup_throttled_ns");
  const double seconds = static_cast<double>(seen.run.run.duration_ns) * 1e-9;
  if (throttled && seconds > 0 && *throttled * 1e-9 > kPressed * seconds) {
    return Fires(fmt::format("the control group's CPU quota stopped it for {} in {}",
                             FormatDuration(*throttled), FormatDuration(seconds * 1e9)),
                 "a larger CPU quota (cpu.max), or fewer threads than it allows");
  }
  const Real memory = Pressure(seen.run, "memory full");
  if (memory && *memory > kPressed) {
    return Fires(
        fmt::format("all tasks together waited for memory {} of the time", FormatPercent(*memory)),
        "more memory, or fewer workers");
  }
  if (seen.limit == OutsideLimit::kCores) {
    return Fires("CPU cores are the limit; " + seen.MostGain(), "more cores");
  }
  if (seen.limit == OutsideLimit::kStorage) {
    const Real io = Pressure(seen.run, "io some");
    return Fires(
        fmt::format(
            "storage limits{}; {}",
            io ? fmt::format(", and tasks waited for it {} of the time", FormatPercent(*io)) : "",
            seen.MostGain()),
        "data on a faster device");
  }
  if (seen.limit == OutsideLimit::kNetwork) {
    return Fires("the network, or the server it leads to, is the limit; " + seen.MostGain(),
                 "a copy of the data nearby, or a faster link");
  }
  return DoesNotFire(
      fmt::format("the limit is not hardware: {}", seen.outside.LimitWord(seen.limit)));
}

// R22
Recommendation ModelBound(const Seen& seen) {
  if (seen.consumer_bound() && MayUnpickle(seen.outside)) {
    return CannotSay("its thread trains, or samples and unpacks batches",
                     "'headrace profile -- COMMAND' with its import hook, or pip install py-spy");
  }
  if (seen.consumer_bound() && MayLoad(seen.outside)) {
    return CannotSay("its thread trains, or does part of the loading",
                     "instrument it (headrace/account.h), or look at its functions (stacks)");
  }
  if (seen.consumer_bound() && seen.stall < kSmallStall) {
    return Fires(Waited(seen) + ": the loading keeps up", "leave the loading as it is");
  }
  return DoesNotFire(fmt::format("{}; {}", Waited(seen), seen.outside.LimitWord(seen.limit)));
}

// R23
Recommendation FewerWorkers(const Seen& seen) {
  if (!seen.consumer_bound() || seen.stall >= kSmallStall) {
    return DoesNotFire(Waited(seen) + ": none can be removed yet");
  }
  if (seen.producer == nullptr)
    return DoesNotFire(fmt::format("no other thread feeds {}", seen.who()));
  const double now = std::round(seen.producer->threads_count);
  const double idle = seen.producer->shares.wait_consumer;
  const double enough = std::max(1.0, std::ceil(now * (1 - idle)));
  const std::string why = fmt::format("of the time of {}, {} is waiting for {}",
                                      seen.producer->name, FormatPercent(idle), seen.who());
  if (now < 2 || enough >= now) return DoesNotFire(why);
  return Fires(why + fmt::format(": {:.0f} would do", enough),
               fmt::format("{}: {:.0f} -> {:.0f}; it saves their memory",
                           seen.outside.flavour == OutsideFlavour::kTorch ? "num_workers"
                                                                          : seen.producer->name,
                           now, enough));
}

Recommendation Missing(int number) {
  const char* const accounts =
      "instrumentation: headrace/account.h or the Python wrapper (docs/accounts.md)";
  switch (number) {
    case 2:
      return CannotSay("which stages there are is not known from outside; R1 is of workers",
                       accounts);
    case 4:
    case 6:
    case 7:
      return CannotSay("what is read besides the wanted bytes is not known from outside",
                       fmt::format("{} of the kinds fetch, decode and extract", accounts));
    case 11:
      return CannotSay("nothing compared rows", accounts);
    case 13:
      return CannotSay("which bytes are read how often is not known from outside", accounts);
    case 18:
      return CannotSay("whether batches leave in order is not known from outside", accounts);
    case 19:
      return CannotSay("the program has no pipeline file to compare by", accounts);
    default:
      return CannotSay("which operator takes which time is not known from outside", accounts);
  }
}

Recommendation Judge(const Seen& seen, int number) {
  switch (number) {
    case 1:
      return Workers(seen);
    case 3:
      return Prefetch(seen);
    case 5:
      return Coalesce(seen);
    case 10:
      return SmallBatches(seen);
    case 12:
      return Cache(seen);
    case 17:
      return Place(seen);
    case 21:
      return Hardware(seen);
    case 22:
      return ModelBound(seen);
    case 23:
      return FewerWorkers(seen);
    default:
      return Missing(number);
  }
}

}  // namespace

std::vector<Recommendation> RecommendFromOutside(const RunView& run, const Outside& outside) {
  std::vector<Recommendation> all;
  if (!outside.withheld.empty() || outside.findings.empty() || outside.units.empty()) return all;
  Seen seen{run, outside};
  if (outside.decided) seen.limit = outside.findings[0].limit;
  seen.stall = outside.stall_ratio;
  for (const OutsideUnit& unit : outside.units) {
    if (unit.role != UnitRole::kProducer) continue;
    if (seen.producer == nullptr || unit.shares.work() > seen.producer->shares.work()) {
      seen.producer = &unit;
    }
  }
  seen.free_cores = outside.cores_free;
  for (const auto& [id, rule] : Registry<RecommendationRule>::Global().entries()) {
    // Where nothing is decided, nothing that hangs on the limit is advised.
    Recommendation result = Judge(seen, rule.number);
    if (!outside.decided && result.advice == Advice::kDoesNotFire && rule.number != 10) {
      result = CannotSay("the limit is undecided", outside.measure);
    }
    result.id = id;
    result.title = rule.title;
    result.published = rule.published;
    all.push_back(std::move(result));
  }
  const auto number = [](const Recommendation& one) { return std::stoi(one.id.substr(1)); };
  std::stable_sort(all.begin(), all.end(), [&](const Recommendation& a, const Recommendation& b) {
    const bool fires_a = a.advice == Advice::kFires, fires_b = b.advice == Advice::kFires;
    return fires_a != fires_b ? fires_a : number(a) < number(b);
  });
  return all;
}

}  // namespace headrace::analysis
