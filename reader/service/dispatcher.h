// Dispatcher: hands the splits of one job to workers. A pure state machine: messages and the time
// go in, messages come out; no socket, no clock, no file. What it knows of rows it was told by the
// clients, so another one can take its place at any time.
//
// A peer is a connection, numbered by whoever owns the sockets and never used again. Not
// thread-safe.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reader/service/job.h"
#include "reader/service/split_board.h"

namespace headrace::reader::service {

struct Addressed {
  uint64_t peer = 0;
  Message message;
};

// Of a job that reads its table for ever: nobody sees the last one.
constexpr uint64_t kEndlessEpochs = uint64_t{1} << 20;

struct DispatcherOptions {
  JobOptions job;
  BoardOptions board;
  uint64_t batch_rows = 0;
  Session session;  // what workers are told; its term and clients are filled in
  // A worker that says nothing for so long is taken for lost.
  int64_t silence_ns = 4'000'000'000;
  // More are refused: what is left of its connections is for ranks and commands.
  uint64_t most_workers = UINT64_MAX;
  std::string more_workers_fix = {};  // what to do where that is too few
  // Of a message; a test may want fewer.
  uint64_t most_split_runs = kMostSplitRuns;
  // So many failures of workers without a row admitted between them end the job.
  uint32_t most_failures = 3;
};

// Throws Error kResources where a rank's list of the rows that it has may become longer than a
// message: in lockstep each has every so manieth unit, and there may be very many.
void CheckStatesFit(const DispatcherOptions& options);

struct WorkerStatus {
  uint64_t peer = 0, instance = 0, open_leases = 0, sent_units = 0;
  // As it last said, of its whole life (Alive); `alive_ns`: how long it has been connected.
  uint64_t idle_ns = 0, no_room_ns = 0, made_rows = 0, busy_ns = 0;
  int64_t connected_ns = 0;
  int64_t pid = 0;
  std::string host;
  bool is_silent = false, is_draining = false;
};
struct RankStatus {
  uint32_t rank = 0;
  bool is_joined = false, is_connected = false;
  bool has_reported = false;  // in this term; otherwise what follows is unknown
  std::string host;
  uint64_t instance = 0;
  uint64_t delivered_rows = 0, delivered_batches = 0, wait_ns = 0,
           compute_ns = 0;  // as it last said
};
struct DispatcherStatus {
  Term term = 0;
  uint64_t generation = 0;
  bool is_running = false, is_complete = false;  // the latter: every rank has delivered its rows
  bool is_endless = false;                       // rows and left_rows say nothing
  uint64_t rows = 0, left_rows = 0;  // of all epochs; the latter is unknown (= rows) until it runs
  uint64_t leased_again = 0, given_back = 0, workers_lost = 0;
  double rows_per_second = 0;  // admitted in this term; 0: not known yet
  std::vector<RankStatus> ranks;
  std::vector<WorkerStatus> workers;
};

// Since the dispatcher began.
struct DispatcherCounts {
  int64_t running_ns = 0;   // all ranks had joined
  int64_t serving_ns = 0;   // integral of the workers that are connected and not silent
  int64_t no_split_ns = 0;  // of it: they had asked and had none, and no split was left to lease
  uint64_t leases = 0;
  // Of them, those of a split that was leased before, and not given back.
  uint64_t again = 0, again_rows = 0;
  uint64_t given_back = 0;  // by workers that drain: read in part, no row made
  uint64_t lost = 0;        // workers, while they had splits
};
// What is worth a line in the job's history.
struct DispatcherEvent {
  std::string kind;       // worker_joined, worker_lost, worker_silent, ... (view job_event)
  uint64_t instance = 0;  // of the member; 0: of none
  std::optional<uint64_t> splits;  // that are leased again for it
  std::string text;
};

class Dispatcher {
 public:
  explicit Dispatcher(DispatcherOptions options);

  std::vector<Addressed> Handle(uint64_t peer, const Message& message, int64_t now_ns);
  // The connection ended, after all its messages.
  std::vector<Addressed> Gone(uint64_t peer, int64_t now_ns);
  // Call a few times a second: workers that went silent, backups for slow ones.
  std::vector<Addressed> Tick(int64_t now_ns);
  // The worker gets no leases any more and ends when those that it has made rows of are done.
  // False: there is no such worker.
  bool Drain(uint64_t peer, std::vector<Addressed>* out);

