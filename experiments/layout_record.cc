#include "experiments/layout_record.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "experiments/keys.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/projection.h"
#include "reader/fetch/read_plan.h"
#include "reader/source/open.h"

namespace headrace::experiments {
namespace {

namespace dwrf = reader::dwrf;
using reader::ByteRange;

uint64_t EndOf(const ByteRange& range) { return range.offset + range.length; }

// Sorted ranges with those that touch or overlap made one.
std::vector<ByteRange> Merged(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  std::vector<ByteRange> out;
  for (const ByteRange& range : ranges) {
    if (range.length == 0) continue;
    if (out.empty() || range.offset > EndOf(out.back())) {
      out.push_back(range);
    } else {
      out.back().length = std::max(EndOf(out.back()), EndOf(range)) - out.back().offset;
    }
  }
  return out;
}

// Bytes of [begin, end) within `ranges`, which are sorted and disjoint.
int64_t OverlapBytes(const std::vector<ByteRange>& ranges, uint64_t begin, uint64_t end) {
  auto range = std::partition_point(ranges.begin(), ranges.end(),
                                    [&](const ByteRange& r) { return EndOf(r) <= begin; });
  uint64_t bytes = 0;
  for (; range != ranges.end() && range->offset < end; ++range)
    bytes += std::min(end, EndOf(*range)) - std::max(begin, range->offset);
  return static_cast<int64_t>(bytes);
}

int64_t Sum(const std::vector<ByteRange>& ranges) {
  uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.length;
  return static_cast<int64_t>(bytes);
}

class LayoutReader {
 public:
  LayoutReader(const reader::PipelineSpec& spec, const LayoutLimits& limits)
      : spec_(spec), limits_(limits) {}

  // Opens file after file, and no more than it needs where the number of stripes is known.
  collectors::LayoutRows Read(std::optional<size_t> stripes, const std::function<bool()>& stop) {
    rows_.gap_bytes = static_cast<int64_t>(spec_.fetch.max_gap_bytes);
    rows_.most_read_bytes = static_cast<int64_t>(spec_.fetch.max_read_bytes);
    rows_.whole_stripes = spec_.verify_checksums;
    rows_.features_count = static_cast<int64_t>(spec_.projection.features.size());
    rows_.columns_count = static_cast<int64_t>(spec_.projection.columns.size());
    const std::vector<std::string> files = reader::ListTable(spec_.table, spec_.io, {});
    rows_.files_count = static_cast<int64_t>(files.size());
    for (const std::string& file : files) rows_.file_bytes += BytesOf(file);
    const int64_t end = MonotonicNs() + limits_.longest_ns;
    const auto enough = [&] {
      return !rows_.stripes.empty() && (rows_.stripes.size() >= limits_.most_stripes ||
                                        MonotonicNs() >= end || (stop && stop()));
    };
    const dwrf::OpenOptions opening = OpenWithKeys(spec_.keys);
    size_t counted = 0;
    for (const std::string& path : files) {
      if (stripes && enough()) break;
      const auto file = dwrf::FileReader::Open(reader::OpenSource(path, spec_.io, {}), opening);
      if (column_of_.empty()) NameColumns(file->schema());
      counted += file->num_stripes();
      for (uint32_t s = 0; s < file->num_stripes() && !enough(); ++s) AddStripe(*file, s);
    }
    rows_.stripes_count = static_cast<int64_t>(stripes.value_or(counted));
    CountFeatures();
    return std::move(rows_);
  }

 private:
  static int64_t BytesOf(const std::string& path) {
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) throw Error(ExitCode::kBadData, error.message(), path, "read the table again");
    return static_cast<int64_t>(bytes);
  }

  void CountFeatures() {
    rows_.stored_features_count = static_cast<int64_t>(features_.size());
    for (const auto& [key, bytes] : features_) {
      rows_.stored_features_bytes += bytes.stored;
      rows_.used_features_bytes += bytes.wanted;
      if (bytes.wanted > 0) ++rows_.used_features_count;
    }
  }

  // Of each node of the schema the top-level column, by name and by its own node.
  void NameColumns(const reader::Schema& schema) {
    const reader::SchemaNode& root = schema.root();
    column_of_.assign(schema.size(), {});
    for (size_t c = 0; c < root.children.size(); ++c) {
      const reader::SchemaNode& node = schema.node(root.children[c]);
      for (uint32_t id = node.id; id <= node.last; ++id)
        column_of_[id] = {node.id, root.field_names[c]};
    }
  }

