#include <algorithm>

#include "reader/dwrf/node_reader.h"

namespace headrace::reader::dwrf {
namespace {

// A node with children.
class ParentReader : public NodeReader {
 public:
  using NodeReader::NodeReader;
  void BeginStride(uint64_t stride) override {
    for (auto& child : children_) child->BeginStride(stride);
  }
  bool NeedsStrides() const override {
    return std::any_of(children_.begin(), children_.end(),
                       [](const auto& c) { return c->NeedsStrides(); });
  }

 protected:
  void MarkValues() override {
    for (auto& child : children_) child->Mark();
  }
  void RewindValues() override {
    for (auto& child : children_) child->Rewind();
  }
  void SeekChildren(uint64_t stride) override {
    for (auto& child : children_) child->Seek(stride);
  }
  std::vector<std::unique_ptr<ColumnReader>> children_;
};

std::vector<uint64_t> SpreadRows(const uint8_t* present, uint64_t slots) {
  std::vector<uint64_t> rows(slots);
  uint64_t next = 0;
  for (uint64_t i = 0; i < slots; ++i) rows[i] = present[i] != 0 ? next++ : kNullRow;
  return rows;
}

class StructReader final : public ParentReader {
 public:
  StructReader(Site site, bool flat) : ParentReader(site, flat) {
    for (uint32_t child : site.type().children) {
      children_.push_back(MakeNodeReader({site.context, child, site.sequence}, false, nullptr));
    }
  }

 private:
  void ReadValues(uint64_t values, uint64_t slots, const uint8_t* present, Column* out) override {
    site_.context->budget->Charge(slots, 1);
    if (present == nullptr) {
      for (size_t c = 0; c < children_.size(); ++c) children_[c]->Read(values, &out->children[c]);
      return;
    }
    site_.context->budget->Charge(slots, 8);
    const std::vector<uint64_t> rows = SpreadRows(present, slots);
    for (size_t c = 0; c < children_.size(); ++c) {
      Column packed = EmptyColumn(site_.schema(), site_.type().children[c]);
      children_[c]->Read(values, &packed);
      site_.context->budget->Charge(slots, 8);
      Gather(packed, rows, &out->children[c]);
    }
  }
  void SkipValues(uint64_t values) override {
    for (auto& child : children_) child->Skip(values);
  }
  void SeekValues(uint64_t, Positions*) override {}
};

// Lists, and maps with their entries stored as two parallel lists.
class ListReader final : public ParentReader {
 public:
  ListReader(Site site, bool flat, const KeyFilter* keys)
      : ParentReader(site, flat), lengths_(site.Rle(StreamKind::kLength, false, 4)), keys_(keys) {
    for (uint32_t child : site.type().children) {
      children_.push_back(MakeNodeReader({site.context, child, site.sequence}, false, nullptr));
    }
  }

 private:
  void ReadValues(uint64_t values, uint64_t slots, const uint8_t* present, Column* out) override {
    if (keys_ != nullptr) return ReadFiltered(values, slots, present, out);
    const uint64_t elements = ReadOffsets(slots, present, &out->offsets);
    for (size_t c = 0; c < children_.size(); ++c) children_[c]->Read(elements, &out->children[c]);
  }
  uint64_t ReadOffsets(uint64_t slots, const uint8_t* present, std::vector<uint64_t>* offsets) {
    site_.context->budget->Charge(slots, 8);
    const uint64_t before = offsets->back();
    for (uint64_t i = 0; i < slots; ++i) {
      const uint64_t length =
          present == nullptr || present[i] != 0 ? NextLength(site_, &lengths_) : 0;
      offsets->push_back(offsets->back() + length);
    }
    return offsets->back() - before;
  }
  void ReadFiltered(uint64_t, uint64_t slots, const uint8_t* present, Column* out) {
    std::vector<uint64_t> offsets{0};
    const uint64_t entries = ReadOffsets(slots, present, &offsets);
    Column keys = EmptyColumn(site_.schema(), site_.type().children[0]);
    Column values = EmptyColumn(site_.schema(), site_.type().children[1]);
    children_[0]->Read(entries, &keys);
    children_[1]->Read(entries, &values);
    std::vector<uint64_t> kept;
    for (uint64_t i = 0; i < slots; ++i) {
      for (uint64_t e = offsets[i]; e < offsets[i + 1]; ++e) {
        if (Wanted(keys, e)) kept.push_back(e);
      }
      out->offsets.push_back(out->children[0].rows + kept.size());
    }
    Gather(keys, kept, &out->children[0]);
    Gather(values, kept, &out->children[1]);
  }
  bool Wanted(const Column& keys, uint64_t e) const {
    if (keys.IsNull(e)) return false;
    return std::any_of(keys_->begin(), keys_->end(), [&](const MapKey& key) {
      if (!IsText(keys.kind)) return !key.is_text && key.integer == keys.integers[e];
      return key.is_text &&
             key.text == std::string_view(keys.bytes)
                             .substr(keys.offsets[e], keys.offsets[e + 1] - keys.offsets[e]);
    });
  }
  void SkipValues(uint64_t values) override {
    uint64_t elements = 0;
    for (uint64_t i = 0; i < values; ++i) {
      elements += NextLength(site_, &lengths_);
      if (elements > uint64_t{1} << 50) {
        for (auto& child : children_) child->Skip(elements);
        elements = 0;
      }
    }
    for (auto& child : children_) child->Skip(elements);
  }
  void SeekValues(uint64_t, Positions* positions) override {
    const Positions::Run p = positions->TakeRun();
    lengths_.Seek(p.stored, p.within, p.values);
  }
  void MarkValues() override {
    marked_ = lengths_;
    ParentReader::MarkValues();
  }
  void RewindValues() override {
    lengths_ = marked_;
    ParentReader::RewindValues();
  }

