#include "reader/dwrf/encode/column_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint64_t kMaxStreamBytes = INT32_MAX;    // other readers refuse longer ones
constexpr int64_t kTimestampBase = 1'420'099'200;  // 2015-01-01 in US Pacific standard time

uint32_t IntegerWidth(TypeKind kind) {
  return kind == TypeKind::kShort ? 2 : kind == TypeKind::kInt ? 4 : 8;
}

// Values of stride i: [cuts[i], cuts[i + 1]).
uint64_t StrideEnd(const ColumnBuffer& buffer, size_t stride) {
  return stride + 1 < buffer.cuts.size() ? buffer.cuts[stride + 1].values : buffer.values;
}

template <class T>
std::span<const T> StrideValues(const ColumnBuffer& buffer, const std::vector<T>& values,
                                size_t stride) {
  const uint64_t begin = buffer.cuts[stride].values;
  return std::span<const T>(values).subspan(begin, StrideEnd(buffer, stride) - begin);
}

template <class T>
std::span<const uint8_t> AsBytes(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// A number of nanoseconds with its decimal zeros folded away: value << 3 | zeros - 1.
int64_t PackNanos(int64_t nanos) {
  if (nanos == 0) return 0;
  if (nanos % 100 != 0) return nanos << 3;
  nanos /= 100;
  int64_t zeros = 1;
  for (; nanos % 10 == 0 && zeros < 7; ++zeros) nanos /= 10;
  return nanos << 3 | zeros;
}

const ColumnBuffer& FindNode(const ColumnBuffer& root, uint32_t node) {
  const ColumnBuffer* at = &root;
  while (at->node != node) {
    const ColumnBuffer* next = &at->children[0];
    for (const ColumnBuffer& child : at->children)
      if (child.node <= node) next = &child;
    at = next;
  }
  return *at;
}

uint64_t MostEntries(double threshold, uint64_t values) {
  return static_cast<uint64_t>(threshold * static_cast<double>(values));
}

std::vector<std::string_view> StringViews(const ColumnBuffer& buffer) {
  std::vector<std::string_view> views;
  views.reserve(buffer.lengths.size());
  const char* at = reinterpret_cast<const char*>(buffer.bytes.data());
  for (const uint32_t length : buffer.lengths) {
    views.emplace_back(at, length);
    at += length;
  }
  return views;
}

}  // namespace

void ColumnEncoder::Encode(const ColumnBuffer& root, bool keep_first_present) {
  keep_first_present_ = keep_first_present;
  num_strides_ = root.cuts.size();
  statistics.resize(schema_.size());
  stored_bytes.resize(schema_.size());
  layout.resize(schema_.size());
  EncodeNode(root, 0, nullptr, nullptr);
  FinishIndex();
}

std::vector<uint64_t> ColumnEncoder::ValueCuts(const ColumnBuffer& buffer) const {
  std::vector<uint64_t> cuts;
  for (const Cut& cut : buffer.cuts) cuts.push_back(cut.values);
  return cuts;
}

