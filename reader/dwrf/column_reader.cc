#include "reader/dwrf/column_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <optional>

#include "base/error.h"
#include "reader/dwrf/column_gather.h"
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

namespace {

bool IsText(TypeKind kind) { return kind == TypeKind::kString || kind == TypeKind::kBinary; }

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

uint8_t IntegerWidth(TypeKind kind) {
  return kind == TypeKind::kShort ? 2 : kind == TypeKind::kInt ? 4 : 8;
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

// A leaf whose decoders are one copyable struct: Mark is a copy.
template <typename State>
class LeafReader : public NodeReader {
 public:
  using NodeReader::NodeReader;

 protected:
  void MarkValues() final { marked_ = state_; }
  void RewindValues() final { state_ = marked_; }
  // Appends slots to `vector`, calling `next` for each value.
  template <typename T, typename Next>
  void Fill(uint64_t slots, const uint8_t* present, std::vector<T>* vector, Next next) {
    site_.context->budget->Charge(slots, sizeof(T));
    for (uint64_t i = 0; i < slots; ++i) {
      vector->push_back(present == nullptr || present[i] != 0 ? static_cast<T>(next()) : T{});
    }
  }
  State state_, marked_;
};

struct BoolState {
  BoolDecoder data;
};
class BooleanReader final : public LeafReader<BoolState> {
 public:
  BooleanReader(Site site, bool flat) : LeafReader(site, flat) {
    state_.data = BoolDecoder(site.Open(StreamKind::kData));
  }

 private:
  void ReadValues(uint64_t values, uint64_t slots, const uint8_t* present, Column* out) override {
    site_.context->budget->Charge(slots, 1);
    bits_.resize(values);
    state_.data.Read(values, bits_.data());
    const uint8_t* next = bits_.data();
    Fill(slots, present, &out->integers, [&] { return *next++; });
  }
  void SkipValues(uint64_t values) override { state_.data.Skip(values); }
  void SeekValues(uint64_t, Positions* positions) override {
    const Positions::Bool p = positions->TakeBool();
    state_.data.Seek(p.stored, p.within, p.values, p.bits);
  }
  std::vector<uint8_t> bits_;
};

struct ByteState {
  ByteRleDecoder data;
};
class ByteReader final : public LeafReader<ByteState> {
 public:
  ByteReader(Site site, bool flat) : LeafReader(site, flat) {
    state_.data = ByteRleDecoder(site.Open(StreamKind::kData));
  }

 private:
  void ReadValues(uint64_t, uint64_t slots, const uint8_t* present, Column* out) override {
    Fill(slots, present, &out->integers, [&] { return static_cast<int8_t>(state_.data.Next()); });
  }
  void SkipValues(uint64_t values) override { state_.data.Skip(values); }
  void SeekValues(uint64_t, Positions* positions) override {
    const Positions::Run p = positions->TakeRun();
    state_.data.Seek(p.stored, p.within, p.values);
  }
};

struct DirectState {
  DirectDecoder data;
};
class DirectIntegerReader final : public LeafReader<DirectState> {
 public:
  DirectIntegerReader(Site site, bool flat) : LeafReader(site, flat) {
    state_.data = DirectDecoder(
        site.Open(StreamKind::kData),
        site.Format(StreamKind::kData, true, IntegerWidth(site.type().kind), site.sequence));
  }

 private:
  void ReadValues(uint64_t, uint64_t slots, const uint8_t* present, Column* out) override {
    const int unused = 64 - 8 * IntegerWidth(site_.type().kind);
    Fill(slots, present, &out->integers, [&] {
      const int64_t value = state_.data.Next();
      const int64_t narrow = static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
      if (narrow != value)
        site_.Throw(fmt::format("value {} is not a {}", value, TypeKindName(site_.type().kind)));
      return value;
    });
  }
  void SkipValues(uint64_t values) override { state_.data.Skip(values); }
  void SeekValues(uint64_t, Positions* positions) override {
    const Positions::Byte p = positions->TakeByte();
    state_.data.Seek(p.stored, p.within);
  }
};

// Entries a dictionary of the stripe may have: as declared, if the streams can hold them and memory
// may.
void CheckDictionarySize(const Site& site, uint64_t entries, uint64_t each,
                         uint64_t most_by_stream) {
  if (entries > most_by_stream) {
    site.Throw(
        fmt::format("a dictionary of {} entries, the stream can hold {}", entries, most_by_stream));
  }
  if (entries > site.context->max_dictionary_bytes / each) {
    throw Error(ExitCode::kResources,
                fmt::format("a dictionary of {} entries is too large", entries), site.Where());
  }
}

// 8.1: DATA holds indices, or the value itself where IN_DICTIONARY is 0.
struct IntegerDictionaryState {
  std::optional<BoolDecoder> in_dictionary;
  RleDecoder data;
};
class DictionaryIntegerReader final : public LeafReader<IntegerDictionaryState> {
 public:
  DictionaryIntegerReader(Site site, bool flat, uint32_t size) : LeafReader(site, flat) {
    const uint8_t width = IntegerWidth(site.type().kind);
    state_.data = site.Rle(StreamKind::kData, false, width);
    if (site.Has(StreamKind::kInDictionary))
      state_.in_dictionary.emplace(site.Open(StreamKind::kInDictionary));
    // 9.4: the sequence's own dictionary, else the one shared at sequence 0.
    const uint32_t owner = site.Lists(StreamKind::kDictionaryData) ? site.sequence : 0;
    auto& shared = site.context->dictionaries[uint64_t{site.node} << 32 | owner];
    if (!shared || (shared->load == nullptr && shared->values.size() != size)) {
      shared = std::make_shared<IntegerDictionary>();
      shared->load = [site, owner, size, width](std::vector<int64_t>* values) {
        DirectDecoder data(site.Open(StreamKind::kDictionaryData, owner),
                           site.Format(StreamKind::kDictionaryData, true, width, owner));
        CheckDictionarySize(site, size, 8, data.stream().MaxBytesLeft());
        for (uint32_t i = 0; i < size; ++i) values->push_back(data.Next());
      };
    }
    dictionary_ = shared;
    size_ = size;
  }

 private:
  void ReadValues(uint64_t values, uint64_t slots, const uint8_t* present, Column* out) override {
    if (state_.in_dictionary) {
      site_.context->budget->Charge(slots, 1);
      bits_.resize(values);
      state_.in_dictionary->Read(values, bits_.data());
    }
    const std::vector<int64_t>& dictionary = dictionary_->Get();
    const int unused = 64 - 8 * IntegerWidth(site_.type().kind);
    size_t next = 0;
    Fill(slots, present, &out->integers, [&] {
      const auto number = static_cast<uint64_t>(state_.data.Next());
      if (state_.in_dictionary && bits_[next++] == 0)
        return static_cast<int64_t>(number << unused) >> unused;
      if (number >= size_ || number >= dictionary.size()) {
        site_.Throw(fmt::format("index {} into a dictionary of {} entries", number, size_));
      }
      return dictionary[number];
    });
  }
  void SkipValues(uint64_t values) override {
    if (state_.in_dictionary) state_.in_dictionary->Skip(values);
    state_.data.Skip(values);
  }
  void SeekValues(uint64_t, Positions* positions) override {
    if (site_.Lists(StreamKind::kInDictionary)) {
      const Positions::Bool p = positions->TakeBool();
      if (state_.in_dictionary) state_.in_dictionary->Seek(p.stored, p.within, p.values, p.bits);
    }
    const Positions::Run p = positions->TakeRun();
    state_.data.Seek(p.stored, p.within, p.values);
  }

  std::shared_ptr<IntegerDictionary> dictionary_;
  uint64_t size_ = 0;
  std::vector<uint8_t> bits_;
};

struct RawState {
  ByteStream data;
};
template <typename T>
class FloatingReader final : public LeafReader<RawState> {
 public:
  FloatingReader(Site site, bool flat) : LeafReader<RawState>(site, flat) {
    this->state_.data = site.Open(StreamKind::kData);
  }

 private:
  void ReadValues(uint64_t, uint64_t slots, const uint8_t* present, Column* out) override {
    auto next = [&] {
      T value;
      this->state_.data.Read(reinterpret_cast<uint8_t*>(&value), sizeof(T));
      return value;
    };
    if constexpr (sizeof(T) == 4) {
      this->Fill(slots, present, &out->floats, next);
    } else {
      this->Fill(slots, present, &out->doubles, next);
    }
  }
  void SkipValues(uint64_t values) override {
    if (values > UINT64_MAX / sizeof(T)) this->site_.Throw("more values than a stream can hold");
    this->state_.data.Skip(values * sizeof(T));
  }
  void SeekValues(uint64_t, Positions* positions) override {
    const Positions::Byte p = positions->TakeByte();
    this->state_.data.Seek(p.stored, p.within);
  }
};

// 8.3. Stored seconds count from the base; a Java rounding quirk moves negative times with a
// fraction by one second.
struct TimestampState {
  RleDecoder seconds, nanos;
};
class TimestampReader final : public LeafReader<TimestampState> {
 public:
  TimestampReader(Site site, bool flat) : LeafReader(site, flat) {
    state_.seconds = site.Rle(StreamKind::kData, true, 8);
    state_.nanos = site.Rle(StreamKind::kNanoData, false, 8);
  }

 private:
  void ReadValues(uint64_t, uint64_t slots, const uint8_t* present, Column* out) override {
    Fill(slots, present, &out->nanos,
         [&] { return Nanos(static_cast<uint64_t>(state_.nanos.Next())); });
    Fill(slots, present, &out->integers, [&] { return state_.seconds.Next(); });
    for (uint64_t i = 0; i < slots; ++i) {
      if (present != nullptr && present[i] == 0) continue;
      const bool has_nanos = out->nanos[out->nanos.size() - slots + i] != 0;
      int64_t& seconds = out->integers[out->integers.size() - slots + i];
      seconds = static_cast<int64_t>(static_cast<uint64_t>(seconds) +
                                     static_cast<uint64_t>(site_.context->timestamp_base));
      if (seconds < 0 && has_nanos && seconds != INT64_MIN) --seconds;
    }
  }
  int32_t Nanos(uint64_t stored) const {
    const uint64_t zeros = stored & 7;
    uint64_t value = stored >> 3;
    if (value > 999999999) site_.Throw(fmt::format("{} nanoseconds in a timestamp", value));
    if (zeros != 0) {
      for (uint64_t i = 0; i < zeros + 1; ++i) value *= 10;
    }
    if (value > 999999999) site_.Throw(fmt::format("{} nanoseconds in a timestamp", value));
    return static_cast<int32_t>(value);
  }
  void SkipValues(uint64_t values) override {
    state_.seconds.Skip(values);
    state_.nanos.Skip(values);
  }
  void SeekValues(uint64_t, Positions* positions) override {
    Positions::Run p = positions->TakeRun();
    state_.seconds.Seek(p.stored, p.within, p.values);
    p = positions->TakeRun();
    state_.nanos.Seek(p.stored, p.within, p.values);
  }
};

// One length, checked so that sums stay far from 64 bits.
uint64_t NextLength(const Site& site, RleDecoder* lengths) {
  const auto length = static_cast<uint64_t>(lengths->Next());
  if (length > uint64_t{1} << 48) site.Throw(fmt::format("length {}", length));
  return length;
}

struct DirectStringState {
  RleDecoder lengths;
  ByteStream data;
};
class DirectStringReader final : public LeafReader<DirectStringState> {
 public:
  DirectStringReader(Site site, bool flat) : LeafReader(site, flat) {
    state_.lengths = site.Rle(StreamKind::kLength, false, 4);
    state_.data = site.Open(StreamKind::kData);
  }

 private:
  void ReadValues(uint64_t, uint64_t slots, const uint8_t* present, Column* out) override {
    const uint64_t before = out->offsets.back();
    uint64_t offset = before;
    const uint64_t most = state_.data.MaxBytesLeft();
    Fill(slots, present, &out->offsets, [&] { return NextLength(site_, &state_.lengths); });
    for (size_t i = out->offsets.size() - slots; i < out->offsets.size(); ++i) {
      offset += out->offsets[i];
      if (offset - before > most) {
        site_.Throw(fmt::format("strings of {} bytes or more, the stream can hold {}",
                                offset - before, most));
      }
      out->offsets[i] = offset;
    }
    site_.context->budget->Charge(offset - before, 1);
    // One allocation: growing a string of hundreds of megabytes would hold it twice.
    if (offset - before > 1 << 20) out->bytes.reserve(offset);
    state_.data.AppendTo(&out->bytes, offset - before);
  }
  void SkipValues(uint64_t values) override {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < values; ++i) {
      bytes += NextLength(site_, &state_.lengths);
      if (bytes > uint64_t{1} << 50) {
        state_.data.Skip(bytes);
        bytes = 0;
      }
    }
    state_.data.Skip(bytes);
  }
  void SeekValues(uint64_t, Positions* positions) override {
    const Positions::Byte data = positions->TakeByte();
    state_.data.Seek(data.stored, data.within);
    const Positions::Run p = positions->TakeRun();
    state_.lengths.Seek(p.stored, p.within, p.values);
  }
};

struct StringDictionary {
  std::vector<uint64_t> offsets{0};
  std::string bytes;
  std::string_view at(uint64_t i) const {
    return std::string_view(bytes).substr(offsets[i], offsets[i + 1] - offsets[i]);
  }
  uint64_t size() const { return offsets.size() - 1; }
};

void LoadStrings(const Site& site, uint64_t entries, RleDecoder* lengths, ByteStream* data,
                 StringDictionary* out) {
  const uint64_t most = lengths->stream().MaxBytesLeft();
  CheckDictionarySize(site, entries, 8, most > UINT64_MAX / 130 ? UINT64_MAX : (most + 1) * 130);
  const uint64_t most_bytes = std::min(data->MaxBytesLeft(), site.context->max_dictionary_bytes);
  for (uint64_t i = 0; i < entries; ++i) {
    out->offsets.push_back(out->offsets.back() + NextLength(site, lengths));
    if (out->offsets.back() > most_bytes)
      site.Throw(fmt::format("dictionary strings of more than {} bytes", most_bytes));
  }
  data->AppendTo(&out->bytes, out->offsets.back());
}

// 8.2: indices into the stripe's dictionary, or, where IN_DICTIONARY is 0, into the current
// stride's.
struct DictionaryStringState {
  std::optional<BoolDecoder> in_dictionary;
  RleDecoder data;
  RleDecoder stride_lengths;
  ByteStream stride_data;
  uint64_t next_stride = 0;  // whose entries stride_lengths and stride_data are at
  std::shared_ptr<const StringDictionary> stride;
};
class DictionaryStringReader final : public LeafReader<DictionaryStringState> {
 public:
  DictionaryStringReader(Site site, bool flat, uint32_t size)
      : LeafReader(site, flat), size_(size), flat_(flat) {
    state_.data = site.Rle(StreamKind::kData, false, 4);
    if (site.Has(StreamKind::kInDictionary)) {
      state_.in_dictionary.emplace(site.Open(StreamKind::kInDictionary));
      state_.stride_lengths = site.Rle(StreamKind::kStrideDictionaryLength, false, 4);
      state_.stride_data = site.Open(StreamKind::kStrideDictionary);
    }
  }
  bool NeedsStrides() const override { return state_.in_dictionary.has_value(); }
  // The dictionaries of skipped strides are passed over in order: right whatever the index says.
  void BeginStride(uint64_t stride) override {
    if (!state_.in_dictionary) return;
    if (counts_.empty()) LoadCounts();
    if (stride < state_.next_stride) site_.Throw("a stride before the current one");
    for (; state_.next_stride < stride; ++state_.next_stride) {
      uint64_t bytes = 0;
      for (uint64_t i = Count(state_.next_stride); i > 0; --i) {
        bytes += NextLength(site_, &state_.stride_lengths);
        if (bytes > uint64_t{1} << 50) site_.Throw("stride dictionary too large");
      }
      state_.stride_data.Skip(bytes);
    }
    auto dictionary = std::make_shared<StringDictionary>();
    LoadStrings(site_, Count(stride), &state_.stride_lengths, &state_.stride_data,
                dictionary.get());
    state_.stride = std::move(dictionary);
    state_.next_stride = stride + 1;
  }

