// Job: the ranks of one training run, their generations and terms. It decides what a Join means;
// it hands out nothing and sends nothing.
//
//   term: begins when the states of all ranks of one generation are there, and are disjoint
//   generation: one incarnation of the ranks. A fresh rank whose place is taken, or that comes to a
//     term that runs, begins the next; fresh and rejoining ranks never form one group
//
// The truth about rows lies with the ranks; this is a cache of it that any dispatcher can fill
// again by asking them. Not thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/pipeline/delivery/ledger.h"
#include "reader/pipeline/fingerprint.h"
#include "reader/service/message.h"

namespace headrace::reader::service {

struct JobOptions {
  uint32_t ranks = 1;
  uint64_t epochs = 1;
  std::vector<RowRange> splits;  // of the table
  Fingerprint fingerprint;
  Term first_term = 1;  // greater than any before: a time of day in ns
};

class Job {
 public:
  struct Member {
    uint64_t peer = 0;  // its connection; 0: it ended
    uint64_t instance = 0, number = 0, checkpoint = 0;
    bool is_fresh = false;
    std::string address, host;
    DeliveryLedger ledger;  // as it joined, until ForgetStates
  };
  enum class Outcome {
    kIgnored,     // overtaken by a later Join of the same process
    kSuperseded,  // its generation is over, or its place is another process's
    kWaits,       // for other ranks
    kStarts,      // the term begins, for all members
    kResumes,     // in the term that runs
  };
  struct Joined {
    Outcome outcome = Outcome::kIgnored;
    // Connections of members whose group is over: they are to join again.
    std::vector<uint64_t> again;
    // Of those, connection and instance of the fresh ones that brought a state of another moment.
    // They would only end the new group in turn.
    std::vector<std::pair<uint64_t, uint64_t>> superseded;
    std::string reason;  // of kSuperseded
  };

  explicit Job(JobOptions options);

  // Throws Error kUsage or kBadData when this Join can belong to no group of this job: of another
  // table, another number of ranks, a damaged state.
  Joined Handle(uint64_t peer, const Join& join);
  // The connection ended. While the job runs its rank keeps its place until it joins again; before,
  // it is forgotten, for it may be dead: then true.
  bool Gone(uint64_t peer);

  bool is_running() const { return is_running_; }
  Term term() const { return term_; }
  uint64_t generation() const { return generation_; }
  const std::map<uint32_t, Member>& members() const { return members_; }
  std::vector<uint32_t> Missing() const;
  // The rank of a connection that is a member's.
  std::optional<uint32_t> RankOf(uint64_t peer) const;
  // What the members have, together. Throws Error kUsage where two have the same row, or none has
  // one of an epoch that is over: their states are of different moments.
  DeliveryLedger Union() const;
  // Of members that whoever keeps the term's rows has taken over: many ranges of rows, of which
  // only a Join brings the next.
  void ForgetStates();
  // No group of these members can begin: their states contradict each other.
  void Disband();
  // A worker has heard of this term. If it is later than one that runs, that is over: the result
  // is as Joined::again.
  std::vector<uint64_t> Heard(Term term);

 private:
  DeliveryLedger StateOf(const Join& join) const;
  std::vector<uint64_t> BeginGeneration(uint64_t generation);
  std::vector<uint64_t> Dissolve();
  bool MustBeginNext(const Join& join) const;
  Joined Enter(uint64_t peer, const Join& join, DeliveryLedger state, Joined result);

  const DeliveryLedger empty_;  // of the table
  const JobOptions options_;    // without the splits, which the ledgers share: they may be millions
  Term term_, floor_ = 0;       // floor_: the highest that anybody has reported
  uint64_t generation_ = 0;
  bool is_running_ = false;
  std::map<uint32_t, Member> members_;
};

}  // namespace headrace::reader::service
