// IntegerDraft: the integers of one (node, sequence) in one of the encodings the format has, not
// stored yet, so that several can be compared.
//
//   values 7 7 9 7    direct, varints:     DATA 0e 0e 12 0e
//                     direct, fixed width: DATA 8 bytes each (bigint)
//                     dictionary:          DICTIONARY_DATA 0e, IN_DICTIONARY 1101, DATA 0 0 9 0
//
// Internal to ColumnEncoder.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reader/dwrf/encode/byte_sink.h"
#include "reader/dwrf/encode/chunk_encoder.h"
#include "reader/dwrf/encode/dictionary.h"
#include "reader/dwrf/encode/run_length.h"
#include "reader/dwrf/layout_cost.h"
#include "reader/dwrf/stripe.h"

namespace headrace::reader::dwrf {

struct StreamDraft {
  StreamKind kind = StreamKind::kData;
  ByteSink plain;
  std::vector<Mark> marks;  // empty: not in the row index
  int numbers = 0;          // after the byte position: 0 raw, 1 runs, 2 bits
  bool integers = true;
  bool use_vints = true;
  // Set by IntegerDraft::Pack.
  ByteSink packed;
  ChunkMap map;
};

struct IntegerDraft {
  EncodingKind encoding = EncodingKind::kDirect;
  uint32_t dictionary_size = 0;
  uint64_t plain_bytes = 0;  // about; of a dictionary that is not shared, with its entries
  double decode_ns = 0;
  std::vector<StreamDraft> streams;  // in the order they are stored

  // Frames all streams as they would be stored without encryption; what that costs a reader.
  LayoutCost Pack(const ChunkPacking& packing, ChunkEncoder* chunks);
};

// `width` 0: varints.
IntegerDraft DraftDirect(std::span<const int64_t> values, uint32_t width,
                         std::span<const uint64_t> cuts);

struct DictionaryDraftOptions {
  uint32_t width = 8;                        // of the column's type
  bool use_vints = true;                     // of indices
  bool fixed_entries = false;                // entries may be of fixed width, where that is shorter
  const SharedDictionary* shared = nullptr;  // takes the place of an own one
  uint64_t most_entries = UINT64_MAX;        // of distinct values
};
// Nothing where there are more distinct values than that.
std::optional<IntegerDraft> DraftDictionary(std::span<const int64_t> values,
                                            std::span<const uint64_t> cuts,
                                            const DictionaryDraftOptions& options);

}  // namespace headrace::reader::dwrf
