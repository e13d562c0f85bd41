// DiskTier: the StreamTier in a folder of a fast disk, in front of storage that is slower. It lasts
// from run to run.
//
// An entry is a file with the streams of one stripe that came in together, which a job with the
// same projection takes back by three requests: for header, index and streams.
//
//   FILE-CONTENT-STRIPE-NUMBER.streams        SourceIdentity of the table's file, in hexadecimal
//
//   64-byte header  {magic, file, content, stripe, streams, bytes of them, checksum of this and the
//                   index}
//   index           24 bytes a stream, by offset: {offset in the table's file, length, checksum}
//   the streams, one behind the other
//
// Every checksum is XXH3-64 and looked at on every use. Entries are written beside and renamed, and
// not synced: what a crash of the process leaves is no entry and is removed by the next that opens
// the folder; what a crash of the machine leaves torn is found by its checksum. An entry that is
// damaged or cannot be read is dropped and counted, and its streams come from the storage again.
//
// The budget bounds the sizes of all entries, those being written included, to the byte. Both
// policies go by entries. Entries of other tables in the folder count, and go as others do; those
// of an older file of the same name go when the folder is opened. A budget that is smaller than
// what is there drops what was not used for the longest time, under either policy. When a write
// fails, as on a full disk, nothing more comes in. Files of other names are left alone.
//
// Entries, and a folder that is made here, are for their owner alone. Under a memory limit a stripe
// of which no copy can be had is not kept.
//
// One process at a time has the folder: a lock on its file tier.lock, which the kernel gives back
// whatever happens to the process. Thread-safe.
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
  // For these sources; others have nothing here. Throws Error when the folder cannot be made, read
  // or locked: kUsage when another process has it.
  DiskTier(const TierOptions& options, std::optional<std::set<std::string>> features,
           const std::vector<const Source*>& sources);
  ~DiskTier() override;

  // Neither throws but for lack of memory.
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
  // What one visit read from the device.
  struct Reads {
    uint64_t requests = 0, bytes = 0;
  };

  void LockFolder();
  void ScanFolder(const std::vector<SourceIdentity>& sources);
  std::string PathOf(const Key& key, uint64_t number) const;
  // Takes those of `missing` (stream of the plan by offset) that the entry has. Throws Error; then
  // nothing was taken.
  static void TakeFrom(const File& file, const Entry& entry, const dwrf::StripePlan& plan,
                       std::map<uint64_t, size_t>* missing, TierStreams* found, Reads* reads);
  void Touch(const std::shared_ptr<Entry>& entry);
  void Reject(const std::shared_ptr<Entry>& entry, const std::string& why);
  // As many of the offers, from the first on, as fit beside what must stay.
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
  std::list<std::shared_ptr<Entry>> entries_;  // the one used last first
  std::map<Key, Stripe> stripes_;
  uint64_t bytes_ = 0;          // of entries, and of those being written
  uint64_t writing_bytes_ = 0;  // of the latter
  DiskTierFigures figures_;
  std::string stopped_;         // why nothing more comes in; empty: it does
  std::string first_rejected_;  // which entry, and why
};

}  // namespace headrace::reader
