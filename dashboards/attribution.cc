#include "dashboards/attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::AttributedTo;
using analysis::Attribution;
using analysis::AttributionRow;
using analysis::CostFigures;
using analysis::SharePart;

constexpr size_t kReasons = 3;          // named in the sentence
constexpr double kWorthNaming = 0.003;  // part of ln(rate) from which on a row is named
constexpr double kMuchUnexplained = 0.02, kMuchOfChange = 0.25;
constexpr double kNoChange = 0.005;
constexpr size_t kTextRows = 20;

// Parts of a logarithm as parts of the change in per cent, which they sum to as well.
class Points {
 public:
  explicit Points(double log_ratio)
      : each_(std::abs(log_ratio) < 1e-9 ? 1 : std::expm1(log_ratio) / log_ratio) {}
  double Of(double part) const { return part * each_; }
  Quantity Ratio(const SharePart& part) const {
    const Quantity value = Quantity::Of(Of(part.value), Unit::kRatio, Source::kEstimate);
    if (part.interval.low == part.value && part.interval.high == part.value) return value;
    return value.WithInterval(Of(part.interval.low), Of(part.interval.high), 0.95);
  }

 private:
  double each_;
};

std::string Signed(double ratio) {
  return fmt::format("{:+.{}f} %", 100 * ratio, std::abs(ratio) < 0.0995 ? 1 : 0);
}

std::string Percent(double ratio) {
  return fmt::format("{:.{}f} %", 100 * std::abs(ratio), std::abs(ratio) < 0.0995 ? 1 : 0);
}

// "12 % more", "12 % less"; from nothing it is not a matter of per cent.
std::string MoreOrLess(double a, double b, const char* more, const char* less) {
  if (a <= 0) return std::string(more) + ", from nothing";
  if (b / a >= 1000) return "over 1000 times as much";
  if (b / a > 3) return fmt::format("{:.{}f} times as much", b / a, b / a < 10 ? 1 : 0);
  return fmt::format("{} {}", Percent(b / a - 1), b > a ? more : less);
}

std::string Length(double seconds) { return FormatDuration(seconds * 1e9); }

// "uses 31 % less CPU per row", "is blocked 4.0 % longer per row"
std::string OperatorWords(const AttributionRow& row, const std::string& unit) {
  if (!row.a || !row.b) {
    const CostFigures& cost = row.a ? *row.a : *row.b;
    return fmt::format("is in {} only ({} per {})", row.a ? "A" : "B",
                       Length(cost.cpu_s + cost.blocked_s), unit);
  }
  const double cpu = row.b->cpu_s - row.a->cpu_s, blocked = row.b->blocked_s - row.a->blocked_s;
  if (std::abs(cpu) >= std::abs(blocked)) {
    if (row.a->cpu_s <= 0)
      return fmt::format("uses {} CPU per {}, in A none", Length(row.b->cpu_s), unit);
    return fmt::format("uses {} CPU per {}", MoreOrLess(row.a->cpu_s, row.b->cpu_s, "more", "less"),
                       unit);
  }
  if (row.a->blocked_s <= 0)
    return fmt::format("is blocked {} per {}, in A not at all", Length(row.b->blocked_s), unit);
  return fmt::format("is blocked {} per {}",
                     MoreOrLess(row.a->blocked_s, row.b->blocked_s, "longer", "shorter"), unit);
}

