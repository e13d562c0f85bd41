// DiskTier: a StreamTier in a folder on a fast disk, in front of slower storage. It persists
// between runs.
//
// An entry is a file with streams of one stripe that were added together. A job with the same
// projection reads them back with three requests: header, index and streams.
//
//   FILE-CONTENT-STRIPE-NUMBER.streams        SourceIdentity of the table's file, in hexadecimal
//
//   64-byte header  {magic, file, content, stripe, streams, bytes of them, checksum of this and the
//                   index}
//   index           24 bytes a stream, by offset: {offset in the table's file, length, checksum}
//   the streams, one behind the other
//
// Every checksum is XXH3-64 and verified on every use. Entries are written to a temporary file and
// renamed, but not synced. After a crash of the process only temporary files remain, which the next
// process that opens the folder removes; an entry torn by a crash of the machine is recognised by
// its checksum. An entry that is damaged or cannot be read is dropped and counted, and its streams
// are read from the storage again.
//
// The budget bounds the sizes of all entries, including those being written, to the byte. Both
// policies work on whole entries. Entries of other tables in the folder count and are dropped like
// any other; those of an older file of the same name are dropped when the folder is opened. If the
// budget is smaller than what is there, the least recently used entries are dropped, under either
// policy. After a failed write, as on a full disk, nothing more is added. Files with other names
// are left alone.
//
// Entries, and a folder created here, are accessible to their owner alone. Under a memory limit a
// stripe is not kept if there is no memory for its copy.
//
// One process at a time owns the folder, by a lock on its file tier.lock, which the kernel releases
// however the process ends. Thread-safe.
#pragma once
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "reader/fetch/stream_tier.h"
#include "reader/source/identity.h"

namespace headrace::reader {

struct DiskTierFigures {
  uint64_t kept = 0;      // entries written
  uint64_t rejected = 0;  // entries dropped for what they held, or because they could not be read
  uint64_t removed = 0;   // entries dropped for room or age
};

class DiskTier final : public StreamTier {
 public:
  // For these sources; nothing is kept for others. Throws Error when the folder cannot be made,
  // read or locked: kUsage when another process has it.
  DiskTier(const TierOptions& options, std::optional<std::set<std::string>> features,
           const std::vector<const Source*>& sources);
  ~DiskTier() override;

  // These two throw only for lack of memory.
  TierStreams Find(const dwrf::StripePlan& plan, const Source& source) override;
  void Insert(const dwrf::StripePlan& plan, const Source& source, const TierStreams& found,
              std::span<const TierOffer> offers) override;

  uint64_t bytes() const override;
  DiskTierFigures figures() const;
  std::vector<std::string> notes() const override;
  void SetAccounts(uint32_t read, uint32_t fill) override;

 private:
  struct Key {
    SourceIdentity file;
    uint32_t stripe = 0;
    auto Order() const { return std::tie(file.name, file.content, stripe); }
    bool operator<(const Key& other) const { return Order() < other.Order(); }
  };
  struct Entry {
    Key key;
    uint64_t number = 0, size = 0;
    bool is_gone = false;
    std::list<std::shared_ptr<Entry>>::iterator place;  // in entries_, until it is gone
  };
  struct Stripe {
    std::vector<std::shared_ptr<Entry>> entries;  // in the order in which they came in
    uint64_t next_number = 0;
    bool is_writing = false;
  };
  // What one call read from the device.
  struct Reads {
    uint64_t requests = 0, bytes = 0;
  };

  void LockFolder();
  void ScanFolder(const std::vector<SourceIdentity>& sources);
  std::string PathOf(const Key& key, uint64_t number) const;
  // Takes the streams of `missing` (offset -> index in the plan) that the entry has. Throws Error,
  // and then has taken nothing.
  static void TakeFrom(const File& file, const Entry& entry, const dwrf::StripePlan& plan,
                       std::map<uint64_t, size_t>* missing, TierStreams* found, Reads* reads);
  void Touch(const std::shared_ptr<Entry>& entry);
  void Reject(const std::shared_ptr<Entry>& entry, const std::string& why);
  // The first of the offers, as many as fit beside what must stay.
  std::vector<TierOffer> Fitting(std::span<const TierOffer> offers) const;
  static BufferPool::Handle EntryOf(const Key& key, const dwrf::StripePlan& plan,
                                    std::vector<TierOffer> offers, uint64_t size);
  // Under the mutex.
  void Add(const Key& key, uint64_t number, uint64_t size);
  bool Drop(std::shared_ptr<Entry> entry);
  bool MakeRoom(uint64_t bytes);
  void Stop(const std::string& why);

  std::map<std::string, SourceIdentity> sources_;
  int lock_ = -1;
  std::atomic<uint32_t> read_account_{UINT32_MAX}, fill_account_{UINT32_MAX};

  mutable std::mutex mutex_;                   // guards the following
  std::list<std::shared_ptr<Entry>> entries_;  // most recently used first
  std::map<Key, Stripe> stripes_;
  uint64_t bytes_ = 0;          // of entries, including those being written
  uint64_t writing_bytes_ = 0;  // of entries being written
  DiskTierFigures figures_;
  std::string stopped_;         // why nothing more is added; empty: it is
  std::string first_rejected_;  // the first rejected entry, and why
};

}  // namespace headrace::reader