  const DispatcherOptions& options() const { return options_; }
  DispatcherStatus status() const;
  const DispatcherCounts& counts() const { return counts_; }
  std::vector<DispatcherEvent> TakeEvents() { return std::exchange(events_, {}); }
  // All rows are admitted, every rank has said that its own are delivered, and all have gone:
  // nothing is left to do. A rank that went without saying so died, and will come again.
  bool is_over() const { return is_complete() && clients_.empty(); }
  // Ends whatever is left: what to tell ranks, which is `why`, and workers.
  std::vector<Addressed> Part(const Refused& why) const;
  // Nothing follows but Part: times are counted up to now, for whoever looks a last time.
  void BeginEnding(int64_t now_ns) {
    CountTime(now_ns);
    is_ending_ = true;
  }
  bool is_ending() const { return is_ending_; }
  bool has_peers() const { return !clients_.empty() || !workers_.empty(); }
  // The job cannot go on, for example because its table cannot be read.
  const std::optional<Refused>& failure() const { return failure_; }

 private:
  struct Worker {
    Register who;
    uint64_t wants = 0;
    int64_t heard_ns = 0, connected_ns = 0;
    bool is_asking = false;  // in asking_
    bool is_silent = false, is_draining = false, was_told_bye = false;
    Alive last;
  };
  using Out = std::vector<Addressed>;
  using Hand = std::optional<Lease> (SplitBoard::*)(uint64_t worker, int64_t now_ns);

  void On(uint64_t peer, const Join& join, int64_t now_ns, Out* out);
  void On(uint64_t peer, const AskSplits& ask, int64_t now_ns, Out* out);
  void On(uint64_t peer, const Report& report, int64_t now_ns, Out* out);
  void On(uint64_t peer, const Register& who, int64_t now_ns, Out* out);
  void On(uint64_t peer, const Ask& ask, int64_t now_ns, Out* out);
  void On(uint64_t peer, const GiveBack& back, int64_t now_ns, Out* out);
  void On(uint64_t peer, const Cut& cut, int64_t now_ns, Out* out);
  void On(uint64_t peer, const Failed& failed, int64_t now_ns, Out* out);
  void On(uint64_t, const Alive& alive, int64_t now_ns, Out* out);
  void On(uint64_t peer, const service::Drain& leaves, int64_t now_ns, Out* out);
  template <typename M>
  void On(uint64_t peer, const M& message, int64_t now_ns, Out* out);  // not for a dispatcher

  bool is_complete() const { return is_ended_ && done_.size() == options_.job.ranks; }
  void BeginTerm(Out* out);
  void AdmitSettled(const DeliveryLedger& ledger, int64_t now_ns);
  void EndTerm(const std::vector<uint64_t>& again, Out* out);
  void TellStarted(uint32_t rank, Out* out) const;
  std::vector<SplitRun> RunsFrom(uint64_t split) const;
  void TellSession(uint64_t peer, Out* out);
  void Serve(int64_t now_ns, Out* out);
  void ServeSlow(int64_t now_ns, Out* out);
  bool Give(Hand hand, uint64_t peer, Worker* worker, int64_t now_ns, Out* out);
  void QueueAsking(uint64_t peer, Worker* worker);
  void Lose(uint64_t peer, int64_t now_ns, Out* out);
  void EndIfComplete(Out* out);
  void EndDrained(Out* out);
  void DismissRanks(Out* out);
  void TellEpochsOver(Out* out);
  void CountTime(int64_t now_ns);
  void Note(std::string kind, const Worker& worker, uint64_t splits, std::string text);

  const DispatcherOptions options_;
  Job job_;
  std::optional<SplitBoard> board_;  // while a term runs
  std::map<uint64_t, Worker> workers_;
  std::map<uint64_t, Report> clients_;  // connections of members, with what they last said
  std::set<uint32_t> done_;             // ranks that delivered all that they got in this term
  std::set<uint64_t> told_;             // instances of workers that were told of this term
  std::set<uint64_t> dismissed_;        // connections of ranks that were told Bye in this term
  std::deque<uint64_t> asking_;         // workers that want leases, in turn; some no longer
  uint64_t rows_ = 0;
  DispatcherCounts counts_;
  int64_t counted_ns_ = 0, now_ns_ = 0;
  int64_t term_ns_ = 0;                  // of the term that runs, up to now_ns_
  uint64_t term_left_rows_ = 0;          // when it began
  std::vector<DispatcherEvent> events_;  // not taken yet; the first kMostEvents of them
  EpochsOver over_;                      // as was last said in this term
  uint32_t failures_ = 0;
  bool is_ended_ = false;  // Ended was said in this term
  bool is_ending_ = false;
  std::optional<Refused> failure_;
};

}  // namespace headrace::reader::service