// A phrase: "decode uses 31 % less CPU per row".
std::string Words(const AttributionRow& row, const std::string& unit) {
  const std::string name = Printable(row.name);
  const double a = row.setting_a.value_or(0), b = row.setting_b.value_or(0);
  switch (row.to) {
    case AttributedTo::kOperator:
      return fmt::format("{} {}", name, OperatorWords(row, unit));
    case AttributedTo::kUnattributed:
      if (row.a && row.b && row.a->cpu_s <= 0) {
        return fmt::format("CPU time outside the operators: {} per {}, in A none",
                           Length(row.b->cpu_s), unit);
      }
      return fmt::format(
          "CPU time outside the operators: {} per {}",
          row.a && row.b ? MoreOrLess(row.a->cpu_s, row.b->cpu_s, "more", "less") : "changed",
          unit);
    case AttributedTo::kConsumer:
      return fmt::format("the trainer computes {} per {}", MoreOrLess(a, b, "longer", "shorter"),
                         unit);
    case AttributedTo::kDevice:
      if (a <= 0 || b <= 0) {
        return fmt::format("device {} was used in {} only", name, a > 0 ? "A" : "B");
      }
      return fmt::format("device {} serves {} as fast", name, fmt::format("{:.2f} times", a / b));
    case AttributedTo::kLock:
      return fmt::format("lock {} lets in {:.0f} instead of {:.0f}", name, b, a);
    case AttributedTo::kCores:
      return fmt::format("other programs leave {:.2f} cores instead of {:.2f}", b, a);
    case AttributedTo::kCoreSpeed:
      return fmt::format("all operators take {} CPU (the cores changed: load, clock, caches)",
                         MoreOrLess(b, a, "more", "less"));
    case AttributedTo::kThreads:
      return fmt::format("{} has {:.0f} thread{} instead of {:.0f}", name, b, b == 1 ? "" : "s", a);
    case AttributedTo::kQueues:
      return "queues or the order window have other lengths";
    case AttributedTo::kShape:
      if (row.setting_a && row.setting_b) {
        return fmt::format("batches of {:.0f} rows instead of {:.0f}", b, a);
      }
      return "the pipelines differ in " + name;
    case AttributedTo::kCause:
      return fmt::format("{}: {} instead of {}", name, Length(b), Length(a));
    case AttributedTo::kGroup:
    case AttributedTo::kOutsidePhase:
    case AttributedTo::kUnexplained:
      return name;
  }
  return name;
}

bool IsRest(const AttributionRow& row) {
  return row.to == AttributedTo::kUnexplained || row.to == AttributedTo::kOutsidePhase;
}

// Those that carry the change, largest first.
std::vector<const AttributionRow*> Reasons(const Attribution& attribution) {
  std::vector<const AttributionRow*> reasons;
  for (const AttributionRow& row : attribution.rows) {
    if (IsRest(row) || !row.told || std::abs(row.throughput.value) < kWorthNaming) continue;
    if (reasons.size() < kReasons) reasons.push_back(&row);
  }
  return reasons;
}

std::string FasterOrSlower(const SharePart& log_ratio) {
  const double change = std::expm1(log_ratio.value);
  if (std::abs(change) < kNoChange) return "B is as fast as A";
  if (log_ratio.interval.low < 0 && log_ratio.interval.high > 0)
    return fmt::format("B is not clearly {} ({})", change > 0 ? "faster" : "slower",
                       Signed(change));
  return fmt::format("B is {} {}", Percent(change), change > 0 ? "faster" : "slower");
}

void SayCosts(const Attribution& attribution, Section* section) {
  if (!attribution.cpu_unavailable.empty()) {
    section->sentences.push_back(
        {"COST", fmt::format("unavailable ({})", attribution.cpu_unavailable)});
    return;
  }
  const double a = attribution.total_a.cpu_s, b = attribution.total_b.cpu_s;
  if (a <= 0 || b <= 0) return;
  const Points points(std::log(b / a));
  std::vector<const AttributionRow*> rows;
  for (const AttributionRow& row : attribution.rows) {
    if (row.cpu_share && !row.within_noise) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto* x, const auto* y) {
    return std::abs(*x->cpu_share) > std::abs(*y->cpu_share);
  });
  std::string text = fmt::format("a {} costs {} of CPU time instead of {} ({})", attribution.unit,
                                 Length(b), Length(a), Signed(b / a - 1));
  size_t said = 0;
  for (const AttributionRow* row : rows) {
    const double part = points.Of(*row->cpu_share);
    if (said == kReasons || std::abs(part) < kWorthNaming) break;
    text += fmt::format("{} {} {}", said == 0 ? ":" : ",", Printable(row->name), Signed(part));
    ++said;
  }
  section->sentences.push_back({"COST", text});
}

// A cheaper operator that makes nothing faster has to be said: it is what people ask about next.
void SayIdle(const Attribution& attribution, Section* section) {
  if (attribution.total_a.cpu_s <= 0 || attribution.total_b.cpu_s <= 0) return;
  for (const AttributionRow& row : attribution.rows) {
    if (row.to != AttributedTo::kOperator || row.within_noise || !row.a || !row.b) continue;
    const double a = row.a->cpu_s + row.a->blocked_s, b = row.b->cpu_s + row.b->blocked_s;
    if (a <= 0 || b <= 0 || std::abs(row.throughput.value) >= kWorthNaming) continue;
    const bool matters = std::abs(row.cpu_share.value_or(0)) > 0.05 ||
                         std::abs(row.blocked_share.value_or(0)) > 0.05;
    if (!matters) continue;
    section->sentences.push_back(
        {"BUT", fmt::format("{} {}. That does not change the rate, because it is not the limit",
                            Printable(row.name), OperatorWords(row, attribution.unit))});
  }
}

