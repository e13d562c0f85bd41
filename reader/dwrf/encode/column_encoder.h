// ColumnEncoder: turns the column buffers of one full stripe into streams, encodings, row index and
// statistics.
//
//   ColumnBuffer tree -> per (node, sequence): streams in the data area, one ROW_INDEX in the index
//   area, one encoding entry
//
// Order: nodes in pre-order; the keys of a flattened map by LayoutPolicy::FeatureRank, numbered as
// sequences 1, 2, ...; all streams of a key adjacent. Internal to StripeWriter; one object per
// stripe.
#pragma once
#include <google/protobuf/arena.h>

#include <cstdint>
#include <span>
#include <vector>

#include "reader/dwrf/dwrf.pb.h"
#include "reader/dwrf/encode/byte_sink.h"
#include "reader/dwrf/encode/chunk_encoder.h"
#include "reader/dwrf/encode/column_buffer.h"
#include "reader/dwrf/encode/dictionary.h"
#include "reader/dwrf/encode/encryptor.h"
#include "reader/dwrf/encode/integer_draft.h"
#include "reader/dwrf/encode/run_length.h"
#include "reader/dwrf/encode/statistics_builder.h"
#include "reader/dwrf/stripe.h"

namespace headrace::reader::dwrf {

class ColumnEncoder {
  // First, as members below are in it: thousands of messages of a wide stripe, which go at once.
  google::protobuf::Arena arena_;

 public:
  ColumnEncoder(const Schema& schema, const LayoutPolicy& policy, ChunkEncoder* chunks,
                const Encryptor& encryptor, uint32_t stripe)
      : footer(*google::protobuf::Arena::CreateMessage<proto::StripeFooter>(&arena_)),
        groups(encryptor.num_groups()),
        schema_(schema),
        policy_(policy),
        chunks_(chunks),
        encryptor_(encryptor),
        stripe_(stripe),
        next_data_(encryptor.num_groups()),
        next_index_(encryptor.num_groups(), kFirstIndexOrdinal) {}

  // Encodes the whole tree; call once. With `keep_first_present` column 1 has a PRESENT stream even
  // without nulls: a stripe must not be without data.
  void Encode(const ColumnBuffer& root, bool keep_first_present);

  // Results. The footer lists index streams, then data streams, in the order of their bytes; those
  // of encrypted columns are in the lists of their groups alone.
  ByteSink index, data;
  proto::StripeFooter& footer;
  std::vector<proto::StripeEncryptionGroup> groups;
  std::vector<StatisticsBuilder> statistics;  // per node, over the stripe and all keys
  std::vector<uint64_t> stored_bytes;         // per node: its own streams
  std::vector<NodeLayout> layout;             // per node

  // Set before Encode: of each flattened map only so many keys, evenly spread, for a trial; 0: all.
  size_t most_keys = 0;

 private:
  using Strides = std::vector<StatisticsBuilder>;  // one per stride
  struct IndexSlot {
    uint32_t node, sequence;
    proto::RowIndex* index;  // in arena_
  };
  // Of a stream's entry in a footer.
  struct StreamRecord {
    uint32_t group = 0;
    StreamKind kind = StreamKind::kPresent;
    uint32_t node = 0;
    uint32_t sequence = 0;  // 0: of the column itself, not of a key
    uint64_t length = 0;
    bool is_fixed_width = false;
  };
  // The node being encoded.
  struct Place {
    const ColumnBuffer& buffer;
    uint32_t sequence;
    size_t slot;  // in slots_
  };

  Strides EncodeNode(const ColumnBuffer& buffer, uint32_t sequence, const FlatKeyBuffer* key,
                     const ColumnBuffer* map);
  void EncodeKeys(const ColumnBuffer& map, Strides* strides);
  void EncodeValues(const Place& place, Strides* strides, proto::ColumnEncoding* encoding);
  void EncodeInteger(const Place& place, Strides* strides, proto::ColumnEncoding* encoding);
  IntegerDraft CheapestDraft(const ColumnBuffer& buffer, std::span<const uint64_t> cuts,
                             bool may_dictionary);
  void StoreDraft(const Place& place, const IntegerDraft& draft, proto::ColumnEncoding* encoding);
  void EncodeString(const Place& place, Strides* strides, proto::ColumnEncoding* encoding);
  bool EncodeStringDictionary(const Place& place, std::span<const std::string_view> values,
                              proto::ColumnEncoding* encoding);
  void EncodeTimestamp(const Place& place);
  void BuildSharedDictionaries(const ColumnBuffer& map);
  void FinishIndex();
  void ListStreams(const std::vector<StreamRecord>& order);
  proto::ColumnEncoding* AddEncoding(uint32_t node);
  // Encodes into `sink`, encrypted where the node is, and says where it went.
  ChunkMap StoreSection(uint32_t node, uint32_t sequence, StreamKind kind,
                        std::span<const uint8_t> plain, const ChunkPacking& packing,
                        ByteSink* sink);

  // Stores one stream and, unless `marks` is empty, adds its positions to the node's row index:
  // `numbers` after the byte position, 0 raw, 1 runs, 2 bits. `fixed_width`: integers that are no
  // varints. `packed`: the same, framed before.
  void Store(const Place& place, StreamKind kind, std::span<const uint8_t> plain, bool fixed_width,
             std::span<const Mark> marks, int numbers, const StreamDraft* packed = nullptr);
  void StoreBits(const Place& place, StreamKind kind, const BitBuffer& bits,
                 std::span<const uint64_t> cuts);
  void StoreLengths(const Place& place, StreamKind kind, std::span<const uint32_t> lengths,
                    std::span<const uint64_t> cuts, bool indexed);
  void StoreRaw(const Place& place, StreamKind kind, std::span<const uint8_t> plain,
                std::span<const uint64_t> byte_cuts);
  IntegerForm Form(bool is_signed, uint32_t width) const {
    return {is_signed, policy_.options().use_vints ? 0 : width};
  }
  std::vector<uint64_t> ValueCuts(const ColumnBuffer& buffer) const;

  const Schema& schema_;
  const LayoutPolicy& policy_;
  ChunkEncoder* chunks_;
  const Encryptor& encryptor_;
  uint32_t stripe_;
  std::vector<uint32_t> next_data_, next_index_;  // ordinals, per group
  std::vector<StreamRecord> streams_;             // of the data area
  bool keep_first_present_ = false;
  size_t num_strides_ = 0;
  std::vector<IndexSlot> slots_;
  std::map<uint32_t, SharedDictionary> shared_;  // by node, of the map being encoded
  ByteSink scratch_;
  std::vector<Mark> marks_;
};

}  // namespace headrace::reader::dwrf