 private:
  uint64_t Count(uint64_t stride) const {
    if (stride >= counts_.size())
      site_.Throw(fmt::format("the row index has no entry for stride {}", stride));
    return counts_[stride];
  }
  // The number of entries of each stride's dictionary stands in the row index only.
  void LoadCounts() {
    RowIndexReader index(*site_.context->file, site_.stripe(), site_.node, site_.sequence);
    const bool framed = site_.IsFramed();
    proto::RowIndexEntry entry;
    while (index.Next(&entry)) {
      const std::vector<uint64_t> numbers(entry.positions().begin(), entry.positions().end());
      Positions positions(numbers, framed, [this](const std::string& what) { site_.Throw(what); });
      if (flat_) positions.TakeBool();
      if (site_.Lists(StreamKind::kPresent)) positions.TakeBool();
      if (site_.Lists(StreamKind::kStrideDictionary)) positions.TakeByte();
      positions.TakeRun();
      counts_.push_back(positions.Take());
    }
    if (counts_.empty()) site_.Throw("stride dictionaries without a row index");
  }
  void ReadValues(uint64_t values, uint64_t slots, const uint8_t* present, Column* out) override {
    if (!dictionary_) {
      auto dictionary = std::make_shared<StringDictionary>();
      RleDecoder lengths = site_.Rle(StreamKind::kLength, false, 4);
      ByteStream data = site_.Open(StreamKind::kDictionaryData);
      LoadStrings(site_, size_, &lengths, &data, dictionary.get());
      dictionary_ = std::move(dictionary);
    }
    if (state_.in_dictionary) {
      site_.context->budget->Charge(slots, 1);
      bits_.resize(values);
      state_.in_dictionary->Read(values, bits_.data());
    }
    size_t next = 0;
    Fill(slots, present, &out->offsets, [&] {
      const auto index = static_cast<uint64_t>(state_.data.Next());
      const bool in_stripe = !state_.in_dictionary || bits_[next++] != 0;
      const StringDictionary* dictionary = in_stripe ? dictionary_.get() : state_.stride.get();
      const uint64_t size = dictionary == nullptr ? 0 : dictionary->size();
      if (index >= size) {
        site_.Throw(fmt::format("index {} into a {} dictionary of {} entries", index,
                                in_stripe ? "stripe" : "stride", size));
      }
      const std::string_view text = dictionary->at(index);
      site_.context->budget->Charge(text.size(), 1);
      out->bytes.append(text);
      return out->bytes.size();
    });
    // Null slots repeat the offset before them.
    for (size_t i = out->offsets.size() - slots; i < out->offsets.size(); ++i) {
      out->offsets[i] = std::max(out->offsets[i], out->offsets[i - 1]);
    }
  }
  void SkipValues(uint64_t values) override {
    if (state_.in_dictionary) state_.in_dictionary->Skip(values);
    state_.data.Skip(values);
  }
  void SeekValues(uint64_t, Positions* positions) override {
    if (site_.Lists(StreamKind::kInDictionary)) {
      if (site_.Lists(StreamKind::kStrideDictionary)) positions->TakeByte();
      positions->TakeRun();
      positions->Take();
    }
    const Positions::Run p = positions->TakeRun();
    state_.data.Seek(p.stored, p.within, p.values);
    if (site_.Lists(StreamKind::kInDictionary)) {
      const Positions::Bool b = positions->TakeBool();
      if (state_.in_dictionary) state_.in_dictionary->Seek(b.stored, b.within, b.values, b.bits);
    }
  }

