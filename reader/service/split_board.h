// SplitBoard: which splits of which epoch are free, leased, lost or done within one term, and who
// gets their rows. No network, no clock of its own.
//
//   free --Hand--> leased --Admitted (all its rows)--> done
//                    |  ^
//       WorkerLost,  |  | Hand, before all free ones, with the same deal and the rows not admitted
//       GivenBack    v  |
//                   lost
//
// Epochs are handed out one after the other; the next begins when the last split of the one before
// was handed out. Not thread-safe.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "reader/pipeline/delivery/ledger.h"
#include "reader/service/lease.h"
#include "reader/service/message.h"

namespace headrace::reader::service {

struct BoardOptions {
  Mode mode = Mode::kLockstep;
  uint32_t ranks = 1;
  uint64_t epochs = 1;
  uint64_t unit_rows = 0;
  bool in_file_order = false;  // else in an order drawn from the seed, another one for each epoch
  uint64_t seed = 1;
  // When nothing else is left, a split is leased to a second worker if it was leased for longer
  // than this, and so long no row came of any split of its worker: consumers that are slow make no
  // worker slow.
  int64_t backup_ns = 10'000'000'000;
};

class SplitBoard {
 public:
  // `settled`: the rows that the ranks have, all together; `rows_of_ranks`: how many of these each
  // has, for deals that make up for differences (empty: none has any).
  SplitBoard(BoardOptions options, DeliveryLedger settled, Term term,
             std::vector<uint64_t> rows_of_ranks = {});

  // In file order: so many splits from the first one that is not done may be handed out, so that
  // what ranks hold until its turn comes is bounded. 0, the default: all.
  void SetWindow(uint64_t splits) { window_ = splits; }

  // A lease for this worker; nothing when there is none now. Time: units of the split, and in
  // lockstep up to 64 x ranks; when only slow splits are left, the open leases.
  std::optional<Lease> Hand(uint64_t worker, int64_t now_ns);
  // The same in two parts: what nobody works on; then what others are slow with. Whether there is a
  // lease of the first kind does not depend on the worker.
  std::optional<Lease> HandNew(uint64_t worker, int64_t now_ns);
  std::optional<Lease> HandSlow(uint64_t worker, int64_t now_ns);
  // Rows that a client has. Those that it has said before count once. Throws Error kBadData, and
  // counts none, where some are not of this job.
  void Admitted(std::span<const RowSpan> rows, int64_t now_ns = 0);
  // The worker's leases that are not done are lost, or what it was to send is. It may go on
  // nevertheless, and what it sends is good.
  void WorkerLost(uint64_t worker);
  // The worker has sent no row of these and will send none, so that leased again they repeat none
  // (but for one that it had twice, with a broken connection between). Those that it does not have
  // do not matter. Returns how many it had.
  uint64_t GivenBack(uint64_t worker, std::span<const EpochSplit> splits);

  bool is_complete() const { return left_rows_ == 0; }
  uint64_t first_epoch() const { return settled_.first_epoch(); }  // all before it are done
  uint64_t left_rows() const { return left_rows_; }
  uint64_t open_leases(uint64_t worker) const;
  // Some split is free or lost, whether or not the window lets it be handed out now.
  bool has_unleased();
  uint64_t leased_again() const { return again_; }  // leases that repeated one

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // epoch, split
  struct Open {                               // leased or lost
    Deal deal;
    std::vector<RowRange> left;            // rows that are not admitted, ascending
    std::vector<uint64_t> workers;         // that have it
    bool lost = false, is_unmade = false;  // the latter: by the last of those that had it
    int64_t since_ns = 0;
    std::vector<uint64_t> units_left;  // by rank, for deals to whoever has least to come
  };

  void Lose(const Key& key, uint64_t worker, bool is_unmade);
  std::optional<Key> NextLost();
  std::optional<Key> PeekFree();
  std::optional<Key> NextFree();
  bool IsWithinWindow(const Key& key) const;
  std::optional<Key> NextSlow(uint64_t worker, int64_t now_ns) const;
  Lease LeaseOf(const Key& key, uint64_t worker, int64_t now_ns);
  Deal MakeDeal(const Key& key, const std::vector<RowRange>& left);
  uint32_t FirstForEvenRows(const Key& key, const std::vector<RowRange>& left);
  void CountPending(const Key& key, Open* open);
  void Close(std::map<Key, Open>::iterator open);
  void BeginEpoch();

  const BoardOptions options_;
  DeliveryLedger settled_;  // of an open split what was when it was opened: less is rewritten
  const Term term_;
  std::map<Key, Open> open_;
  std::deque<Key> lost_;
  std::map<uint64_t, std::set<Key>> of_worker_;
  std::map<uint64_t, int64_t> progress_ns_;  // of workers: when a row of theirs was last admitted
  uint64_t epoch_ = 0;                       // being handed out
  std::vector<uint64_t> order_;              // of its splits
  uint64_t next_ = 0;                        // in order_
  uint64_t left_rows_ = 0;
  uint64_t again_ = 0;
  std::vector<uint64_t> dealt_rows_;  // by rank, in lockstep; with those it had before
  std::vector<uint64_t> pending_;     // units leased and not admitted, by rank; when independent
  std::vector<uint64_t> dealt_;       // splits dealt whole, by rank
  std::vector<uint64_t>
      first_unit_;  // of each split, counted from the epoch's first; in file order
  uint64_t window_ = 0;
};

}  // namespace headrace::reader::service