  std::vector<ByteRange> ReadsOf(const dwrf::StripePlan& plan, const ByteRange& areas) const {
    std::vector<ByteRange> wanted = plan.ranges();
    // A checksum is over all of a stripe; it is read piece after piece.
    if (spec_.verify_checksums) {
      const uint64_t most = std::max<uint64_t>(spec_.fetch.max_read_bytes, 1);
      std::vector<ByteRange> reads;
      for (uint64_t at = areas.offset; at < EndOf(areas); at += most)
        reads.push_back({at, std::min(most, EndOf(areas) - at)});
      return reads;
    }
    return reader::PlanReads(std::move(wanted),
                             {spec_.fetch.max_gap_bytes, spec_.fetch.max_read_bytes})
        .reads;
  }

  void AddStripe(const dwrf::FileReader& file, uint32_t index) {
    const std::shared_ptr<const dwrf::Stripe> stripe = file.ReadStripe(index);
    const dwrf::StripePlan plan = dwrf::MakePlan(file, stripe, spec_.projection);
    const ByteRange areas{stripe->offset, stripe->index_length + stripe->data_length};
    const std::vector<ByteRange> wanted = Merged(plan.ranges());
    const std::vector<ByteRange> reads = ReadsOf(plan, areas);
    collectors::LayoutStripeRow row;
    row.stripe_index = static_cast<int64_t>(rows_.stripes.size());
    const std::string& path = file.source().name();
    row.file = Printable(path.substr(path.rfind('/') + 1), 200);
    row.offset_bytes = static_cast<int64_t>(areas.offset);
    row.stored_bytes = static_cast<int64_t>(areas.length);
    row.rows_count = static_cast<int64_t>(stripe->rows);
    row.streams_count = static_cast<int64_t>(stripe->streams.size());
    row.wanted_streams_count = static_cast<int64_t>(plan.streams.size());
    row.wanted_bytes = Sum(wanted);
    row.over_read_bytes = Sum(reads) - row.wanted_bytes;
    row.reads_count = static_cast<int64_t>(reads.size());
    rows_.stripes.push_back(row);
    if (full_) return;
    AddPieces(*stripe, areas, wanted, Merged(reads), row.stripe_index);
    AddReads(reads, wanted, row.stripe_index);
  }

  void AddReads(const std::vector<ByteRange>& reads, const std::vector<ByteRange>& wanted,
                int64_t stripe) {
    if (full_) return;
    for (const ByteRange& read : reads) {
      rows_.reads.push_back({stripe, static_cast<int64_t>(read.offset),
                             static_cast<int64_t>(read.length),
                             OverlapBytes(wanted, read.offset, EndOf(read))});
    }
  }

  // The stripe's streams by place, those of one key that touch as one, and the holes between them.
  void AddPieces(const dwrf::Stripe& stripe, const ByteRange& areas,
                 const std::vector<ByteRange>& wanted, const std::vector<ByteRange>& reads,
                 int64_t index) {
    std::map<std::pair<uint32_t, uint32_t>, std::string> keys;  // map node, sequence
    for (const auto& [node, flat] : stripe.flat_keys)
      for (const dwrf::FlatKey& key : flat)
        keys[{node, key.sequence}] = Printable(key.key.ToString(), 100);
    std::vector<const dwrf::StreamInfo*> streams;
    for (const dwrf::StreamInfo& stream : stripe.streams)
      if (stream.length > 0) streams.push_back(&stream);
    std::sort(streams.begin(), streams.end(),
              [](const auto* a, const auto* b) { return a->offset < b->offset; });
    std::vector<collectors::LayoutStreamRow> pieces;
    uint64_t at = areas.offset;
    const auto add = [&](uint64_t end, std::string area, std::string column, std::string key,
                         int64_t count) {
      if (end <= at) return;  // it lies within another one, which no writer makes
      const int64_t want = OverlapBytes(wanted, at, end),
                    over = OverlapBytes(reads, at, end) - want;
      const auto length = static_cast<int64_t>(end - at);
      collectors::LayoutStreamRow* last = pieces.empty() ? nullptr : &pieces.back();
      if (last && last->area == area && last->column_name == column && last->feature_key == key) {
        last->stored_bytes += length;
        last->streams_count += count;
        last->wanted_bytes += want;
        last->over_read_bytes += over;
      } else {
        pieces.push_back({index, static_cast<int64_t>(at), length, std::move(area),
                          std::move(column), std::move(key), count, want, over});
      }
      at = end;
    };
    for (const dwrf::StreamInfo* stream : streams) {
      add(stream->offset, "none", "", "", 0);
      const Named& column = column_of_[stream->node];
      const auto key = keys.find({column.node, stream->sequence});
      add(stream->offset + stream->length, dwrf::IsIndexStream(stream->kind) ? "index" : "data",
          Printable(column.name, 100), key == keys.end() ? "" : key->second, 1);
    }
    add(EndOf(areas), "none", "", "", 0);
    Keep(std::move(pieces), index);
  }