// `key` and `map` are set for the value node of a flattened map.
ColumnEncoder::Strides ColumnEncoder::EncodeNode(const ColumnBuffer& buffer, uint32_t sequence,
                                                 const FlatKeyBuffer* key,
                                                 const ColumnBuffer* map) {
  const Place place{buffer, sequence, slots_.size()};
  slots_.push_back(
      {buffer.node, sequence, google::protobuf::Arena::CreateMessage<proto::RowIndex>(&arena_)});
  for (size_t i = 0; i < num_strides_; ++i) slots_.back().index->add_entry();
  auto* encoding = AddEncoding(buffer.node);  // stays where it is when more are added
  encoding->set_kind(static_cast<uint32_t>(EncodingKind::kDirect));
  encoding->set_dictionary_size(0);
  encoding->set_node(buffer.node);
  encoding->set_sequence(sequence);

  Strides strides(num_strides_);
  for (size_t i = 0; i < num_strides_; ++i) {
    const Cut next =
        i + 1 < num_strides_ ? buffer.cuts[i + 1] : Cut{buffer.positions, buffer.values, 0};
    strides[i].num_values = next.values - buffer.cuts[i].values;
    const uint64_t nulls = next.positions - buffer.cuts[i].positions - strides[i].num_values;
    strides[i].has_null = nulls > 0;
    strides[i].raw_bytes = nulls;
  }
  if (key != nullptr) {
    auto* info = encoding->mutable_key();
    if (key->key.is_text) {
      info->set_bytes_key(key->key.text);
    } else {
      info->set_int_key(key->key.integer);
    }
    BitBuffer in_map = key->in_map;
    in_map.AppendRun(false, map->values - in_map.size());
    StoreBits(place, StreamKind::kInMap, in_map, ValueCuts(*map));
  }
  std::vector<uint64_t> position_cuts;
  for (const Cut& cut : buffer.cuts) position_cuts.push_back(cut.positions);
  if (buffer.has_nulls) {
    StoreBits(place, StreamKind::kPresent, buffer.present, position_cuts);
  } else if (keep_first_present_ && buffer.node == 1) {
    BitBuffer ones;
    ones.AppendRun(true, buffer.positions);
    StoreBits(place, StreamKind::kPresent, ones, position_cuts);
  }
  if (buffer.flat) {
    encoding->set_kind(static_cast<uint32_t>(EncodingKind::kMapFlat));
    EncodeKeys(buffer, &strides);
  } else {
    EncodeValues(place, &strides, encoding);
    for (const ColumnBuffer& child : buffer.children) {
      const Strides below = EncodeNode(child, sequence, nullptr, nullptr);
      for (size_t i = 0; i < num_strides_; ++i) strides[i].raw_bytes += below[i].raw_bytes;
    }
  }
  for (size_t i = 0; i < num_strides_; ++i) {
    strides[i].ToProto(
        buffer.kind,
        slots_[place.slot].index->mutable_entry(static_cast<int>(i))->mutable_statistics());
    statistics[buffer.node].Add(strides[i]);
  }
  return strides;
}

void ColumnEncoder::EncodeKeys(const ColumnBuffer& map, Strides* strides) {
  std::vector<std::pair<uint64_t, const FlatKeyBuffer*>> keys;
  for (const auto& key : map.keys)
    if (key->value.positions > 0)
      keys.emplace_back(policy_.FeatureRank(map.node, key->key), key.get());
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->key < b.second->key;
  });
  BuildSharedDictionaries(map);
  const SchemaNode& key_type = schema_.node(schema_.node(map.node).children[0]);
  const uint64_t key_width = key_type.kind == TypeKind::kByte ? 1 : IntegerWidth(key_type.kind);
  uint32_t sequence = 0;
  const size_t step = most_keys == 0 ? 1 : (keys.size() + most_keys - 1) / most_keys;
  for (size_t k = 0; k < keys.size(); k += step) {
    const FlatKeyBuffer* const key = keys[k].second;
    const Strides below = EncodeNode(key->value, ++sequence, key, &map);
    for (size_t i = 0; i < num_strides_; ++i) {
      const auto& cuts = key->value.cuts;
      const uint64_t end = i + 1 < num_strides_ ? cuts[i + 1].positions : key->value.positions;
      const uint64_t count = end - cuts[i].positions;
      StatisticsBuilder entries;
      entries.num_values = count;
      entries.raw_bytes = count * (key->key.is_text ? key->key.text.size() : key_width);
      if (!key->key.is_text) {
        entries.AddInteger(key->key.integer, count);
      } else if (key_type.kind == TypeKind::kBinary) {
        entries.AddBinaryBytes(count * key->key.text.size());
      } else if (count > 0) {
        entries.AddString(key->key.text, count);
      }
      statistics[key_type.id].Add(entries);
      (*strides)[i].raw_bytes += entries.raw_bytes + below[i].raw_bytes;
    }
  }
  shared_.clear();
}

