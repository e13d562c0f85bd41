#include "experiments/dedup_sample.h"

#include <algorithm>

#include "base/clock.h"
#include "experiments/run_sample.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::experiments {

DedupTotals SumOf(const std::vector<reader::DedupFactor>& groups) {
  DedupTotals totals;
  for (const reader::DedupFactor& group : groups) {
    const auto bytes = static_cast<double>(group.bytes);
    totals.bytes += bytes;
    totals.now += bytes / group.now;
    if (group.clustered) totals.clustered = totals.clustered.value_or(0) + bytes / *group.clustered;
  }
  return totals;
}

reader::DedupSample ReadDedupSample(const reader::Table& table, reader::dwrf::Projection projection,
                                    const DedupSampleOptions& options, int64_t read_ns,
                                    const std::function<bool()>& stop) {
  const reader::Schema& schema = table.files[0]->schema();
  projection.locked_as_null = false;  // nulls would pass for rows that repeat
  std::vector<std::string>& columns = projection.columns;
  for (const std::string& column : {options.session, options.time})
    if (schema.FindColumn(column) &&
        std::find(columns.begin(), columns.end(), column) == columns.end())
      columns.push_back(column);
  reader::DedupSample sample;
  const int64_t start = MonotonicNs();
  const uint64_t features = std::max<uint64_t>(projection.features.size(), 1);
  for (const reader::Split& split : table.splits) {
    if (sample.rows > 0 &&
        (sample.rows + split.rows > options.rows || MonotonicNs() - start >= read_ns))
      break;
    if (split.rows > options.lists / features - std::min(sample.rows, options.lists / features))
      break;
    if (stop && stop()) break;
    reader::AddToSample(reader::ReadSplit(table, split, projection), options.session, options.time,
                        &sample);
  }
  return sample;
}

std::optional<SampledDedup> SampleDedup(const reader::Table& table,
                                        reader::dwrf::Projection projection,
                                        const DedupSampleOptions& options, int64_t read_ns,
                                        const std::function<bool()>& stop) {
  if (table.splits.empty() || !table.files[0]->schema().FindColumn(options.session))
    return std::nullopt;
  const int64_t end = MonotonicNs() + 4 * read_ns;
  const auto give_up = [&] { return (stop && stop()) || MonotonicNs() >= end; };
  const reader::DedupSample sample =
      ReadDedupSample(table, std::move(projection), options, read_ns, give_up);
  if (sample.features.empty() || sample.rows == 0) return std::nullopt;
  const DedupTotals totals =
      SumOf(reader::MeasureGroups(sample, options.dedup, options.batch_rows, true, give_up));
  if (!totals.clustered || *totals.clustered <= 0) return std::nullopt;
  return SampledDedup{totals.bytes / totals.now, totals.bytes / *totals.clustered};
}

namespace {

// How often lists repeat as the rows lie, and by session.
std::vector<collectors::RunFact> Repetition(const SampledTable& of) {
  constexpr int64_t kReadNs = 500'000'000;
  DedupSampleOptions options;
  options.dedup.scope = of.spec.dedup.scope;
  options.batch_rows = of.spec.batch_rows;
  options.rows = 32'768;
  options.lists = 1 << 24;
  const auto seen = SampleDedup(of.table, of.spec.projection, options, kReadNs, of.stop);
  if (!seen) return {};
  return {{"sample_dedup_ratio", seen->now, "ratio"},
          {"clustered_dedup_ratio", seen->clustered, "ratio"}};
}

HR_RUN_SAMPLE("repetition", Repetition);

}  // namespace
}  // namespace headrace::experiments