  void Keep(std::vector<collectors::LayoutStreamRow> pieces, int64_t index) {
    const size_t taken = rows_.streams.size() + rows_.reads.size();
    const size_t room = limits_.most_pieces - std::min(limits_.most_pieces, taken);
    if (index > 0 && pieces.size() > room) {
      full_ = true;
      return;
    }
    ++rows_.detailed_stripes_count;
    for (const collectors::LayoutStreamRow& piece : pieces) {
      if (piece.area != "data" || piece.feature_key.empty()) continue;
      FeatureBytes& bytes = features_[piece.column_name + '\0' + piece.feature_key];
      bytes.stored += piece.stored_bytes;
      bytes.wanted += piece.wanted_bytes;
    }
    // A stripe of more keys than a page has pixels is told by what becomes of its bytes.
    const bool coarse = pieces.size() > limits_.most_of_first;
    for (collectors::LayoutStreamRow& piece : pieces) {
      collectors::LayoutStreamRow* last =
          rows_.streams.empty() || rows_.streams.back().stripe_index != index
              ? nullptr
              : &rows_.streams.back();
      const auto fate = [](const collectors::LayoutStreamRow& row) {
        return std::pair(row.wanted_bytes > 0, row.over_read_bytes > 0);
      };
      if (coarse && last && fate(*last) == fate(piece) && last->area == piece.area) {
        if (last->column_name != piece.column_name) last->column_name.clear();
        last->feature_key.clear();
        last->stored_bytes += piece.stored_bytes;
        last->streams_count += piece.streams_count;
        last->wanted_bytes += piece.wanted_bytes;
        last->over_read_bytes += piece.over_read_bytes;
      } else {
        rows_.streams.push_back(std::move(piece));
      }
    }
  }

  struct Named {
    uint32_t node = 0;
    std::string name;
  };

  const reader::PipelineSpec& spec_;
  const LayoutLimits& limits_;
  collectors::LayoutRows rows_;
  std::vector<Named> column_of_;  // by node
  struct FeatureBytes {
    int64_t stored = 0, wanted = 0;
  };
  std::unordered_map<std::string, FeatureBytes> features_;  // by column and key
  bool full_ = false;
};

collectors::LayoutRows Unknown(std::string reason) {
  collectors::LayoutRows rows;
  rows.reason = std::move(reason);
  return rows;
}

}  // namespace

collectors::LayoutRows ReadLayout(const reader::PipelineSpec& spec,
                                  const std::function<bool()>& stop, const LayoutLimits& limits,
                                  std::optional<size_t> stripes) {
  if (spec.synthetic) return Unknown("The elements are synthetic: there is no table to read.");
  if (spec.repeat_first_batch) return Unknown("One batch was repeated: the table was not read.");
  if (reader::IsRemote(spec.table)) {
    return Unknown(
        "The table is in a remote store, and asking for its directories would cost requests "
        "there.");
  }
  try {
    collectors::LayoutRows rows = LayoutReader(spec, limits).Read(stripes, stop);
    return rows.stripes.empty() ? Unknown("The table has no stripe.") : rows;
  } catch (const Error& error) {
    return Unknown("Reading the table's directories failed: " + Printable(error.what(), 300));
  } catch (const std::bad_alloc&) {
    return Unknown("There was not enough memory for the table's directories.");
  }
}

}  // namespace headrace::experiments