void ColumnEncoder::BuildSharedDictionaries(const ColumnBuffer& map) {
  const uint32_t value = schema_.node(map.node).children[1];
  for (uint32_t node = value; node <= schema_.node(value).last; ++node) {
    if (policy_.column(node).dictionary != DictionaryUse::kShared) continue;
    SharedDictionary& shared = shared_[node];
    for (const auto& key : map.keys)
      for (const int64_t v : FindNode(key->value, node).integers) shared.values.Intern(v);
    shared.order = OrderDictionary(shared.values.counts(), false);
    std::vector<int64_t> entries;
    for (const uint32_t id : shared.order.entries) entries.push_back(shared.values.values()[id]);
    scratch_.Clear();
    EncodeIntegers(entries, Form(true, IntegerWidth(schema_.node(node).kind)), {}, &scratch_,
                   &marks_);
    // Not empty: some key holds the values.
    if (!entries.empty())
      Store({FindNode(map.keys[0]->value, node), 0, 0}, StreamKind::kDictionaryData,
            scratch_.span(), !policy_.options().use_vints, {}, 0);
  }
}

void ColumnEncoder::EncodeValues(const Place& place, Strides* strides,
                                 proto::ColumnEncoding* encoding) {
  const ColumnBuffer& buffer = place.buffer;
  const auto cuts = ValueCuts(buffer);
  const auto width = [&](uint64_t bytes) {
    for (StatisticsBuilder& stride : *strides) stride.raw_bytes += stride.num_values * bytes;
  };
  switch (buffer.kind) {
    case TypeKind::kBoolean:
      width(1);
      for (size_t i = 0; i < num_strides_; ++i)
        (*strides)[i].AddTrues(
            CountBits(buffer.bits.words(), cuts[i], StrideEnd(buffer, i) - cuts[i]));
      return StoreBits(place, StreamKind::kData, buffer.bits, cuts);
    case TypeKind::kByte:
      width(1);
      for (size_t i = 0; i < num_strides_; ++i)
        for (const uint8_t value : StrideValues(buffer, buffer.octets, i))
          (*strides)[i].AddInteger(static_cast<int8_t>(value), 1);
      [[fallthrough]];
    case TypeKind::kUnion:
      scratch_.Clear();
      marks_.clear();
      EncodeByteRuns(buffer.octets, cuts, &scratch_, &marks_);
      return Store(place, StreamKind::kData, scratch_.span(), false, marks_, 1);
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      width(IntegerWidth(buffer.kind));
      return EncodeInteger(place, strides, encoding);
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      const bool is_float = buffer.kind == TypeKind::kFloat;
      const uint64_t size = is_float ? 4 : 8;
      width(size);
      for (size_t i = 0; i < num_strides_; ++i) {
        if (is_float) {
          (*strides)[i].AddFloats(StrideValues(buffer, buffer.floats, i));
        } else {
          (*strides)[i].AddDoubles(StrideValues(buffer, buffer.doubles, i));
        }
      }
      auto byte_cuts = cuts;
      for (uint64_t& cut : byte_cuts) cut *= size;
      return StoreRaw(place, StreamKind::kData,
                      is_float ? AsBytes(buffer.floats) : AsBytes(buffer.doubles), byte_cuts);
    }
    case TypeKind::kString:
    case TypeKind::kBinary:
      return EncodeString(place, strides, encoding);
    case TypeKind::kTimestamp:
      width(12);
      return EncodeTimestamp(place);
    case TypeKind::kList:
    case TypeKind::kMap:
      return StoreLengths(place, StreamKind::kLength, buffer.lengths, cuts, true);
    case TypeKind::kStruct:
      return;
  }
}

