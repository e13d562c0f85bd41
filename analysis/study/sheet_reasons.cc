#include "analysis/study/sheet_reasons.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

std::string Factor(double value) {
  return value >= 100  ? fmt::format("x{:.0f}", value)
         : value >= 10 ? fmt::format("x{:.1f}", value)
                       : fmt::format("x{:.2g}", value);
}

// The reasons of one sheet's figures.
class Reasons {
 public:
  Reasons(const SheetInputs& inputs, const Sheet& sheet, const std::vector<WorkShare>& transforms)
      : in_(inputs), sheet_(sheet), transforms_(transforms) {}

  std::string Why(const std::string& key) const {
    if (key == "tensor_bytes_per_s") return WhyRate();
    if (key == "workers_per_trainer_count") return WhyWorkers();
    if (key == "stall_ratio" || key == "stall_cpu_ratio") return WhyStall();
    if (key.starts_with("io_")) return WhySizes();
    if (key == "generation_ratio") return WhyClasses();
    if (key.starts_with("duplication_")) return WhyDuplication();
    if (key.ends_with("_features")) return "kinds keep at least one feature, and counts are whole";
    return "";
  }

 private:
  std::optional<double> Here(const char* key) const {
    const SheetFigure* figure = sheet_.Find(key);
    return figure != nullptr ? figure->here.optional_value() : std::nullopt;
  }
  std::optional<double> Study(const char* key) const {
    const PublishedValue* value = FindPublished(key, in_.model);
    return value != nullptr ? std::optional<double>(value->value) : std::nullopt;
  }

  std::string WhyRate() const {
    const auto here = Here("tensor_bytes_per_s"), there = Study("tensor_bytes_per_s");
    if (!here || !there || in_.conditions.cores <= 0) return "";
    return fmt::format(
        "a core makes {} of tensors against {} of the published node (of other cores, and with "
        "remote calls, encryption and copies to clients that this worker does not do); it is "
        "limited by {}",
        FormatBytesRate(*here / in_.conditions.cores),
        FormatBytesRate(*there / kPublishedNodeCores), sheet_.limit.words);
  }

  std::string WhyWorkers() const {
    const auto here = Here("tensor_bytes_per_s"), there = Study("tensor_bytes_per_s");
    if (!here || !there) return "";
    return fmt::format("one worker makes {} of tensors, the published one {}",
                       FormatBytesRate(*here), FormatBytesRate(*there));
  }

  std::string WhyStall() const {
    const auto row = Here("tensor_bytes_per_row"), rate = Here("worker_rows_per_s");
    const auto demand = Study("trainer_bytes_per_s");
    if (!row || !rate || !demand || in_.conditions.cores <= 0) return "";
    const double asked = *demand * in_.conditions.cores / kPublishedTrainerHostCores;
    return fmt::format("the trainer asks for {} ({} by {:g} of {:g} cores) and these cores make {}",
                       FormatBytesRate(asked), FormatBytesRate(*demand), in_.conditions.cores,
                       kPublishedTrainerHostCores, FormatBytesRate(*row * *rate));
  }

  std::string WhySizes() const {
    const auto rows = Here("stripe_rows_count");
    if (!rows || in_.table.streams.count == 0) return "";
    return fmt::format("stripes of {} rows: a stream holds {:.3g} B a row on average",
                       FormatCount(*rows), in_.table.streams.mean / *rows);
  }

  std::string WhyClasses() const {
    std::string text;
    for (size_t i = 0; i < transforms_.size() && i < 3; ++i) {
      if (!transforms_[i].cpu_share.available()) continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", transforms_[i].name,
                          FormatPercent(transforms_[i].cpu_share.value()));
    }
    if (text.empty()) return "";
    return fmt::format("the most expensive are {}; {:g} derived features of {:g} used ones", text,
                       in_.table.derived, in_.table.used_dense + in_.table.used_sparse);
  }

  std::string WhyDuplication() const {
    return "published as its formula gives it for 16.5 rows of a session and 80 % repeated; here "
           "by the bytes of the projected lists in one batch";
  }

  const SheetInputs& in_;
  const Sheet& sheet_;
  const std::vector<WorkShare>& transforms_;
};

}  // namespace

std::string DifferenceOf(const SheetInputs& inputs, const SheetFigure& figure) {
  if (inputs.model.empty() || figure.published.empty() || !figure.here.available()) return "";
  const double here = figure.here.value(), wanted = figure.published[0].scaled.value();
  if (wanted <= 0 || here < 0) return "";
  const bool share = figure.here.unit() == headrace::Unit::kRatio && wanted <= 1 && here <= 1;
  if (share && std::abs(here - wanted) <= kNearPublishedShare) return "";
  if (!share && here > 0 && std::abs(here / wanted - 1) <= kNearPublished) return "";
  return share ? fmt::format("{:+.1f} points", 100 * (here - wanted))
               : fmt::format("{} of the published{}", Factor(here / wanted),
                             figure.scaled_by.empty() ? "" : ", scaled");
}

std::string ReasonOf(const SheetInputs& inputs, const Sheet& sheet,
                     const std::vector<WorkShare>& transforms, const SheetFigure& figure) {
  return Reasons(inputs, sheet, transforms).Why(figure.key);
}

}  // namespace headrace::analysis
