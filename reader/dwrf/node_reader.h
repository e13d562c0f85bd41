// NodeReader: what the column readers of all layouts have in common (ColumnReader,
// column_reader.h). value_readers.cc has those of numbers, times and texts, parent_readers.cc those
// of nodes with children; node_reader.cc picks one.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/column_reader.h"
#include "reader/dwrf/decode/stream_decoders.h"
#include "reader/dwrf/row_index.h"

namespace headrace::reader::dwrf {

struct IntegerDictionary {
  std::vector<int64_t> values;
  std::function<void(std::vector<int64_t>*)> load;  // empty once loaded

  const std::vector<int64_t>& Get() {
    if (load) {
      load(&values);
      load = nullptr;
    }
    return values;
  }
};

inline bool IsText(TypeKind kind) { return kind == TypeKind::kString || kind == TypeKind::kBinary; }

// The place of a (node, sequence) in a stripe, with its streams.
struct Site {
  StripeContext* context;
  uint32_t node, sequence;

  const Schema& schema() const { return context->file->schema(); }
  const SchemaNode& type() const { return schema().node(node); }
  const Stripe& stripe() const { return *context->stripe; }

  std::string Where() const {
    std::string path = schema().Path(node);
    return fmt::format("{}: stripe {}, column {} (node {} sequence {}), bytes {} to {}",
                       context->file->source().name(), stripe().index,
                       path.empty() ? "<root>" : path, node, sequence, stripe().offset,
                       stripe().offset + stripe().index_length + stripe().data_length);
  }
  [[noreturn]] void Throw(const std::string& what) const {
    throw Error(ExitCode::kBadData, what, Where(), "the file is damaged");
  }
  // Whether the stripe lists the stream (possibly empty): what decides the layout of positions.
  bool Lists(StreamKind kind) const { return stripe().Find(node, sequence, kind) != nullptr; }
  // Whether the stream has bytes.
  bool Has(StreamKind kind) const {
    const StreamInfo* info = stripe().Find(node, sequence, kind);
    return info != nullptr && info->length > 0;
  }
  ByteStream Open(StreamKind kind, uint32_t at_sequence) const {
    const StreamInfo* info = stripe().Find(node, at_sequence, kind);
    auto origin = std::make_shared<StreamOrigin>();
    origin->source = context->file->shared_source();
    std::string where = fmt::format("{}: stripe {}, stream {} of node {} sequence {}",
                                    context->file->source().name(), stripe().index,
                                    StreamKindName(kind), node, at_sequence);
    if (info != nullptr) {
      origin->context = context->file->ContextOf(stripe(), *info, std::move(where));
    } else {
      origin->context.compression = context->file->tail().compression;
      origin->context.where = std::move(where);
      origin->context.file_offset = stripe().offset;
    }
    origin->length = info != nullptr ? info->length : 0;
    origin->unpacked = context->unpacked_bytes;
    return ByteStream(std::move(origin));
  }
  // Whether byte positions in the row index have two numbers.
  bool IsFramed() const {
    return context->file->tail().compression != CompressionKind::kNone ||
           context->file->keys().GroupOf(node) != 0;
  }
  ByteStream Open(StreamKind kind) const { return Open(kind, sequence); }
  // Varints, or `width` bytes each where the stream says so.
  IntegerFormat Format(StreamKind kind, bool is_signed, uint8_t width, uint32_t at_sequence) const {
    const StreamInfo* info = stripe().Find(node, at_sequence, kind);
    return {is_signed, info == nullptr || info->use_vints ? uint8_t{0} : width};
  }
  RleDecoder Rle(StreamKind kind, bool is_signed, uint8_t width) const {
    return RleDecoder(Open(kind), Format(kind, is_signed, width, sequence));
  }
};

// One length, checked so that sums stay far from 64 bits.
inline uint64_t NextLength(const Site& site, RleDecoder* lengths) {
  const auto length = static_cast<uint64_t>(lengths->Next());
  if (length > uint64_t{1} << 48) site.Throw(fmt::format("length {}", length));
  return length;
}

// Common to all nodes: PRESENT, IN_MAP, and the state that Mark keeps.
class NodeReader : public ColumnReader {
 public:
  NodeReader(Site site, bool is_flat_value) : site_(site) {
    if (site.Has(StreamKind::kPresent)) present_.emplace(site.Open(StreamKind::kPresent));
    has_in_map_positions_ = is_flat_value;
  }

  void Read(uint64_t count, Column* out) final {
    if (count == 0) return;
    if (!present_) {
      ReadValues(count, count, nullptr, out);
      AppendPresent(nullptr, count, out);
      out->rows += count;
      return;
    }
    site_.context->budget->Charge(count, 1);
    scratch_.resize(count);
    const uint64_t values = present_->Read(count, scratch_.data());
    ReadValues(values, count, values == count ? nullptr : scratch_.data(), out);
    AppendPresent(scratch_.data(), count, out);
    out->rows += count;
  }
  void Skip(uint64_t count) final {
    if (count > 0) SkipValues(present_ ? present_->Skip(count) : count);
  }
  void Seek(uint64_t stride) final {
    const std::vector<uint64_t> numbers =
        ReadPositions(*site_.context->file, site_.stripe(), site_.node, site_.sequence, stride);
    const bool framed = site_.IsFramed();
    Positions positions(numbers, framed, [this](const std::string& what) { site_.Throw(what); });
    if (has_in_map_positions_) in_map_position_ = positions.TakeBool();
    if (site_.Lists(StreamKind::kPresent)) {
      const Positions::Bool p = positions.TakeBool();
      if (present_) present_->Seek(p.stored, p.within, p.values, p.bits);
    }
    SeekValues(stride, &positions);
    positions.CheckEnd();
    SeekChildren(stride);
  }
  // Where IN_MAP continues after Seek; it belongs to the map's reader.
  const Positions::Bool& in_map_position() const { return in_map_position_; }

  void BeginStride(uint64_t) override {}
  bool NeedsStrides() const override { return false; }
  void Mark() final {
    marked_present_ = present_;
    MarkValues();
  }
  void Rewind() final {
    present_ = marked_present_;
    RewindValues();
  }

 protected:
  // Appends `slots` slots of which `values` hold a value; present null: all. Not the presence
  // itself.
  virtual void ReadValues(uint64_t values, uint64_t slots, const uint8_t* present, Column* out) = 0;
  virtual void SkipValues(uint64_t values) = 0;
  virtual void SeekValues(uint64_t stride, Positions* positions) = 0;
  virtual void SeekChildren(uint64_t) {}
  virtual void MarkValues() = 0;
  virtual void RewindValues() = 0;

  Site site_;

 private:
  std::optional<BoolDecoder> present_, marked_present_;
  bool has_in_map_positions_ = false;
  Positions::Bool in_map_position_;
  std::vector<uint8_t> scratch_;
};

// The reader of a node in a layout that its stripe's encodings name. `is_flat_value`: it is the
// value of a flattened map's key. Throws Error kBadData for an encoding that does not fit the type.
std::unique_ptr<ColumnReader> MakeNodeReader(Site site, bool is_flat_value, const KeyFilter* keys);
// Of numbers, times and texts. `encoding` fits the type.
std::unique_ptr<ColumnReader> MakeValueReader(Site site, bool is_flat_value,
                                              const Encoding& encoding);
// Of nodes with children.
std::unique_ptr<ColumnReader> MakeParentReader(Site site, bool is_flat_value,
                                               const Encoding& encoding, const KeyFilter* keys);

}  // namespace headrace::reader::dwrf