void ColumnEncoder::EncodeInteger(const Place& place, Strides* strides,
                                  proto::ColumnEncoding* encoding) {
  const ColumnBuffer& buffer = place.buffer;
  for (size_t i = 0; i < num_strides_; ++i)
    (*strides)[i].AddIntegers(StrideValues(buffer, buffer.integers, i));
  const WriterOptions& options = policy_.options();
  const DictionaryUse use = policy_.column(buffer.node).dictionary;
  const bool free = use == DictionaryUse::kAuto || use == DictionaryUse::kNever;
  const auto cuts = ValueCuts(buffer);
  const uint32_t width = IntegerWidth(buffer.kind);
  layout[buffer.node].integers += buffer.values > 0 ? 1 : 0;
  if (options.goal != LayoutGoal::kFixed && options.use_vints && free && buffer.values > 0)
    return StoreDraft(place, CheapestDraft(buffer, cuts, use == DictionaryUse::kAuto), encoding);

  DictionaryDraftOptions dictionary{width, options.use_vints, false, nullptr, UINT64_MAX};
  const auto shared = shared_.find(buffer.node);
  const bool is_shared = use == DictionaryUse::kShared && shared != shared_.end();
  if (buffer.values > 0 && (use == DictionaryUse::kAlways || is_shared)) {
    if (is_shared) dictionary.shared = &shared->second;
    return StoreDraft(place, *DraftDictionary(buffer.integers, cuts, dictionary), encoding);
  }
  IntegerDraft direct = DraftDirect(buffer.integers, options.use_vints ? 0 : width, cuts);
  if (buffer.values > 0 && use == DictionaryUse::kAuto && !policy_.InFlat(buffer.node)) {
    dictionary.most_entries = MostEntries(options.integer_dictionary_threshold, buffer.values);
    const auto draft = DraftDictionary(buffer.integers, cuts, dictionary);
    if (draft && draft->plain_bytes < direct.plain_bytes)
      return StoreDraft(place, *draft, encoding);
  }
  StoreDraft(place, direct, encoding);
}

// The encoding of the format that costs readers least.
IntegerDraft ColumnEncoder::CheapestDraft(const ColumnBuffer& buffer,
                                          std::span<const uint64_t> cuts, bool may_dictionary) {
  // Fixed width pays for values that are nearly as long as varints; and where a codec folds the
  // zeros of shorter ones, not below this.
  constexpr double kLeastVarintShare = 0.6;
  const WriterOptions& options = policy_.options();
  const ColumnOptions& column = policy_.column(buffer.node);
  const ChunkPacking packing{column.compress, column.level, column.min_ratio};
  const uint32_t width = IntegerWidth(buffer.kind);
  IntegerDraft best = DraftDirect(buffer.integers, 0, cuts);
  LayoutCost least = best.Pack(packing, chunks_);
  NodeLayout& figures = layout[buffer.node];
  figures.varints.Add(least);
  const auto consider = [&](IntegerDraft draft) {
    const LayoutCost cost = draft.Pack(packing, chunks_);
    if (cost.At(options.goal) >= least.At(options.goal)) return;
    least = cost;
    best = std::move(draft);
  };
  if (static_cast<double>(best.plain_bytes) >=
      kLeastVarintShare * static_cast<double>(buffer.values * width))
    consider(DraftDirect(buffer.integers, width, cuts));
  if (may_dictionary) {
    const DictionaryDraftOptions dictionary{
        width, true, true, nullptr,
        MostEntries(options.integer_dictionary_threshold, buffer.values)};
    if (auto draft = DraftDictionary(buffer.integers, cuts, dictionary))
      consider(*std::move(draft));
  }
  figures.values.Add(least);
  if (best.encoding == EncodingKind::kDictionary) {
    ++figures.dictionaries;
  } else if (!best.streams[0].use_vints) {
    ++figures.fixed_width;
  }
  return best;
}

void ColumnEncoder::StoreDraft(const Place& place, const IntegerDraft& draft,
                               proto::ColumnEncoding* encoding) {
  encoding->set_kind(static_cast<uint32_t>(draft.encoding));
  encoding->set_dictionary_size(draft.dictionary_size);
  layout[place.buffer.node].stored.ns += draft.decode_ns;
  for (const StreamDraft& stream : draft.streams) {
    const bool is_packed = stream.packed.size() > 0 && policy_.GroupOf(place.buffer.node) == 0;
    Store(place, stream.kind, stream.plain.span(), stream.integers && !stream.use_vints,
          stream.marks, stream.numbers, is_packed ? &stream : nullptr);
  }
}