  RleDecoder lengths_, marked_;
  const KeyFilter* keys_;
};

class UnionReader final : public ParentReader {
 public:
  UnionReader(Site site, bool flat)
      : ParentReader(site, flat), tags_(site.Open(StreamKind::kData)) {
    for (uint32_t child : site.type().children) {
      children_.push_back(MakeNodeReader({site.context, child, site.sequence}, false, nullptr));
    }
  }

 private:
  uint8_t NextTag() {
    const uint8_t tag = tags_.Next();
    if (tag >= children_.size())
      site_.Throw(fmt::format("tag {} of a union of {}", tag, children_.size()));
    return tag;
  }
  void ReadValues(uint64_t, uint64_t slots, const uint8_t* present, Column* out) override {
    site_.context->budget->Charge(slots, 8);
    std::vector<uint64_t> counts(children_.size());
    for (uint64_t i = 0; i < slots; ++i) {
      const bool is_value = present == nullptr || present[i] != 0;
      const uint8_t tag = is_value ? NextTag() : 0;
      if (is_value) ++counts[tag];
      out->integers.push_back(tag);
    }
    for (size_t c = 0; c < children_.size(); ++c) children_[c]->Read(counts[c], &out->children[c]);
  }
  void SkipValues(uint64_t values) override {
    std::vector<uint64_t> counts(children_.size());
    for (uint64_t i = 0; i < values; ++i) ++counts[NextTag()];
    for (size_t c = 0; c < children_.size(); ++c) children_[c]->Skip(counts[c]);
  }
  void SeekValues(uint64_t, Positions* positions) override {
    const Positions::Run p = positions->TakeRun();
    tags_.Seek(p.stored, p.within, p.values);
  }
  void MarkValues() override {
    marked_ = tags_;
    ParentReader::MarkValues();
  }
  void RewindValues() override {
    tags_ = marked_;
    ParentReader::RewindValues();
  }

  ByteRleDecoder tags_, marked_;
};

// Memory of the readers for one key's node before they read anything: 0.9 KB measured for integers.
// A stream may have only a few bytes, so the bytes of streams alone would not bound this memory.
constexpr uint64_t kReaderBytes = 1 << 10;

// Section 9: one sub-column per key; entries come out in ascending sequence order.
//
//   rows {1:a, 2:b}, {}, {2:c}     key 1: IN_MAP 1 0 0, values a;  key 2: IN_MAP 1 0 1, values b c
class FlatMapReader final : public ParentReader {
 public:
  FlatMapReader(Site site, const KeyFilter* keys) : ParentReader(site, false) {
    const uint32_t value = site.type().children[1];
    const TypeKind key_kind = site.schema().node(site.type().children[0]).kind;
    if (!IsText(key_kind) && !IsInteger(key_kind)) {
      site.Throw(fmt::format("a flattened map with keys of type {}", TypeKindName(key_kind)));
    }
    CheckEveryStreamHasAKey(value);
    const uint64_t width = site.schema().node(value).last - value + uint64_t{1};
    for (const FlatKey& key : site.stripe().FlatKeys(site.node)) {
      if (keys != nullptr && std::find(keys->begin(), keys->end(), key.key) == keys->end())
        continue;
      site.context->key_nodes += width;
      if (site.context->key_nodes > site.context->max_dictionary_bytes / kReaderBytes) {
        throw Error(ExitCode::kResources,
                    fmt::format("keys of {} nodes each need more than {} bytes to be read", width,
                                site.context->max_dictionary_bytes),
                    site.Where(), "read fewer keys");
      }
      const Site at{site.context, value, key.sequence};
      keys_.push_back(key.key);
      in_map_.emplace_back(at.Open(StreamKind::kInMap));
      children_.push_back(MakeNodeReader(at, true, nullptr));
    }
  }