  uint32_t size_;
  bool flat_;
  std::vector<uint64_t> counts_;
  std::shared_ptr<const StringDictionary> dictionary_;
  std::vector<uint8_t> bits_;
};

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

std::unique_ptr<ColumnReader> Make(Site site, bool is_flat_value, const KeyFilter* keys);

class StructReader final : public ParentReader {
 public:
  StructReader(Site site, bool flat) : ParentReader(site, flat) {
    for (uint32_t child : site.type().children) {
      children_.push_back(Make({site.context, child, site.sequence}, false, nullptr));
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
      children_.push_back(Make({site.context, child, site.sequence}, false, nullptr));
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
      children_.push_back(Make({site.context, child, site.sequence}, false, nullptr));
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
      children_.push_back(Make(at, true, nullptr));
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

class NullReader final : public ColumnReader {
 public:
  explicit NullReader(StripeContext* context) : context_(context) {}
  void Read(uint64_t count, Column* out) override {
    context_->budget->Charge(count, 16);
    AppendNulls(count, out);
  }
  void Skip(uint64_t) override {}
  void Seek(uint64_t) override {}
  void BeginStride(uint64_t) override {}
  bool NeedsStrides() const override { return false; }
  void Mark() override {}
  void Rewind() override {}

 private:
  StripeContext* context_;
};

std::unique_ptr<ColumnReader> Make(Site site, bool is_flat_value, const KeyFilter* keys) {
  // Lenient where an entry is missing: DIRECT (FORMAT section 6).
  const Encoding* found = site.stripe().FindEncoding(site.node, site.sequence);
  const Encoding encoding = found != nullptr ? *found : Encoding{};
  const TypeKind kind = site.type().kind;
  const bool can_be_dictionary =
      kind == TypeKind::kString || (IsInteger(kind) && kind != TypeKind::kByte);
  const bool can_be_flat = kind == TypeKind::kMap && site.sequence == 0;
  if ((encoding.kind == EncodingKind::kDictionary && !can_be_dictionary) ||
      (encoding.kind == EncodingKind::kMapFlat && !can_be_flat)) {
    site.Throw(
        fmt::format("encoding {} on a {}", EncodingKindName(encoding.kind), TypeKindName(kind)));
  }
  const bool dictionary = encoding.kind == EncodingKind::kDictionary;
  switch (kind) {
    case TypeKind::kBoolean:
      return std::make_unique<BooleanReader>(site, is_flat_value);
    case TypeKind::kByte:
      return std::make_unique<ByteReader>(site, is_flat_value);
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      if (dictionary)
        return std::make_unique<DictionaryIntegerReader>(site, is_flat_value,
                                                         encoding.dictionary_size);
      return std::make_unique<DirectIntegerReader>(site, is_flat_value);
    case TypeKind::kFloat:
      return std::make_unique<FloatingReader<float>>(site, is_flat_value);
    case TypeKind::kDouble:
      return std::make_unique<FloatingReader<double>>(site, is_flat_value);
    case TypeKind::kString:
      if (dictionary)
        return std::make_unique<DictionaryStringReader>(site, is_flat_value,
                                                        encoding.dictionary_size);
      return std::make_unique<DirectStringReader>(site, is_flat_value);
    case TypeKind::kBinary:
      return std::make_unique<DirectStringReader>(site, is_flat_value);
    case TypeKind::kTimestamp:
      return std::make_unique<TimestampReader>(site, is_flat_value);
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
  }
  site.Throw("unknown type");
}

}  // namespace

std::unique_ptr<ColumnReader> MakeColumnReader(StripeContext* context, uint32_t node,
                                               const KeyFilter* keys) {
  return Make({context, node, 0}, false, keys);
}

std::unique_ptr<ColumnReader> MakeNullReader(StripeContext* context) {
  return std::make_unique<NullReader>(context);
}

}  // namespace headrace::reader::dwrf
