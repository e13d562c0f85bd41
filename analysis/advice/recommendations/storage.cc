// What lies where in storage and how it is read: R4 to R7, R13.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/advice/recommendations.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr const char* kNoReads =
    "operators of the kinds \"fetch\" and \"io\" (fetch.io), as headrace run and docs/accounts.md "
    "have them";
constexpr const char* kNoCost =
    "[source.device] in the pipeline file (ns_per_request, ns_per_byte), as headrace doctor "
    "--calibrate --folder FOLDER measures them";

// Storage time of a row, by the cost of requests and bytes.
double StorageSeconds(const Reads& reads, const ReadCost& cost) {
  return reads.requests_per_row * cost.request_s + reads.bytes_per_row * cost.byte_s;
}

// The storage's time and the wait for it, times `factor`; the CPU time of what reads, times
// `cpu_factor`.
Variant LessStorageTime(const Evidence& e, const Reads& reads, double factor,
                        double cpu_factor = 1) {
  Variant change = e.Now();
  const Demands::Operator& io = e.model().demands().operators[reads.io];
  bool is_wait_scaled = false;
  for (size_t r = 0; r < e.model().resources().size(); ++r) {
    const ResourceModel& resource = e.model().resources()[r];
    const bool used = std::any_of(
        resource.users.begin(), resource.users.end(),
        [&](const auto& user) { return user.first == reads.io || user.first == reads.fetch; });
    if (resource.kind != "device" || !used) continue;
    change.scales.push_back({Scaled::kResource, r, factor});
    // Scaling what the machine or another run counted does not shorten the waits for it.
    is_wait_scaled = !resource.counted_s;
    break;
  }
  if (!is_wait_scaled) {
    change.scales.push_back({Scaled::kAdded, reads.io, -io.blocked_s * (1 - factor), false});
  }
  if (cpu_factor != 1) {
    change.scales.push_back({Scaled::kAdded, reads.io, -io.cpu_s * (1 - cpu_factor), true});
  }
  return change;
}

Quantity PerRow(double value, headrace::Unit unit) {
  return Quantity::Of(value, unit, Source::kEstimate);
}

std::string ReadsText(const Reads& reads) {
  return fmt::format("{:.3g} requests per 1000 rows, {} each on average",
                     1000 * reads.requests_per_row, FormatBytes(reads.mean_bytes));
}

Recommendation Flatten(const Evidence& e) {
  const auto decode = e.FindKind("decode"), extract = e.FindKind("extract");
  if (!decode || !extract || e.run().operators[*extract].bytes_in_bytes <= 0) {
    return CannotSay(
        "no operator of the kind \"extract\" says which part of the decoded bytes is wanted",
        "operators of the kinds \"decode\" and \"extract\" with bytes");
  }
  const OperatorRow& row = e.run().operators[*extract];
  const double kept =
      static_cast<double>(row.bytes_out_bytes) / static_cast<double>(row.bytes_in_bytes);
  if (kept > kFlatKeeps) {
    return DoesNotFire(
        fmt::format("extract keeps {} of the bytes that are decoded: maps are flattened, or all of "
                    "them is used",
                    FormatPercent(std::min(1.0, kept))));
  }
  const PipelineModel* model = &e.model();
  const auto decompress = e.FindKind("decompress");
  const auto fetch = e.FindKind("fetch");
  // Sure: what is not wanted is not decoded, and nothing is left to extract. Likely: it is not
  // decompressed either. At most: nor read.
  const auto change = [&](int depth) {
    Variant work = e.Now();
    std::vector<size_t> scaled = {*decode, *extract};
    if (depth > 0 && decompress) scaled.push_back(*decompress);
    if (depth > 1 && fetch) {
      for (const size_t part : e.WithParts(*fetch)) scaled.push_back(part);
    }
    for (const size_t i : scaled) work.scales.push_back({Scaled::kOperator, i, kept});
    return work;
  };
  const Outcome outcome = e.Predict(change(0), change(1), change(2));
  Recommendation result = IfWorthwhile(
      e, outcome,
      fmt::format(
          "whole maps are decoded and {} of their bytes kept: {} of {} of CPU a row go into "
          "decoding and extracting",
          FormatPercent(kept),
          FormatDuration((model->demands().operators[*decode].cpu_s +
                          model->demands().operators[*extract].cpu_s) /
                         std::max(1.0, e.rows_per_batch()) * 1e9),
          FormatDuration(model->demands().cpu_s / std::max(1.0, e.rows_per_batch()) * 1e9)),
      "write the table with flattened maps, so that only wanted features are read and decoded; "
      "look "
      "at R5 with it: features lie in many small streams then",
      e.OnTable("rewrite", "--layout flat -o NEW"));
  const std::string streams =
      "how many streams a stripe would have is not known before it is written";
  result.effects.storage_requests.then = Quantity::Unavailable(streams, headrace::Unit::kCount);
  if (e.reads()) {
    result.effects.storage_bytes.then =
        PerRow(e.reads()->bytes_per_row * kept, headrace::Unit::kBytes)
            .WithInterval(e.reads()->bytes_per_row * kept, e.reads()->bytes_per_row);
  }
  SetThen(&result.effects.reader_cpu, e.CpuOf(change(1)), "");
  result.effects.reader_memory.then = Quantity::Unavailable(
      "what whole maps hold in memory was not counted", headrace::Unit::kBytes);
  return result;
}