 private:
  // A sub-column without an encoding has no key: its entries would be lost silently.
  void CheckEveryStreamHasAKey(uint32_t value) {
    const std::span<const FlatKey> keys = site_.stripe().FlatKeys(site_.node);
    for (const StreamInfo& stream : site_.stripe().streams) {
      if (stream.node != value || stream.kind != StreamKind::kInMap || stream.sequence == 0)
        continue;
      const auto it = std::lower_bound(keys.begin(), keys.end(), stream.sequence,
                                       [](const FlatKey& k, uint32_t s) { return k.sequence < s; });
      if (it == keys.end() || it->sequence != stream.sequence) {
        site_.Throw(fmt::format("sequence {} has streams but no key", stream.sequence));
      }
    }
  }
  void ReadValues(uint64_t values, uint64_t slots, const uint8_t* present, Column* out) override {
    Budget& budget = *site_.context->budget;
    budget.Charge(slots, 8);
    const uint64_t num_keys = keys_.size();
    if (num_keys > 0) budget.Charge(values, num_keys);
    std::vector<uint8_t> bits(num_keys * values);
    Column packed = EmptyColumn(site_.schema(), site_.type().children[1]);
    std::vector<uint64_t> next(num_keys);
    for (uint64_t k = 0; k < num_keys; ++k) {
      const uint64_t count = in_map_[k].Read(values, bits.data() + k * values);
      next[k] = packed.rows;
      children_[k]->Read(count, &packed);
    }
    budget.Charge(packed.rows, 40);
    std::vector<uint64_t> order;
    order.reserve(packed.rows);
    Column& keys = out->children[0];
    uint64_t row = 0;
    for (uint64_t i = 0; i < slots; ++i) {
      if (present == nullptr || present[i] != 0) {
        for (uint64_t k = 0; k < num_keys; ++k) {
          if (bits[k * values + row] == 0) continue;
          order.push_back(next[k]++);
          AppendKey(keys_[k], &keys);
        }
        ++row;
      }
      out->offsets.push_back(keys.rows);
    }
    Gather(packed, order, &out->children[1]);
  }
  void AppendKey(const MapKey& key, Column* keys) {
    ++keys->rows;
    if (!keys->present.empty()) keys->present.push_back(1);
    if (!IsText(keys->kind)) {
      keys->integers.push_back(key.integer);
      return;
    }
    site_.context->budget->Charge(key.text.size(), 1);
    keys->bytes += key.text;
    keys->offsets.push_back(keys->bytes.size());
  }
  void SkipValues(uint64_t values) override {
    for (size_t k = 0; k < keys_.size(); ++k) children_[k]->Skip(in_map_[k].Skip(values));
  }
  void SeekValues(uint64_t, Positions*) override {}
  void SeekChildren(uint64_t stride) override {
    for (size_t k = 0; k < keys_.size(); ++k) {
      children_[k]->Seek(stride);
      const Positions::Bool p = static_cast<NodeReader&>(*children_[k]).in_map_position();
      in_map_[k].Seek(p.stored, p.within, p.values, p.bits);
    }
  }
  void MarkValues() override {
    marked_ = in_map_;
    ParentReader::MarkValues();
  }
  void RewindValues() override {
    in_map_ = marked_;
    ParentReader::RewindValues();
  }

  std::vector<MapKey> keys_;
  std::vector<BoolDecoder> in_map_, marked_;
};

}  // namespace

std::unique_ptr<ColumnReader> MakeParentReader(Site site, bool is_flat_value,
                                               const Encoding& encoding, const KeyFilter* keys) {
  switch (site.type().kind) {
    case TypeKind::kList:
      return std::make_unique<ListReader>(site, is_flat_value, nullptr);
    case TypeKind::kMap:
      if (encoding.kind == EncodingKind::kMapFlat)
        return std::make_unique<FlatMapReader>(site, keys);
      return std::make_unique<ListReader>(site, is_flat_value, keys);
    case TypeKind::kStruct:
      return std::make_unique<StructReader>(site, is_flat_value);
    case TypeKind::kUnion:
      return std::make_unique<UnionReader>(site, is_flat_value);
    default:
      site.Throw("unknown type");
  }
}

}  // namespace headrace::reader::dwrf
