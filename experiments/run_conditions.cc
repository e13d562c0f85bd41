#include "experiments/run_conditions.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <map>

#include "base/mix_bits.h"
#include "reader/source/open.h"
#include "reader/source/page_cache.h"

namespace headrace::experiments {
namespace {

// What is the same for runs that compare: how long a run lasts and what its page cache held is not
// part of it.
std::string SettingsText(const reader::Settings& settings) {
  std::map<std::string, std::string> last;
  for (const auto& [key, value] : settings) last[key] = value;
  last.erase("source.epochs");
  last.erase("source.cold");
  std::string text;
  for (const auto& [key, value] : last) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", key, value);
  }
  return text;
}

std::string TableText(const std::vector<std::string>& files) {
  uint64_t hash = 0, bytes = 0;
  const auto add = [&](uint64_t value) { hash = MixBits(hash ^ value); };
  for (const std::string& file : files) {
    struct stat status = {};
    if (stat(file.c_str(), &status) != 0) return "";
    for (const char c : file) add(static_cast<unsigned char>(c));
    add(static_cast<uint64_t>(status.st_size));
    add(static_cast<uint64_t>(status.st_mtim.tv_sec));
    add(static_cast<uint64_t>(status.st_mtim.tv_nsec));
    bytes += static_cast<uint64_t>(status.st_size);
  }
  return fmt::format("{} files, {} bytes, {:016x}", files.size(), bytes, hash);
}

std::optional<double> RatioOf(const reader::Residency& residency) {
  if (!residency.unknown.empty()) return std::nullopt;
  return static_cast<double>(residency.resident_bytes) / static_cast<double>(residency.bytes);
}

}  // namespace

collectors::RunConditions ReadConditions(const reader::PipelineSpec& spec,
                                         const reader::Settings& settings) {
  collectors::RunConditions conditions;
  if (spec.repeat_first_batch) conditions.kind = "ceiling";
  conditions.settings_text = SettingsText(settings);
  conditions.settings = spec.in_force;
  conditions.cold = spec.cold_reads;
  if (spec.file_order) {
    conditions.element_order = "file";
    conditions.order_window_count = static_cast<int64_t>(spec.reorder_window);
  }
  if (spec.synthetic) {
    conditions.resident_note = "the elements are synthetic: there is no table";
  } else if (reader::IsRemote(spec.table)) {
    conditions.resident_note = "remote storage has no page cache here";
  } else {
    const std::vector<std::string> files = reader::ListTable(spec.table, spec.io);
    conditions.table_text = TableText(files);
    reader::Residency residency = reader::ReadResidency(files);
    if (spec.cold_reads) {
      conditions.resident_before_ratio = RatioOf(residency);
      reader::DropFromPageCache(files);
      residency = reader::ReadResidency(files);
    }
    conditions.resident_ratio = RatioOf(residency);
    if (!residency.unknown.empty()) conditions.resident_note = residency.unknown;
    if (spec.io.direct && !conditions.resident_note) {
      conditions.resident_note = "reads go past the page cache (source.direct)";
      conditions.resident_ratio.reset();
    }
  }
  return conditions;
}

}  // namespace headrace::experiments