// Bytes over which reads are joined; empty where it is chosen by what a request costs, or not
// recorded.
std::optional<double> GapOf(const RunRow& run) {
  return BytesSettingOf(run, "source.coalesce_gap");
}

// Bytes of the longest read that requests are joined to; endless where it is not recorded.
double LongestRead(const RunRow& run) {
  return BytesSettingOf(run, "source.coalesce_max").value_or(HUGE_VAL);
}

// Bytes that a request is worth, to people; never "0 B".
std::string EvenText(double even) {
  return even < 1
             ? std::string("a request costs the storage nothing besides its bytes")
             : fmt::format("a request costs the storage as much as {} of data", FormatBytes(even));
}

// What reads are joined over is far more than a request is worth, and much of what is read is so.
bool GapTooLarge(const Evidence& e) {
  if (!e.reads() || !e.read_cost()) return false;
  const std::optional<double> gap = GapOf(e.run().run);
  return gap && *gap > kGapTooLong * e.read_cost()->request_s / e.read_cost()->byte_s &&
         e.reads()->over_read_ratio >= kMuchOverRead;
}

// What storage time a smaller gap saves, of `now`: holes longer than `even` are left out, a request
// for each. Over-read bytes lie in holes up to `gap` long whose lengths nothing counts.
struct GapSaving {
  double least = 0, likely = 0, most = 0;  // seconds a row
  double likely_requests = 0;              // more, a row
  double likely_bytes = 0;                 // less, a row
};
GapSaving SavingOfSmallerGap(const Reads& reads, const ReadCost& cost, double even, double gap,
                             bool aligned) {
  const double over = reads.over_read_ratio * reads.bytes_per_row;
  GapSaving saving;
  // At most all of them are as long as the gap.
  saving.most = over * (cost.byte_s - cost.request_s / gap);
  // Likely as many bytes lie in holes of each length: those above `even` are left out.
  const double share = 1 - even / gap;
  saving.likely_bytes = over * share;
  saving.likely_requests = even > 0 ? over / gap * std::log(gap / even) : 0;
  saving.likely = saving.likely_bytes * cost.byte_s - saving.likely_requests * cost.request_s;
  // Where a request costs nothing, every hole goes; else all may be shorter than what one costs.
  // Read past the page cache, the ends of aligned blocks stay.
  saving.least = even > 0 || aligned ? 0 : saving.likely;
  if (even <= 0) saving.likely_requests = over / gap;  // at least
  return saving;
}

