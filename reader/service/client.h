// Client: one rank's end of a job, in the trainer's process. A pure state machine: it decides which
// units are admitted, and knows which rows are delivered; no socket, no clock, no batch.
//
//   kJoining --Started--> kActive --Ended--> kComplete
//      ^                     |
//      +--(new connection,   |      kOver: superseded or refused
//          Again) -----------+
//
// Admitted: the client has it in memory. Delivered: the consumer's step has returned. The rows
// admitted are what a dispatcher is told; the rows delivered are what a checkpoint holds.
//
// Joining is a cut: from the Join until its Started nothing is admitted, and what comes meanwhile
// waits where it is. A fresh client begins once it has all splits of the table: it asks for those
// that its Started does not have, a part at a time.
//
// Which rows a rank has of an epoch, nobody asks once that is over everywhere. It comes in steps:
//
//   admitted    all rows of the epoch are admitted by the ranks (the dispatcher says so)
//   in a save   those of this rank are delivered, and in what Save gave last
//   durable     that is on a disk
//   closed      so it is for every rank (the dispatcher says so): the ledgers keep only a total
//
// Not thread-safe.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/pipeline/delivery/checkpoint.h"
#include "reader/pipeline/delivery/ledger.h"
#include "reader/service/message.h"

namespace headrace::reader::service {

struct ClientOptions {
  uint32_t rank = 0, ranks = 1;
  uint64_t instance = 0;    // random, not 0
  uint64_t checkpoint = 0;  // as Join::checkpoint
  bool writes_checkpoints = false;
  std::string address = {}, host = {};
};

class Client {
 public:
  enum class State : uint8_t { kJoining, kActive, kComplete, kOver };
  enum class Admission : uint8_t {
    kNew,    // take it
    kHave,   // every row of it was admitted before: drop it
    kStale,  // of another term: drop it
    kWait,   // ask again once the client is active
  };

  // `saved`: checkpoints to go on from, of this rank and of others that it stands for now.
  explicit Client(ClientOptions options, std::vector<Checkpoint> saved = {});

  // Where this rank takes batches, for the Joins to come.
  void TakesAt(std::string address) { options_.address = std::move(address); }

  // A connection to a dispatcher stands: the Join to send on it, at once. Also for `Again`.
  Join Connected();
  // Anything that a dispatcher says; what to answer. A Started may be of another table: throws
  // Error kUsage when the job had another one before, kBadData when a saved checkpoint does not
  // fit.
  std::optional<Message> Handle(const Message& message);
  // A unit has come. Throws Error kBadData when only some of its rows are new, or none are of the
  // table: a worker has broken the rules.
  Admission Admit(Term term, std::span<const RowSpan> rows);
  // The consumer's step for rows that were admitted has returned.
  void Delivered(std::span<const RowSpan> rows, uint64_t batch_rows);
  // has_ended(), and all that was admitted is durable: reports say so from now on.
  void Finish() { is_finished_ = true; }

  // What was admitted since the last one; nothing while there is no term to report to. It must be
  // sent on the connection of the last Join. Time: of what it holds.
  std::optional<Report> TakeReport();

  State state() const { return state_; }
  Term term() const { return term_; }
  uint64_t generation() const { return generation_; }
  // All rows of the job are admitted by the ranks of this generation: what this one has is all that
  // it gets. This stays so in a later term.
  bool has_ended() const { return has_ended_; }
  bool may_leave() const { return may_leave_; }  // all ranks know that
  bool has_started() const { return admitted_.has_value(); }
  // Once it has started.
  const Started& job() const { return job_; }
  const DeliveryLedger& admitted() const { return *admitted_; }
  // Why it is over.
  const Refused& end() const { return end_; }

  // The delivered rows, to go on from. `consumer_state`: the consumer's own, of the same moment.
  Checkpoint Save(std::string consumer_state);
  // What Save gave last is on a disk, where whoever comes after this process finds it.
  void SaveIsDurable() { durable_epochs_ = std::max(durable_epochs_, epochs_in_save_); }

 private:
  std::optional<Message> Take(const Started& started);
  std::optional<Message> Take(const Splits& splits);
  void Take(const EpochsOver& over);
  void AppendSplits(const std::vector<SplitRun>& runs);
  std::optional<Message> AskSplitsOrStart();
  void Start(const Started& started);
  uint64_t DeliveredEpochs() const;
  Checkpoint StateOf(const DeliveryLedger& ledger) const;

  ClientOptions options_;
  std::vector<Checkpoint> saved_;
  State state_ = State::kJoining;
  uint64_t number_ = 0, generation_ = 0;
  Term term_ = 0;
  Started job_;
  // Until the splits have come: the answer to the latest Join, what was said after it, and the
  // splits of a table so far.
  std::optional<Started> answer_;
  std::vector<Message> said_after_;
  std::vector<RowRange> splits_;
  Fingerprint splits_of_;
  std::optional<DeliveryLedger> admitted_, delivered_;
  std::map<uint64_t, uint64_t> undelivered_;  // rows, by epoch: admitted, and not delivered
  std::vector<RowSpan> unreported_;
  uint64_t rows_ = 0, batches_ = 0;
  // The steps above, of this generation: each the number of epochs, from the first on, that have
  // come so far.
  uint64_t admitted_epochs_ = 0, epochs_in_save_ = 0, durable_epochs_ = 0;
  bool has_ended_ = false, may_leave_ = false, is_finished_ = false;
  Refused end_;
};

}  // namespace headrace::reader::service