Quantity Cost(const std::optional<CostFigures>& cost, double CostFigures::*field,
              const std::string& why) {
  if (!cost || !why.empty()) {
    return Quantity::Unavailable(why.empty() ? "a setting, or not on this side" : why,
                                 Unit::kNanoseconds);
  }
  return Quantity::Of((*cost).*field * 1e9, Unit::kNanoseconds, Source::kAccount);
}

Quantity CostChange(const AttributionRow& row, double CostFigures::*field, const std::string& why) {
  if (!row.a || !row.b || (*row.a).*field <= 0 || !why.empty()) {
    return Quantity::Unavailable(why.empty() ? "a setting, or not on both sides" : why,
                                 Unit::kRatio);
  }
  return Quantity::Of((*row.b).*field / (*row.a).*field - 1, Unit::kRatio, Source::kAccount);
}

Quantity Share(const std::optional<double>& share, double a, double b, const std::string& why) {
  if (!share || a <= 0 || b <= 0) {
    return Quantity::Unavailable(why.empty() ? "a setting" : why, Unit::kRatio);
  }
  return Quantity::Of(Points(std::log(b / a)).Of(*share), Unit::kRatio, Source::kAccount);
}

std::string RowName(const AttributionRow& row) {
  switch (row.to) {
    case AttributedTo::kThreads:
      return "threads of " + row.name;
    case AttributedTo::kDevice:
      return "device " + row.name;
    case AttributedTo::kLock:
      return "lock " + row.name;
    default:
      return row.name;
  }
}

bool IsShown(const AttributionRow& row) {
  const bool cost = row.a || row.b;
  return cost || IsRest(row) || !row.within_noise;
}

Table MakeTable(const Attribution& attribution) {
  Table table{"attribution_parts",
              "",
              {{"name", "part"},
               {"cpu_a_seconds", "CPU/" + attribution.unit + ": A"},
               {"cpu_b_seconds", "B"},
               {"cpu_change_ratio", "change"},
               {"throughput_share_ratio", "of rate change"},
               {"cpu_share_ratio", "of CPU change"},
               {"blocked_a_seconds", "blocked: A"},
               {"blocked_b_seconds", "B"},
               {"blocked_share_ratio", "of its change"},
               {"setting_a", "setting: A"},
               {"setting_b", "B"},
               {"kind", "kind"},
               {"stage", "stage"},
               {"state", "state"},
               {"throughput_share_log", "ln share"},
               {"bytes_a_bytes", "bytes in: A"},
               {"bytes_b_bytes", "B"},
               {"bytes_share_ratio", "of their change"}},
              {}};
  table.second_block = 6;
  table.text_rows = kTextRows;
  table.page_columns = 14;
  const Points points(attribution.log_ratio.value);
  const CostFigures &a = attribution.total_a, &b = attribution.total_b;
  const std::string& why = attribution.cpu_unavailable;
  const auto setting = [](const std::optional<double>& value) {
    return value ? Quantity::Of(*value, Unit::kNone, Source::kAccount)
                 : Quantity::Unavailable("no setting", Unit::kNone);
  };
  const auto bytes = [](const std::optional<CostFigures>& cost) {
    return cost ? Quantity::Of(cost->bytes, Unit::kBytes, Source::kAccount)
                : Quantity::Unavailable("a setting, or not on this side", Unit::kBytes);
  };
  for (const AttributionRow& row : attribution.rows) {
    if (!IsShown(row)) continue;
    table.rows.push_back(
        {RowName(row), Cost(row.a, &CostFigures::cpu_s, why), Cost(row.b, &CostFigures::cpu_s, why),
         CostChange(row, &CostFigures::cpu_s, why), points.Ratio(row.throughput),
         Share(row.cpu_share, a.cpu_s, b.cpu_s, why), Cost(row.a, &CostFigures::blocked_s, ""),
         Cost(row.b, &CostFigures::blocked_s, ""),
         Share(row.blocked_share, a.blocked_s, b.blocked_s, ""), setting(row.setting_a),
         setting(row.setting_b), std::string(analysis::AttributedToName(row.to)), row.stage,
         std::string(IsRest(row)                 ? ""
                     : row.within_noise          ? "within noise"
                     : row.told                  ? "told"
                     : row.throughput.value == 0 ? "no effect"
                                                 : "may be 0"),
         Quantity::Of(row.throughput.value, Unit::kNone, Source::kEstimate), bytes(row.a),
         bytes(row.b), Share(row.bytes_share, a.bytes, b.bytes, "")});
  }
  return table;
}

}  // namespace