Recommendation SmallerGap(const Evidence& e) {
  const Reads& reads = *e.reads();
  const ReadCost& cost = *e.read_cost();
  const double even = cost.request_s / cost.byte_s, gap = *GapOf(e.run().run);
  const double now = StorageSeconds(reads, cost);
  const bool aligned = SettingOf(e.run().run, "source.direct") == "true";
  const GapSaving saving = SavingOfSmallerGap(reads, cost, even, gap, aligned);
  const auto with = [&](double saved) {
    return LessStorageTime(e, reads, 1 - std::clamp(saved / now, 0.0, 1.0));
  };
  const std::string setting =
      even < 1024 ? fmt::format("{:.0f}", even) : fmt::format("{:.0f}KiB", std::floor(even / 1024));
  Outcome outcome = e.Predict(with(saving.least), with(saving.likely), with(saving.most));
  outcome.between = saving.least < saving.most;
  Recommendation result = IfWorthwhile(
      e, outcome,
      fmt::format("{}; reads are joined over holes up to {}, and {} of what is read is over-read; "
                  "{} ({})",
                  ReadsText(reads), FormatBytes(gap), FormatPercent(reads.over_read_ratio),
                  EvenText(even), cost.told_by),
      fmt::format("join reads over shorter holes: source.coalesce_gap = \"{}\"", setting),
      e.RunWith("source.coalesce_gap=" + setting));
  const double over = reads.over_read_ratio * reads.bytes_per_row;
  result.effects.storage_bytes.then =
      PerRow(reads.bytes_per_row - saving.likely_bytes, headrace::Unit::kBytes)
          .WithInterval(reads.bytes_per_row - over, reads.bytes_per_row);
  result.effects.storage_requests.then = Quantity::Unavailable(
      fmt::format("about {:.2g} more, by how long the holes are", 1000 * saving.likely_requests),
      headrace::Unit::kCount);
  return result;
}

// What a request costs is not known: all of the storage's time may go with its requests, and fewer
// take as much less; or with its bytes, and what lies between is read for nothing.
Recommendation TryFewerReads(const Evidence& e) {
  // The gap to try: judgement, as what a request costs is just what is not known.
  constexpr double kGapBytes = 1048576;
  constexpr const char* kGap = "1MiB";
  const Reads& reads = *e.reads();
  const std::optional<double> gap = GapOf(e.run().run);
  if (!ManySmallReads(reads) || !gap || *gap >= kGapBytes) {
    return CannotSay(ReadsText(reads) + "; what a request costs this storage is not known",
                     kNoCost);
  }
  const double stripe_bytes = reads.bytes_per_row * std::max(1.0, reads.stripe_rows);
  const double fewest = std::max(1.0, std::ceil(stripe_bytes / LongestRead(e.run().run)));
  const double kept = std::min(1.0, fewest / reads.requests_per_stripe);
  // At least nothing, and where bytes cost all, less: what lies between is read, too.
  const ByteBorder* stored = FindBorder(e.bytes(), "stored");
  double read_over = 1;
  if (stored != nullptr && stored->per_row.available() && reads.bytes_per_row > 0) {
    read_over = std::max(1.0, stored->per_row.value() / reads.bytes_per_row);
  }
  Outcome outcome =
      e.Predict(LessStorageTime(e, reads, read_over), LessStorageTime(e, reads, (1 + kept) / 2),
                // At most the CPU time of requests goes, too.
                LessStorageTime(e, reads, kept, kept));
  outcome.between = true;
  outcome.gain_interval.low = std::min(outcome.gain_interval.low, 0.0);
  return IfWorthwhile(
      e, outcome,
      fmt::format("{}; what a request costs this storage is not known: if that is most of a read, "
                  "fewer and longer reads gain much, else they may lose, as what lies between is "
                  "read, too",
                  ReadsText(reads)),
      fmt::format("make fewer and longer reads: source.coalesce_gap = \"{}\"", kGap),
      e.CompareWith("source.coalesce_gap", SettingOf(e.run().run, "source.coalesce_gap"), kGap));
}

// What joining reads saves.
struct Saving {
  double fewest_requests = 1;                  // of a stripe
  double least_saved_s = 0, most_saved_s = 0;  // of the storage's time, a row
};

