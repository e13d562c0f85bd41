// FileReader: an open DWRF file: its tail, and its stripes on demand. Immutable after Open;
// thread-safe.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reader/dwrf/chunk.h"
#include "reader/dwrf/crypto/file_keys.h"
#include "reader/dwrf/stripe.h"
#include "reader/dwrf/tail.h"
#include "reader/fetch/read_plan.h"
#include "reader/schema.h"
#include "reader/source/source.h"

namespace headrace::reader::dwrf {

struct OpenOptions {
  bool use_cache =
      true;  // read stripe footers and indexes from the stripe cache where it holds them
  std::shared_ptr<const KeyRing> keys = nullptr;  // null: encrypted columns stay locked
};

class FileReader {
 public:
  // Reads the tail. Throws Error kBadData naming the byte that is wrong.
  static std::shared_ptr<const FileReader> Open(std::shared_ptr<const Source> source,
                                                const OpenOptions& options = {});

  const Source& source() const { return *source_; }
  std::shared_ptr<const Source> shared_source() const { return source_; }
  const FileTail& tail() const { return tail_; }
  const Schema& schema() const { return tail_.schema; }
  const FileKeys& keys() const { return *keys_; }
  size_t num_stripes() const { return static_cast<size_t>(tail_.footer.stripes_size()); }
  uint64_t num_rows() const { return tail_.number_of_rows; }
  // Number of the stripe's first row in the file; first_row(num_stripes()) is num_rows().
  uint64_t first_row(size_t stripe) const { return first_rows_[stripe]; }

  // The stripe's directory, from the cache or one read; parsed anew each call (it can be megabytes:
  // keep it while needed). Throws Error kBadData. What was read is added to `figures`, if given;
  // this also holds for the functions below.
  std::shared_ptr<const Stripe> ReadStripe(size_t index, ReadFigures* figures = nullptr) const;
  // The stored (framed) index area of a stripe: from the cache, or read.
  Buffer ReadIndexArea(size_t index) const;
  // The stored bytes of one stream: index streams from the cache where it has them.
  Buffer ReadStream(const Stripe& stripe, const StreamInfo& stream) const;
  // How the stored bytes of a stream are to be unframed; `where` is for messages.
  ChunkContext ContextOf(const Stripe& stripe, const StreamInfo& stream, std::string where) const;
  // The statistics of an encrypted group, a list per node of the group in its order. Throws Error
  // kBadData; the group must be open.
  std::vector<proto::FileStatistics> ReadGroupStatistics(size_t group) const;
  // Whether the footer has a checksum of the stripe, of a kind that is implemented.
  bool HasChecksum(size_t index) const;
  // Reads the whole stripe and compares its checksum. Throws Error kBadData with both values on a
  // mismatch. Returns false without reading when HasChecksum is false.
  bool VerifyChecksum(size_t index, ReadFigures* figures = nullptr) const;
  // The same for bytes that were already read: all of StripeBytes(index).
  bool VerifyChecksum(size_t index, std::span<const uint8_t> bytes) const;
  ByteRange StripeBytes(size_t index) const;

 private:
  FileReader(std::shared_ptr<const Source> source, FileTail tail, const OpenOptions& options);
  // `next` gives the stripe's bytes in portions, an empty one at the end.
  bool Verify(size_t index, const std::function<std::span<const uint8_t>()>& next) const;
  // How the part of a stripe footer that a group keeps to itself is to be unframed.
  ChunkContext GroupFooterContext(const Stripe& stripe, size_t group) const;
  // The cache's section `section`, or nothing.
  std::optional<std::span<const uint8_t>> CacheSection(size_t section) const;

  std::shared_ptr<const Source> source_;
  FileTail tail_;
  std::shared_ptr<const FileKeys> keys_;
  Buffer cache_;
  std::vector<uint64_t> first_rows_;
};

}  // namespace headrace::reader::dwrf