void ColumnEncoder::EncodeString(const Place& place, Strides* strides,
                                 proto::ColumnEncoding* encoding) {
  const ColumnBuffer& buffer = place.buffer;
  const auto views = StringViews(buffer);
  for (size_t i = 0; i < num_strides_; ++i) {
    StatisticsBuilder& stride = (*strides)[i];
    for (const std::string_view view : StrideValues(buffer, views, i)) {
      stride.raw_bytes += view.size();
      if (buffer.kind == TypeKind::kString) {
        stride.AddString(view, 1);
      } else {
        stride.AddBinaryBytes(view.size());
      }
    }
  }
  const DictionaryUse use = policy_.column(buffer.node).dictionary;
  const bool allowed =
      use == DictionaryUse::kAlways ||
      (use == DictionaryUse::kAuto &&
       (!policy_.InFlat(buffer.node) || policy_.options().goal != LayoutGoal::kFixed));
  if (buffer.kind == TypeKind::kString && allowed && !views.empty() &&
      EncodeStringDictionary(place, views, encoding))
    return;
  std::vector<uint64_t> byte_cuts;
  for (const Cut& cut : buffer.cuts) byte_cuts.push_back(cut.bytes);
  StoreRaw(place, StreamKind::kData, buffer.bytes.span(), byte_cuts);
  StoreLengths(place, StreamKind::kLength, buffer.lengths, ValueCuts(buffer), true);
}