// At most all requests of a stripe become one without a byte more. At least what reading stripes
// whole gains, where their bytes are known (`stored`). `now`: seconds of the storage a row takes.
Saving SavingOfJoining(const Evidence& e, const Reads& reads, const ReadCost& cost, double now,
                       const ByteBorder* stored) {
  Saving saving;
  const double stripe_rows = std::max(1.0, reads.stripe_rows);
  const double longest_read = LongestRead(e.run().run);
  saving.fewest_requests =
      std::max(1.0, std::ceil(reads.bytes_per_row * stripe_rows / longest_read));
  saving.most_saved_s = std::max(0.0, reads.requests_per_stripe - saving.fewest_requests) *
                        cost.request_s / stripe_rows;
  if (stored != nullptr && stored->per_row.available()) {
    const double whole = stored->per_row.value();
    const double requests = std::max(1.0, std::ceil(whole * stripe_rows / longest_read));
    saving.least_saved_s =
        std::clamp(now - requests / stripe_rows * cost.request_s - whole * cost.byte_s, 0.0,
                   saving.most_saved_s);
  }
  return saving;
}

Recommendation Coalesce(const Evidence& e) {
  if (!e.reads()) return CannotSay("nothing counts requests to the storage", kNoReads);
  const Reads& reads = *e.reads();
  if (GapTooLarge(e)) return SmallerGap(e);
  if (reads.requests_per_stripe < kRequestsToJoin) {
    return DoesNotFire(fmt::format("{:.2g} requests a stripe: there is nothing to join",
                                   reads.requests_per_stripe));
  }
  if (SettingOf(e.run().run, "source.coalesce_gap") == "auto") {
    return DoesNotFire(ReadsText(reads) + ", joined by what a request costs (coalesce_gap = auto)");
  }
  if (!e.read_cost()) return TryFewerReads(e);
  const ReadCost& cost = *e.read_cost();
  const double even = cost.request_s / cost.byte_s;
  if (!GapOf(e.run().run)) {
    return CannotSay(ReadsText(reads) + "; how far reads are joined was not recorded",
                     "a run by this version");
  }
  const double gap = *GapOf(e.run().run);
  const std::string evidence = fmt::format("{}; {}, and reads are joined over holes up to {}",
                                           ReadsText(reads), EvenText(even), FormatBytes(gap));
  if (gap > kGapTooLong * even) {
    return DoesNotFire(fmt::format("{}: more than needed, but only {} of what is read is over-read",
                                   evidence, FormatPercent(reads.over_read_ratio)));
  }
  if (gap >= kGapAboutRight * even) return DoesNotFire(evidence + ": that is about right");
  const double now = StorageSeconds(reads, cost);
  const ByteBorder* stored = FindBorder(e.bytes(), "stored");
  const Saving saving = SavingOfJoining(e, reads, cost, now, stored);
  // With the holes not known the middle is taken.
  const Outcome outcome = e.Predict(
      LessStorageTime(e, reads, 1 - saving.least_saved_s / now),
      LessStorageTime(e, reads, 1 - (saving.least_saved_s + saving.most_saved_s) / 2 / now),
      LessStorageTime(e, reads, 1 - saving.most_saved_s / now));
  Recommendation result = IfWorthwhile(
      e, outcome,
      fmt::format("{}; requests take {} of the storage's time ({})", evidence,
                  FormatPercent(reads.requests_per_row * cost.request_s / now), cost.told_by),
      fmt::format("join reads over holes up to {}: source.coalesce_gap = \"auto\"",
                  FormatBytes(even)),
      e.RunWith("source.coalesce_gap=auto"));
  const double least = saving.fewest_requests / std::max(1.0, reads.stripe_rows);
  result.effects.storage_requests.then =
      PerRow((least + reads.requests_per_row) / 2, headrace::Unit::kCount)
          .WithInterval(least, reads.requests_per_row);
  double holes = std::max(0.0, reads.requests_per_row - least) * even;
  if (stored != nullptr && stored->per_row.available()) {
    holes = std::min(holes, std::max(0.0, stored->per_row.value() - reads.bytes_per_row));
  }
  result.effects.storage_bytes.then =
      PerRow(reads.bytes_per_row + holes / 2, headrace::Unit::kBytes)
          .WithInterval(reads.bytes_per_row, reads.bytes_per_row + holes);
  return result;
}

