#include <algorithm>
#include <bit>
#include <limits>

#include "reader/dwrf/node_reader.h"

namespace headrace::reader::dwrf {
namespace {

uint8_t IntegerWidth(TypeKind kind) {
  return kind == TypeKind::kShort ? 2 : kind == TypeKind::kInt ? 4 : 8;
}

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

}  // namespace

std::unique_ptr<ColumnReader> MakeValueReader(Site site, bool is_flat_value,
                                              const Encoding& encoding) {
  const bool dictionary = encoding.kind == EncodingKind::kDictionary;
  switch (site.type().kind) {
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
    default:
      site.Throw("unknown type");
  }
}

}  // namespace headrace::reader::dwrf