// False, with nothing stored, where a dictionary was not forced and does not pay.
bool ColumnEncoder::EncodeStringDictionary(const Place& place,
                                           std::span<const std::string_view> values,
                                           proto::ColumnEncoding* encoding) {
  const ColumnBuffer& buffer = place.buffer;
  const bool forced = policy_.column(buffer.node).dictionary == DictionaryUse::kAlways;
  const uint64_t limit = MostEntries(policy_.options().string_dictionary_threshold, values.size());
  Interner<std::string_view> interner;
  std::vector<uint32_t> ids;
  for (const std::string_view value : values) {
    ids.push_back(interner.Intern(value));
    if (!forced && interner.values().size() > limit) return false;
  }
  // A stride dictionary's size is told by the row index alone: without one, all entries go into the
  // stripe dictionary.
  const DictionaryOrder order =
      OrderDictionary(interner.counts(), policy_.options().row_index_stride == 0);
  ByteSink dictionary, stride_bytes, rows;
  std::vector<uint32_t> lengths, stride_lengths, indices;
  std::vector<uint64_t> stride_byte_cuts, stride_entry_cuts;
  BitBuffer in_dictionary;
  const auto append = [](std::string_view text, ByteSink* sink, std::vector<uint32_t>* sizes) {
    sink->Append({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    sizes->push_back(static_cast<uint32_t>(text.size()));
  };
  for (const uint32_t id : order.entries) append(interner.values()[id], &dictionary, &lengths);
  for (size_t stride = 0; stride < num_strides_; ++stride) {
    stride_byte_cuts.push_back(stride_bytes.size());
    stride_entry_cuts.push_back(stride_lengths.size());
    for (uint64_t i = buffer.cuts[stride].values; i < StrideEnd(buffer, stride); ++i) {
      const uint32_t at = order.places[ids[i]];
      const bool inside = at != DictionaryOrder::kOutside;
      in_dictionary.Append(inside);
      indices.push_back(
          inside ? at : static_cast<uint32_t>(stride_lengths.size() - stride_entry_cuts[stride]));
      if (!inside) append(values[i], &stride_bytes, &stride_lengths);
    }
  }
  const auto cuts = ValueCuts(buffer);
  std::vector<Mark> row_marks;
  EncodeIntegerRuns(indices, Form(false, 4), cuts, &rows, &row_marks);
  const bool all_inside = stride_lengths.empty();
  if (!forced) {  // lengths are about a byte each, in the dictionary and in the direct form
    const uint64_t size = dictionary.size() + stride_bytes.size() + rows.size() + lengths.size() +
                          stride_lengths.size() + (all_inside ? 0 : values.size() / 8);
    if (size >= buffer.bytes.size() + values.size()) return false;
  }
  encoding->set_kind(static_cast<uint32_t>(EncodingKind::kDictionary));
  encoding->set_dictionary_size(static_cast<uint32_t>(order.entries.size()));
  StoreRaw(place, StreamKind::kDictionaryData, dictionary.span(), {});
  StoreLengths(place, StreamKind::kLength, lengths, {}, false);
  if (!all_inside) {
    StoreRaw(place, StreamKind::kStrideDictionary, stride_bytes.span(), stride_byte_cuts);
    StoreLengths(place, StreamKind::kStrideDictionaryLength, stride_lengths, stride_entry_cuts,
                 true);
    for (size_t stride = 0; stride < num_strides_; ++stride) {
      const uint64_t end =
          stride + 1 < num_strides_ ? stride_entry_cuts[stride + 1] : stride_lengths.size();
      slots_[place.slot]
          .index->mutable_entry(static_cast<int>(stride))
          ->add_positions(end - stride_entry_cuts[stride]);
    }
  }
  Store(place, StreamKind::kData, rows.span(), !policy_.options().use_vints, row_marks, 1);
  if (!all_inside) StoreBits(place, StreamKind::kInDictionary, in_dictionary, cuts);
  return true;
}

void ColumnEncoder::EncodeTimestamp(const Place& place) {
  const ColumnBuffer& buffer = place.buffer;
  const auto cuts = ValueCuts(buffer);
  std::vector<int64_t> seconds(buffer.values), nanos(buffer.values);
  for (uint64_t i = 0; i < buffer.values; ++i) {
    // The format inherits a rounding towards zero: a fraction before 1970 counts from the next
    // second.
    const bool rounded = buffer.integers[i] < 0 && buffer.nanos[i] != 0;
    seconds[i] = static_cast<int64_t>(static_cast<uint64_t>(buffer.integers[i]) +
                                      (rounded ? 1 : 0) - static_cast<uint64_t>(kTimestampBase));
    nanos[i] = PackNanos(buffer.nanos[i]);
  }
  scratch_.Clear();
  marks_.clear();
  EncodeIntegerRuns(seconds, Form(true, 8), cuts, &scratch_, &marks_);
  Store(place, StreamKind::kData, scratch_.span(), !policy_.options().use_vints, marks_, 1);
  scratch_.Clear();
  marks_.clear();
  EncodeIntegerRuns(nanos, Form(false, 8), cuts, &scratch_, &marks_);
  Store(place, StreamKind::kNanoData, scratch_.span(), !policy_.options().use_vints, marks_, 1);
}

void ColumnEncoder::StoreBits(const Place& place, StreamKind kind, const BitBuffer& bits,
                              std::span<const uint64_t> cuts) {
  scratch_.Clear();
  marks_.clear();
  EncodeBits(bits, cuts, &scratch_, &marks_);
  Store(place, kind, scratch_.span(), false, marks_, 2);
}

void ColumnEncoder::StoreLengths(const Place& place, StreamKind kind,
                                 std::span<const uint32_t> lengths, std::span<const uint64_t> cuts,
                                 bool indexed) {
  scratch_.Clear();
  marks_.clear();
  EncodeIntegerRuns(lengths, Form(false, 4), cuts, &scratch_, &marks_);
  Store(place, kind, scratch_.span(), !policy_.options().use_vints,
        indexed ? std::span<const Mark>(marks_) : std::span<const Mark>(), 1);
}

void ColumnEncoder::StoreRaw(const Place& place, StreamKind kind, std::span<const uint8_t> plain,
                             std::span<const uint64_t> byte_cuts) {
  marks_.clear();
  for (const uint64_t cut : byte_cuts) marks_.push_back({cut, 0, 0});
  Store(place, kind, plain, false, marks_, 0);
}

void ColumnEncoder::Store(const Place& place, StreamKind kind, std::span<const uint8_t> plain,
                          bool fixed_width, std::span<const Mark> marks, int numbers,
                          const StreamDraft* packed) {
  const uint32_t node = place.buffer.node;
  const uint64_t before = data.size();
  const ColumnOptions& options = policy_.column(node);
  ChunkMap map;
  if (packed != nullptr) {
    data.Append(packed->packed.span());
    map = packed->map;
  } else {
    map = StoreSection(node, place.sequence, kind, plain,
                       {options.compress, options.level, options.min_ratio}, &data);
  }
  const uint64_t length = data.size() - before;
  if (length > kMaxStreamBytes)
    throw Error(ExitCode::kUsage,
                fmt::format("a stream of {} bytes is over the format's 2 GiB", length),
                fmt::format("column '{}'", schema_.Path(node)), "use smaller stripes");
  stored_bytes[node] += length;
  NodeLayout& figures = layout[node];
  ++figures.streams;
  figures.compressed_streams += map.decompress_ns > 0 ? 1 : 0;
  figures.stored.Add({static_cast<double>(length), map.decompress_ns + kStreamNs});
  streams_.push_back({policy_.GroupOf(node), kind, node, place.sequence, length, fixed_width});
  for (size_t i = 0; i < marks.size(); ++i) {
    auto* positions =
        slots_[place.slot].index->mutable_entry(static_cast<int>(i))->mutable_positions();
    map.AddPosition(marks[i].byte, positions);
    if (numbers >= 1) positions->Add(marks[i].skip);
    if (numbers >= 2) positions->Add(marks[i].bits);
  }
}

proto::ColumnEncoding* ColumnEncoder::AddEncoding(uint32_t node) {
  const uint32_t group = policy_.GroupOf(node);
  return group == 0 ? footer.add_encoding() : groups[group - 1].add_encoding();
}

ChunkMap ColumnEncoder::StoreSection(uint32_t node, uint32_t sequence, StreamKind kind,
                                     std::span<const uint8_t> plain, const ChunkPacking& packing,
                                     ByteSink* sink) {
  const uint32_t group = policy_.GroupOf(node);
  if (group == 0) return chunks_->Encode(plain, packing, sink);
  ChunkPlace place;
  place.stripe = stripe_;
  place.ordinal = IsIndexStream(kind) ? next_index_[group - 1]++ : next_data_[group - 1]++;
  place.node = node;
  place.sequence = sequence;
  place.kind = static_cast<uint8_t>(kind);
  const ChunkSeal seal = encryptor_.Seal(group, place);
  return chunks_->Encode(plain, packing, sink, &seal);
}

// The index streams come first in the file, so their entries go before the data streams' in the
// footer.
void ColumnEncoder::FinishIndex() {
  std::vector<StreamRecord> order;
  for (const IndexSlot& slot : slots_) {
    if (policy_.options().row_index_stride == 0) break;
    const std::string plain = slot.index->SerializeAsString();
    const uint64_t before = index.size();
    StoreSection(slot.node, slot.sequence, StreamKind::kRowIndex,
                 {reinterpret_cast<const uint8_t*>(plain.data()), plain.size()}, {}, &index);
    const uint64_t length = index.size() - before;
    order.push_back({policy_.GroupOf(slot.node), StreamKind::kRowIndex, slot.node, slot.sequence,
                     length, false});
    stored_bytes[slot.node] += length;
  }
  order.insert(order.end(), streams_.begin(), streams_.end());
  streams_.clear();
  ListStreams(order);
}

// Readers add up the lengths of each list; where a list goes on behind streams of another it says
// so.
void ColumnEncoder::ListStreams(const std::vector<StreamRecord>& order) {
  uint64_t offset = 0;
  uint32_t last_group = 0;
  for (const StreamRecord& record : order) {
    proto::Stream* stream =
        record.group == 0 ? footer.add_streams() : groups[record.group - 1].add_streams();
    stream->set_kind(static_cast<uint32_t>(record.kind));
    stream->set_node(record.node);
    stream->set_length(record.length);
    if (record.is_fixed_width) stream->set_use_vints(false);
    if (record.sequence != 0) stream->set_sequence(record.sequence);
    if (record.group != last_group) stream->set_offset(offset);
    last_group = record.group;
    offset += record.length;
  }
}

}  // namespace headrace::reader::dwrf
