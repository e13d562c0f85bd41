// BatchCache: keeps the batches made from splits in memory or in a folder, so that the next epoch
// or the next run need not read and compute them again.
//
// An entry belongs to a split and to a fingerprint of everything that its batches depend on: the
// files of the table, the projection, the transforms. It is kept whole or not at all. Its checksum
// is verified on every use; an entry that does not match is dropped and counts as a miss.
//
// Folder: one file per entry, FINGERPRINT-SPLIT.batches, written to a temporary file, synced, then
// renamed. What a crash leaves is never read, and the next process that opens the folder removes
// it. Files of other fingerprints count in the budget and are removed, oldest first, when their
// room is needed; if the budget became smaller, entries of our own are removed as well. One process
// at a time can fill a folder, but many can read it. Entries hold columns decrypted: files have
// mode 0600, a folder made here 0700.
//
//   64-byte header {magic, fingerprint, split, batches, bytes behind it, checksum}
//   batches        (batch_bytes.h)
//
// The budget bounds the sizes of all entries, including those being made, to the byte. What does
// not fit is not kept, and no entry of this pipeline is dropped for it, because an epoch uses every
// entry equally often. Entries in memory are subtracted from the pipeline's memory budget; batches
// on their way to or from a folder are in BlockPool like all other data. Thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/batch/array.h"
#include "reader/batch/flat_map_batch.h"
#include "reader/pipeline/cache/options.h"

namespace headrace::reader {

// One entry, checked.
struct CachedBatches {
  Array<uint8_t> bytes;  // of the whole entry
  // The entry's batches in their order. Throws Error kBadData for an entry of another version.
  std::vector<FlatMapBatch> Read() const;
};

// What happened, since the cache was opened.
struct CacheFigures {
  uint64_t hits = 0, misses = 0;
  uint64_t kept = 0;      // entries made
  uint64_t no_room = 0;   // splits not kept because of the budget
  uint64_t rejected = 0;  // entries dropped for their checksum or form
  uint64_t bytes = 0;     // of all entries now
};

class BatchCache {
 public:
  // Throws Error when the folder cannot be made or read.
  BatchCache(CacheOptions options, uint64_t fingerprint);

  // Whether Find would look for the split's batches; they may still turn out damaged.
  bool Holds(uint64_t split) const;
  // The split's batches; null: a miss. Throws Error kResources where memory for them is short.
  std::shared_ptr<const CachedBatches> Find(uint64_t split);

  // Adds one of the batches of a split with `rows` rows, in any order and from any thread. When the
  // batches settle all rows of the split (by their spans), the split is kept, unless memory is
  // short.
  void Add(uint64_t split, uint64_t rows, const FlatMapBatch& batch);

  // Accounts in which callers count the splits that they found and did not find; UINT32_MAX: not
  // kept.
  void SetAccounts(uint32_t hits, uint32_t misses) { accounts_ = {hits, misses}; }
  uint32_t hit_account() const { return accounts_.first; }
  uint32_t miss_account() const { return accounts_.second; }

  CacheFigures figures() const;
  // Why it keeps no further entries; empty: it still does.
  std::string note() const;

 private:
  struct Making {
    std::map<uint64_t, Array<uint8_t>> batches;  // by first row
    uint64_t rows = 0, bytes = 0;
    bool failed = false;
  };
  struct File {
    uint64_t size = 0;
    int64_t changed_ns = 0;
  };

  void OpenFolder();
  std::string PathOf(uint64_t split) const;
  std::shared_ptr<const CachedBatches> ReadFile(uint64_t split) const;
  bool TakeRoom(uint64_t bytes);  // under the mutex
  void Keep(uint64_t split, Making&& making);

  const CacheOptions options_;
  const uint64_t fingerprint_;
  std::pair<uint32_t, uint32_t> accounts_{UINT32_MAX, UINT32_MAX};
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<const CachedBatches>> memory_;
  std::map<uint64_t, uint64_t> disk_;   // split -> size, of this fingerprint
  std::map<std::string, File> others_;  // of other fingerprints, by path
  std::map<uint64_t, Making> making_;
  CacheFigures figures_;
  std::string stopped_;  // why nothing more is kept
};

}  // namespace headrace::reader