std::string AttributionSentence(const Attribution& attribution) {
  if (!attribution.unavailable.empty()) return {};
  const std::vector<const AttributionRow*> reasons = Reasons(attribution);
  if (reasons.empty()) return {};
  const Points points(attribution.log_ratio.value);
  std::string text = "because ";
  for (size_t i = 0; i < reasons.size(); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : "; ", Words(*reasons[i], attribution.unit),
                        Signed(points.Of(reasons[i]->throughput.value)));
  }
  return text;
}

Section MakeAttributionSection(const Attribution& attribution) {
  Section section{"attribution", "What carries the change", {}, {}, {}};
  if (!attribution.unavailable.empty()) {
    section.sentences.push_back(
        {"WHY", fmt::format("unavailable ({})", Printable(attribution.unavailable))});
    section.facts.push_back({"explained_ratio", Quantity::Unavailable(attribution.unavailable)});
    return section;
  }
  const Points points(attribution.log_ratio.value);
  const double change = points.Of(attribution.log_ratio.value);
  const std::string because = AttributionSentence(attribution);
  section.sentences.push_back(
      {"WHY", fmt::format("{}{}", FasterOrSlower(attribution.log_ratio),
                          because.empty() ? ": every part changed by less than runs of one side "
                                            "differ by"
                                          : ", " + because)});
  const AttributionRow& rest = attribution.rows.back();
  const double unexplained = points.Of(rest.throughput.value);
  std::string sum = fmt::format("{} measured; the model gives {}", Signed(change),
                                Signed(points.Of(attribution.explained)));
  if (attribution.spread != 0) {
    sum += fmt::format(", {} of its error is spread over its parts",
                       Signed(points.Of(attribution.spread)));
  }
  for (const AttributionRow& row : attribution.rows) {
    if (row.to != AttributedTo::kOutsidePhase) continue;
    sum += fmt::format(", {} is of {}", Signed(points.Of(row.throughput.value)), row.name);
  }
  section.sentences.push_back(
      {"SUM", fmt::format("{}, {} is not explained", sum, Signed(unexplained))});
  if (std::abs(rest.throughput.value) >
      std::max(kMuchUnexplained, kMuchOfChange * std::abs(attribution.log_ratio.value))) {
    section.sentences.push_back({"DOUBT",
                                 "much of the change is not in the model: treat what it says of "
                                 "the rest with caution; the costs are measured"});
  }
  SayCosts(attribution, &section);
  SayIdle(attribution, &section);
  for (const std::string& note : attribution.notes) section.sentences.push_back({"NOTE", note});
  section.sentences.push_back({"HOW", attribution.method});
  section.facts = {
      {"change_ratio", points.Ratio(attribution.log_ratio)},
      {"log_ratio", Quantity::Of(attribution.log_ratio.value, Unit::kNone, Source::kAccount)},
      {"explained_ratio",
       Quantity::Of(points.Of(attribution.explained), Unit::kRatio, Source::kEstimate)},
      {"spread_ratio",
       Quantity::Of(points.Of(attribution.spread), Unit::kRatio, Source::kEstimate)},
      {"unexplained_ratio", points.Ratio(rest.throughput)},
      {"unit", attribution.unit},
      {"because", because},
      {"method", attribution.method},
      {"seed", Quantity::Of(static_cast<double>(attribution.seed), Unit::kCount, Source::kAccount)},
      {"cpu_a_seconds",
       Quantity::Of(attribution.total_a.cpu_s * 1e9, Unit::kNanoseconds, Source::kAccount)},
      {"cpu_b_seconds",
       Quantity::Of(attribution.total_b.cpu_s * 1e9, Unit::kNanoseconds, Source::kAccount)}};
  if (!attribution.cpu_unavailable.empty()) {
    for (Fact& fact : section.facts) {
      if (fact.key.starts_with("cpu_")) {
        fact.value = Quantity::Unavailable(attribution.cpu_unavailable);
      }
    }
  }
  section.tables.push_back(MakeTable(attribution));
  return section;
}

}  // namespace headrace::dashboards