Recommendation Reorder(const Evidence& e) {
  if (!e.reads())
    return CannotSay("no counter says what is read besides the wanted bytes", kNoReads);
  const Reads& reads = *e.reads();
  const std::string evidence = fmt::format(
      "{} of the bytes read are over-read ({} of {} a row)", FormatPercent(reads.over_read_ratio),
      FormatBytes(reads.over_read_ratio * reads.bytes_per_row), FormatBytes(reads.bytes_per_row));
  if (reads.over_read_ratio < kMuchOverRead) return DoesNotFire(evidence);
  if (GapTooLarge(e)) {
    return DoesNotFire(evidence + ": a smaller gap leaves it out without writing the table (R5)");
  }
  // The bytes' part of the storage's time; all of it where requests cost nothing that is known.
  double byte_share = 1;
  if (e.read_cost()) {
    byte_share =
        reads.bytes_per_row * e.read_cost()->byte_s / StorageSeconds(reads, *e.read_cost());
  }
  const double saved = reads.over_read_ratio * byte_share;
  const Outcome outcome = e.Predict(e.Now(), LessStorageTime(e, reads, 1 - saved / 2),
                                    LessStorageTime(e, reads, 1 - saved));
  Recommendation result = IfWorthwhile(
      e, outcome, evidence,
      "write the table with the features that jobs read next to each other, most read first",
      e.OnTable("rewrite", "--order popularity --coread LOG -o NEW"));
  result.only_if =
      "a smaller source.coalesce_gap does not do it, and jobs go on reading the same features: one "
      "run does not show how stable that is, and the rewrite costs a pass over the table";
  const double wanted = reads.bytes_per_row * (1 - reads.over_read_ratio);
  result.effects.storage_bytes.then =
      PerRow((wanted + reads.bytes_per_row) / 2, headrace::Unit::kBytes)
          .WithInterval(wanted, reads.bytes_per_row);
  return result;
}

Recommendation LargerStripes(const Evidence& e) {
  if (!e.reads()) return CannotSay("nothing counts requests to the storage", kNoReads);
  const Reads& reads = *e.reads();
  if (!e.read_cost()) {
    return CannotSay(fmt::format("stripes of {:.0f} rows, {}; what a request costs is not known",
                                 reads.stripe_rows, ReadsText(reads)),
                     kNoCost);
  }
  const ReadCost& cost = *e.read_cost();
  const double even = cost.request_s / cost.byte_s;
  const std::string evidence = fmt::format("stripes of {:.0f} rows, {}; {}", reads.stripe_rows,
                                           ReadsText(reads), EvenText(even));
  if (reads.mean_bytes >= even) return DoesNotFire(evidence);
  const double now = StorageSeconds(reads, cost);
  const double saved = (1 - 1 / kLargerStripes) * reads.requests_per_row * cost.request_s;
  // Longer streams may take more than a request each: from nothing to all of it.
  const Outcome outcome = e.Predict(e.Now(), LessStorageTime(e, reads, 1 - saved / 2 / now),
                                    LessStorageTime(e, reads, 1 - saved / now));
  Recommendation result = IfWorthwhile(
      e, outcome, evidence,
      fmt::format("write stripes of {:.0f} rows: the same streams, {:.0f} times as long",
                  kLargerStripes * reads.stripe_rows, kLargerStripes),
      e.OnTable("rewrite",
                fmt::format("--stripe-rows {:.0f} -o NEW", kLargerStripes * reads.stripe_rows)));
  result.effects.storage_requests.then =
      PerRow(reads.requests_per_row / kLargerStripes, headrace::Unit::kCount);
  // Whatever holds a stripe holds so much more.
  const double stripes = e.model().operators()[reads.fetch].visit_ratio;
  double held = 0;
  bool known = true;
  for (size_t s = 0; s < e.model().stages().size(); ++s) {
    const StageModel& stage = e.model().stages()[s];
    if (stage.visit_ratio > 1.2 * stripes) continue;
    known = known && stage.element_bytes.has_value();
    held += stage.element_bytes.value_or(0) *
            (e.model().current().queue_capacity[s] + stage.parallelism);
  }
  Effect& memory = result.effects.reader_memory;
  if (memory.now.available() && known) {
    memory.then = PerRow(memory.now.value() + (kLargerStripes - 1) * held, headrace::Unit::kBytes);
  } else {
    memory.then = Quantity::Unavailable("stripes have no recorded size", headrace::Unit::kBytes);
  }
  return result;
}

