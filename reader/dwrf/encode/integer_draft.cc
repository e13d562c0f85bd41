#include "reader/dwrf/encode/integer_draft.h"

#include <utility>

#include "reader/dwrf/encode/bit_buffer.h"

namespace headrace::reader::dwrf {

LayoutCost IntegerDraft::Pack(const ChunkPacking& packing, ChunkEncoder* chunks) {
  LayoutCost cost{0, decode_ns};
  for (StreamDraft& stream : streams) {
    stream.map = chunks->Encode(stream.plain.span(), packing, &stream.packed);
    cost.Add({static_cast<double>(stream.packed.size()), stream.map.decompress_ns + kStreamNs});
  }
  return cost;
}

IntegerDraft DraftDirect(std::span<const int64_t> values, uint32_t width,
                         std::span<const uint64_t> cuts) {
  IntegerDraft draft;
  StreamDraft& data = draft.streams.emplace_back();
  data.use_vints = width == 0;
  EncodeIntegers(values, {true, width}, cuts, &data.plain, &data.marks);
  draft.plain_bytes = data.plain.size();
  draft.decode_ns =
      width == 0 ? VarintsNs(values.size(), data.plain.size()) : FixedWidthNs(values.size());
  return draft;
}

std::optional<IntegerDraft> DraftDictionary(std::span<const int64_t> values,
                                            std::span<const uint64_t> cuts,
                                            const DictionaryDraftOptions& options) {
  const SharedDictionary* const shared = options.shared;
  Interner<int64_t> own;
  const Interner<int64_t>& interner = shared != nullptr ? shared->values : own;
  std::vector<uint32_t> ids(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ids[i] = shared != nullptr ? shared->values.Find(values[i]) : own.Intern(values[i]);
    if (own.values().size() > options.most_entries) return std::nullopt;
  }
  DictionaryOrder own_order;
  if (shared == nullptr) own_order = OrderDictionary(own.counts(), false);
  const DictionaryOrder& order = shared != nullptr ? shared->order : own_order;

  BitBuffer in_dictionary;
  std::vector<int64_t> indices(values.size());
  bool all_inside = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t at = order.places[ids[i]];
    const bool inside = at != DictionaryOrder::kOutside;
    in_dictionary.Append(inside);
    all_inside &= inside;
    indices[i] = inside ? at : values[i];
  }
  IntegerDraft draft;
  draft.encoding = EncodingKind::kDictionary;
  draft.dictionary_size = static_cast<uint32_t>(order.entries.size());
  draft.decode_ns = DictionaryNs(values.size(), order.entries.size());
  const uint32_t width = options.use_vints ? 0 : options.width;
  if (shared == nullptr) {
    std::vector<int64_t> entries;
    for (const uint32_t id : order.entries) entries.push_back(interner.values()[id]);
    StreamDraft& dictionary = draft.streams.emplace_back();
    dictionary.kind = StreamKind::kDictionaryData;
    dictionary.use_vints = options.use_vints;
    std::vector<Mark> unused;
    EncodeIntegers(entries, {true, width}, {}, &dictionary.plain, &unused);
    if (options.fixed_entries && dictionary.plain.size() > entries.size() * options.width) {
      dictionary.use_vints = false;
      dictionary.plain.Clear();
      EncodeIntegers(entries, {true, options.width}, {}, &dictionary.plain, &unused);
    }
    draft.plain_bytes += dictionary.plain.size();
  }
  if (!all_inside) {
    StreamDraft& flags = draft.streams.emplace_back();
    flags.kind = StreamKind::kInDictionary;
    flags.integers = false;
    flags.numbers = 2;
    EncodeBits(in_dictionary, cuts, &flags.plain, &flags.marks);
    draft.plain_bytes += values.size() / 8;
  }
  StreamDraft& rows = draft.streams.emplace_back();
  rows.use_vints = options.use_vints;
  rows.numbers = 1;
  EncodeIntegerRuns(indices, {false, width}, cuts, &rows.plain, &rows.marks);
  draft.plain_bytes += rows.plain.size();
  return draft;
}

}  // namespace headrace::reader::dwrf