Recommendation FastTier(const Evidence& e) {
  if (!e.reads()) return CannotSay("nothing counts reads from the storage", kNoReads);
  if (const auto hit = e.FindName("tier.hit")) {
    const auto miss = e.FindName("tier.miss");
    const double hits = static_cast<double>(e.run().operators[*hit].bytes_out_bytes);
    const double misses = miss ? static_cast<double>(e.run().operators[*miss].bytes_out_bytes) : 0;
    return DoesNotFire(fmt::format("there is a tier already; {} of the bytes came from it",
                                   FormatPercent(hits + misses > 0 ? hits / (hits + misses) : 0)));
  }
  const std::optional<int> epochs = EpochsOf(e.run().run);
  if (!epochs) return CannotSay("how often bytes are read again is not known", "a pipeline file");
  const ByteBorder* stored = FindBorder(e.bytes(), "stored");
  const ByteBorder* selected = FindBorder(e.bytes(), "selected");
  std::string evidence = "the table is read again and again";
  if (stored != nullptr && stored->per_row.available() && selected != nullptr &&
      selected->per_row.available() && stored->per_row.value() > 0) {
    const double hot = selected->per_row.value() / stored->per_row.value();
    evidence = fmt::format("this job's traffic goes to {} of the stored bytes ({} of {} a row)",
                           FormatPercent(hot), FormatBytes(selected->per_row.value()),
                           FormatBytes(stored->per_row.value()));
    if (hot > kHotBytes) return DoesNotFire(evidence);
  } else if (*epochs == 1) {
    return CannotSay(
        "this job reads each byte once; which bytes many jobs read is not known from one run",
        "a log of what jobs read (docs/storage.md, source.tier.popularity)");
  }
  if (*epochs == 1) {
    return CannotSay(evidence + ", each once; whether other jobs read the same is not known",
                     "a log of what jobs read (docs/storage.md, source.tier.popularity)");
  }
  // From the second epoch on nothing is asked of the storage; what the tier itself costs is not
  // known, so that half of it is the least.
  const double misses = *epochs == 0 ? 0.0 : 1.0 / *epochs;
  const Outcome outcome = e.Predict(LessStorageTime(e, *e.reads(), (1 + misses) / 2),
                                    LessStorageTime(e, *e.reads(), (1 + 3 * misses) / 4),
                                    LessStorageTime(e, *e.reads(), misses));
  Recommendation result =
      IfWorthwhile(e, outcome,
                   fmt::format("{}; {} epoch{}", evidence,
                               *epochs == 0 ? std::string("endless") : std::to_string(*epochs),
                               *epochs == 1 ? "" : "s"),
                   "keep the wanted streams on a fast disk or in memory: [source.tier]",
                   e.RunWith("source.tier.budget=SIZE --set source.tier.folder=FOLDER"));
  result.only_if =
      "the wanted streams of the whole table fit the tier; in place of a cache (R12), not with it";
  result.effects.storage_bytes.then =
      PerRow(e.reads()->bytes_per_row * misses, headrace::Unit::kBytes);
  result.effects.storage_requests.then =
      PerRow(e.reads()->requests_per_row * misses, headrace::Unit::kCount);
  return result;
}

HR_RECOMMENDATION(
    4, "flatten features",
    "reader 2.0x, storage 0.03x until reads are joined (ISCA'22 table 12, secondary source)",
    Flatten);
HR_RECOMMENDATION(
    5, "coalesce reads",
    "storage from 0.03x to 0.99x of the baseline (ISCA'22 table 12, secondary source)", Coalesce);
HR_RECOMMENDATION(6, "reorder features by popularity",
                  "storage 1.84x of the baseline, from 0.99x (ISCA'22 table 12, secondary source)",
                  Reorder);
HR_RECOMMENDATION(7, "larger stripes", "storage +31 % (ISCA'22 table 12, secondary source)",
                  LargerStripes);
HR_RECOMMENDATION(13, "a fast tier for hot bytes",
                  "80 % of the traffic on 18 to 39 % of the bytes (ISCA'22, secondary source)",
                  FastTier);

}  // namespace
}  // namespace headrace::analysis
