#include "reader/service/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "reader/service/unit_order.h"

namespace headrace::reader::service {
namespace {

Refused RefusedOf(const Error& error) {
  return {static_cast<uint32_t>(error.code()),
          error.where().empty() ? error.fact() : error.where() + ": " + error.fact(), error.fix()};
}

constexpr size_t kMostTold = 1'000'000;
constexpr size_t kMostEvents = 1000;  // that wait to be taken; whoever takes none needs none

// Of a number in a RowSet.
uint64_t BytesOf(uint64_t value) { return (static_cast<uint64_t>(std::bit_width(value)) + 6) / 7; }

}  // namespace

// Of one epoch: those before it are closed, where all ranks or none write checkpoints.
void CheckStatesFit(const DispatcherOptions& options) {
  const uint64_t ranks = options.job.ranks, unit_rows = options.board.unit_rows;
  if (ranks == 1 || unit_rows == 0 || options.board.mode != Mode::kLockstep) return;
  uint64_t units = 0;
  for (const RowRange& split : options.job.splits) units += NumUnits(split.count, unit_rows);
  const uint64_t bytes = units / ranks * (BytesOf(unit_rows) + BytesOf((ranks - 1) * unit_rows));
  if (bytes <= kMaxMessageBytes) return;
  throw Error(ExitCode::kResources,
              fmt::format("each rank's list of the units that it has may take {} MiB, more than "
                          "a message can have ({} MiB)",
                          bytes >> 20, kMaxMessageBytes >> 20),
              {}, "raise pipeline.worker_rows: a unit has as many rows");
}

Dispatcher::Dispatcher(DispatcherOptions options)
    : options_(std::move(options)), job_(options_.job) {
  for (const RowRange& split : options_.job.splits) rows_ += split.count;
  rows_ *= options_.job.epochs;
}

std::vector<Addressed> Dispatcher::Handle(uint64_t peer, const Message& message, int64_t now_ns) {
  Out out;
  if (const auto worker = workers_.find(peer); worker != workers_.end()) {
    worker->second.heard_ns = now_ns;
    worker->second.is_silent = false;
    QueueAsking(peer, &worker->second);
  }
  try {
    std::visit([&](const auto& m) { On(peer, m, now_ns, &out); }, message);
  } catch (const Error& error) {
    // A message that cannot be true: whoever sent it has no part in this job.
    out.push_back({peer, RefusedOf(error)});
  }
  return out;
}

template <typename M>
void Dispatcher::On(uint64_t, const M&, int64_t, Out*) {
  if constexpr (std::is_same_v<M, Want> || std::is_same_v<M, Offer>)
    throw Error(ExitCode::kUsage, "is a job and no pool of workers", {},
                "start a pool: headrace service pool");
  throw Error(ExitCode::kBadData, "is not a message for a dispatcher");
}

void Dispatcher::On(uint64_t peer, const Join& join, int64_t now_ns, Out* out) {
  if (failure_) {
    out->push_back({peer, *failure_});
    return;
  }
  const Job::Joined joined = job_.Handle(peer, join);
  if (!joined.again.empty() || !job_.is_running()) EndTerm(joined.again, out);
  for (const auto& [other, instance] : joined.superseded) {
    clients_.erase(other);
    out->push_back({other, Superseded{instance, fmt::format("rank {} brought a state of another "
                                                            "moment",
                                                            join.rank)}});
  }
  switch (joined.outcome) {
    case Job::Outcome::kIgnored:
      return;
    case Job::Outcome::kSuperseded:
      out->push_back({peer, Superseded{join.instance, joined.reason}});
      return;
    case Job::Outcome::kWaits:
      clients_[peer] = {};
      out->push_back({peer, Waiting{job_.Missing()}});
      return;
    case Job::Outcome::kStarts:
      clients_[peer] = {};
      EndTerm({}, out);
      return BeginTerm(out);
    case Job::Outcome::kResumes: {
      clients_[peer] = {};
      TellStarted(join.rank, out);
      over_ = {};  // which it has not heard
      // Rows that it admitted and could not report before its connection ended.
      AdmitSettled(job_.members().at(join.rank).ledger, now_ns);
      job_.ForgetStates();
      if (is_ended_) out->push_back({peer, Ended{job_.term()}});
      EndIfComplete(out);
      return Serve(now_ns, out);
    }
  }
}

// A part at a time: all that a rank has settled may be many ranges.
void Dispatcher::AdmitSettled(const DeliveryLedger& ledger, int64_t now_ns) {
  constexpr size_t kSpansAtATime = 4096;
  std::vector<RowSpan> some;
  ledger.EachSettled(board_->first_epoch(), [&](const RowSpan& span) {
    some.push_back(span);
    if (some.size() < kSpansAtATime) return;
    board_->Admitted(some, now_ns);
    some.clear();
  });
  board_->Admitted(some, now_ns);
}

// The term that runs, if any, is over; its members are to join again.
void Dispatcher::EndTerm(const std::vector<uint64_t>& again, Out* out) {
  board_.reset();
  is_ended_ = false;
  over_ = {};
  done_.clear();
  told_.clear();
  dismissed_.clear();
  for (auto& [peer, worker] : workers_) worker.wants = 0;
  for (const uint64_t peer : again) {
    clients_.erase(peer);
    out->push_back({peer, Again{}});
  }
}

void Dispatcher::BeginTerm(Out* out) {
  try {
    std::vector<uint64_t> rows;
    for (const auto& [rank, member] : job_.members()) rows.push_back(member.ledger.settled_rows());
    DeliveryLedger all = job_.Union();
    for (const auto& [rank, member] : job_.members())
      if (options_.board.in_file_order)
        CheckInOrder(member.ledger, rank, options_.job.ranks, options_.board.unit_rows);
    board_.emplace(options_.board, std::move(all), job_.term(), std::move(rows));
  } catch (const Error& error) {
    const Refused refused = RefusedOf(error);
    for (const auto& [rank, member] : job_.members())
      if (member.peer != 0) out->push_back({member.peer, refused});
    job_.Disband();
    return;
  }
  job_.ForgetStates();
  failures_ = 0;
  term_ns_ = 0;
  term_left_rows_ = board_->left_rows();
  if (events_.size() < kMostEvents)
    events_.push_back({"term_began", 0, std::nullopt,
                       fmt::format("generation {}: all {} ranks are there", job_.generation(),
                                   options_.job.ranks)});
  for (const auto& [rank, member] : job_.members()) TellStarted(rank, out);
  for (auto& [peer, worker] : workers_) TellSession(peer, out);
  EndIfComplete(out);
}

void Dispatcher::TellStarted(uint32_t rank, Out* out) const {
  const Job::Member& member = job_.members().at(rank);
  if (member.peer == 0) return;  // it will join again
  Started started;
  started.term = job_.term();
  started.generation = job_.generation();
  started.instance = member.instance;
  started.number = member.number;
  started.batch_rows = options_.batch_rows;
  started.epochs = options_.job.epochs;
  started.unit_rows = options_.board.unit_rows;
  started.in_file_order = options_.board.in_file_order;
  started.fingerprint = options_.job.fingerprint;
  started.features = options_.session.features;
  started.splits = options_.job.splits.size();
  if (member.is_fresh) started.split_runs = RunsFrom(0);
  out->push_back({member.peer, std::move(started)});
}

// As many as a message may have.
std::vector<SplitRun> Dispatcher::RunsFrom(uint64_t split) const {
  std::vector<SplitRun> runs;
  const std::vector<RowRange>& splits = options_.job.splits;
  for (; split < splits.size(); ++split) {
    if (runs.empty() || runs.back().rows != splits[split].count) {
      if (runs.size() >= options_.most_split_runs) break;
      runs.push_back({splits[split].count, 0});
    }
    ++runs.back().splits;
  }
  return runs;
}

// Whoever asks has none to read: what waits for it is one part.
void Dispatcher::On(uint64_t peer, const AskSplits& ask, int64_t, Out* out) {
  if (!board_ || ask.term != job_.term() || !job_.RankOf(peer)) return;
  if (ask.first >= options_.job.splits.size())
    throw Error(ExitCode::kBadData, "asks for splits that the table does not have");
  out->push_back({peer, Splits{ask.term, ask.first, RunsFrom(ask.first)}});
}

void Dispatcher::TellSession(uint64_t peer, Out* out) {
  if (!board_ || workers_.at(peer).is_draining) return;
  workers_.at(peer).wants = 0;
  if (told_.size() >= kMostTold) told_.clear();  // those that come again begin a term: no harm
  told_.insert(workers_.at(peer).who.instance);
  Session session = options_.session;
  session.term = job_.term();
  for (const auto& [rank, member] : job_.members()) session.clients.push_back(member.address);
  out->push_back({peer, std::move(session)});
}

void Dispatcher::On(uint64_t peer, const Report& report, int64_t now_ns, Out* out) {
  const auto client = clients_.find(peer);
  if (client == clients_.end()) return;  // of a group that is over
  client->second = report;
  client->second.admitted.clear();
  const auto rank = job_.RankOf(peer);
  if (!board_ || !rank || report.term != job_.term()) return;
  if (report.instance != job_.members().at(*rank).instance) return;
  board_->Admitted(report.admitted, now_ns);
  if (!report.admitted.empty()) failures_ = 0;
  if (report.progress >= Report::kFinished) done_.insert(*rank);
  EndIfComplete(out);
  DismissRanks(out);
  EndDrained(out);
  Serve(now_ns, out);
}

void Dispatcher::EndIfComplete(Out* out) {
  if (!board_ || !board_->is_complete() || is_ended_) return;
  is_ended_ = true;
  for (const auto& [rank, member] : job_.members())
    if (member.peer != 0) out->push_back({member.peer, Ended{job_.term()}});
}

// A rank that died comes again from its checkpoint. So others must know which rows are their own
// until those of an epoch that it had are in it. Ranks of which some only write none come again
// without rows that others count as over: then nobody forgets any.
void Dispatcher::TellEpochsOver(Out* out) {
  if (!board_ || board_->first_epoch() <= over_.durable_epochs) return;
  EpochsOver over = {job_.term(), board_->first_epoch(), board_->first_epoch()};
  std::set<uint32_t> writes_checkpoints;
  for (const auto& [rank, member] : job_.members()) {
    const auto said = clients_.find(member.peer);
    const bool has_said = said != clients_.end() && said->second.term == job_.term();
    over.durable_epochs = std::min(over.durable_epochs, has_said ? said->second.durable_epochs : 0);
    if (has_said) writes_checkpoints.insert(said->second.writes_checkpoints);
  }
  if (writes_checkpoints.size() > 1) over.durable_epochs = 0;
  if (over.admitted_epochs <= over_.admitted_epochs && over.durable_epochs <= over_.durable_epochs)
    return;
  over_ = over;
  for (const auto& [rank, member] : job_.members())
    if (member.peer != 0) out->push_back({member.peer, over});
}

// Once all ranks know that all is admitted none needs another any more. Each is told once: it
// answers with a Report, which comes here again.
void Dispatcher::DismissRanks(Out* out) {
  if (!is_ended_) return;
  for (const auto& [rank, member] : job_.members()) {
    if (done_.contains(rank)) continue;  // it may have gone
    const auto said = clients_.find(member.peer);
    if (said == clients_.end() || said->second.progress < Report::kHeardEnded) return;
  }
  for (const auto& [rank, member] : job_.members())
    if (member.peer != 0 && dismissed_.insert(member.peer).second)
      out->push_back({member.peer, Bye{}});
}

void Dispatcher::On(uint64_t peer, const Register& who, int64_t now_ns, Out* out) {
  if (failure_) {
    out->push_back({peer, *failure_});
    return;
  }
  if (who.host.size() > kMostNameBytes)
    throw Error(ExitCode::kBadData,
                fmt::format("the name of a worker's host has {} bytes, it may have {}",
                            who.host.size(), kMostNameBytes),
                {}, "use the same headrace for all processes of a job");
  if (workers_.size() >= options_.most_workers && !workers_.contains(peer)) {
    // Its former connection may not be known to be dead yet.
    const auto former = std::find_if(workers_.begin(), workers_.end(), [&](const auto& one) {
      return one.second.who.instance == who.instance;
    });
    if (former == workers_.end()) {
      out->push_back(
          {peer, Refused{static_cast<uint32_t>(ExitCode::kResources),
                         fmt::format("the job has {} workers, as many as its dispatcher takes",
                                     workers_.size()),
                         options_.more_workers_fix}});
      return;
    }
    Lose(former->first, now_ns, out);
  }
  Worker& worker = workers_[peer];
  worker.who = who;
  worker.heard_ns = worker.connected_ns = now_ns;
  Note("worker_joined", worker, 0, "");
  // A term of this number that it has not heard of here was another dispatcher's, whose leases it
  // may hold: their deals are other ones.
  const bool is_of_another =
      job_.is_running() && who.term == job_.term() && !told_.contains(who.instance);
  const std::vector<uint64_t> again = job_.Heard(who.term + (is_of_another ? 1 : 0));
  if (!job_.is_running() && board_) EndTerm(again, out);
  TellSession(peer, out);
}

void Dispatcher::On(uint64_t peer, const Ask& ask, int64_t now_ns, Out* out) {
  const auto worker = workers_.find(peer);
  if (worker == workers_.end() || !board_ || ask.term != job_.term()) return;
  constexpr uint64_t kMostWanted = 1024;
  worker->second.wants = std::min<uint64_t>(worker->second.wants + ask.count, kMostWanted);
  QueueAsking(peer, &worker->second);
  Serve(now_ns, out);
}

void Dispatcher::QueueAsking(uint64_t peer, Worker* worker) {
  if (worker->wants == 0 || std::exchange(worker->is_asking, true)) return;
  asking_.push_back(peer);
}

// One lease each in turn, so that a worker that asks for many leaves others some.
void Dispatcher::Serve(int64_t now_ns, Out* out) {
  if (!board_) return;
  constexpr uint64_t kAheadOfAll = 2, kOfEachWorker = 4;
  board_->SetWindow(kAheadOfAll + kOfEachWorker * workers_.size());
  while (!asking_.empty()) {
    const uint64_t peer = asking_.front();
    const auto found = workers_.find(peer);
    if (found == workers_.end() || found->second.wants == 0 || found->second.is_draining ||
        found->second.is_silent) {
      asking_.pop_front();
      if (found != workers_.end()) found->second.is_asking = false;
      continue;
    }
    if (!Give(&SplitBoard::HandNew, peer, &found->second, now_ns, out)) return;
    asking_.pop_front();
    found->second.is_asking = false;
    QueueAsking(peer, &found->second);
  }
}

// A lease of that kind to a worker that asked for one, counted. False: there is none.
bool Dispatcher::Give(Hand hand, uint64_t peer, Worker* worker, int64_t now_ns, Out* out) {
  const uint64_t again = board_->leased_again();
  std::optional<Lease> lease = ((*board_).*hand)(peer, now_ns);
  if (!lease) return false;
  ++counts_.leases;
  if (board_->leased_again() > again) {
    ++counts_.again;
    for (const RowRange& range : lease->wanted) counts_.again_rows += range.count;
  }
  --worker->wants;
  out->push_back({peer, std::move(*lease)});
  return true;
}

// Splits that others are slow with, once nothing else is left: to whoever asks, but for the slow
// one.
void Dispatcher::ServeSlow(int64_t now_ns, Out* out) {
  if (!board_) return;
  for (const uint64_t peer : asking_) {
    const auto found = workers_.find(peer);
    if (found == workers_.end() || found->second.is_draining || found->second.is_silent) continue;
    while (found->second.wants > 0 &&
           Give(&SplitBoard::HandSlow, peer, &found->second, now_ns, out)) {
    }
  }
}

void Dispatcher::On(uint64_t peer, const GiveBack& back, int64_t now_ns, Out* out) {
  if (!workers_.contains(peer) || !board_ || back.term != job_.term()) return;
  counts_.given_back += board_->GivenBack(peer, back.splits);
  EndDrained(out);
  Serve(now_ns, out);
}

void Dispatcher::On(uint64_t peer, const Cut& cut, int64_t now_ns, Out* out) {
  if (!workers_.contains(peer) || !board_ || cut.term != job_.term()) return;
  board_->WorkerLost(peer);
  Serve(now_ns, out);
}

void Dispatcher::On(uint64_t peer, const Failed& failed, int64_t now_ns, Out* out) {
  const auto worker = workers_.find(peer);
  if (worker == workers_.end()) return;
  const std::string reason = failed.reason.substr(0, kMostReasonBytes);
  Note("worker_failed", worker->second, board_ ? board_->open_leases(peer) : 0, reason);
  Lose(peer, now_ns, out);
  if (++failures_ < options_.most_failures || failure_) return;
  failure_ = Refused{failed.code, "workers failed: " + reason, ""};
  for (const auto& [client, report] : clients_) out->push_back({client, *failure_});
}

void Dispatcher::On(uint64_t peer, const Alive& alive, int64_t, Out*) {
  if (const auto worker = workers_.find(peer); worker != workers_.end())
    worker->second.last = alive;
}

void Dispatcher::Lose(uint64_t peer, int64_t now_ns, Out* out) {
  const auto worker = workers_.find(peer);
  if (worker == workers_.end()) return;
  if (const uint64_t open = board_ ? board_->open_leases(peer) : 0; open > 0) {
    ++counts_.lost;
    Note("worker_lost", worker->second, open, "its connection ended");
  }
  workers_.erase(worker);
  std::erase(asking_, peer);
  if (!board_) return;
  board_->WorkerLost(peer);
  Serve(now_ns, out);
}

std::vector<Addressed> Dispatcher::Gone(uint64_t peer, int64_t now_ns) {
  Out out;
  if (const auto rank = job_.RankOf(peer); rank && !done_.contains(*rank))
    if (events_.size() < kMostEvents)
      events_.push_back({"rank_lost", job_.members().at(*rank).instance, std::nullopt,
                         fmt::format("rank {}: its connection ended", *rank)});
  clients_.erase(peer);
  if (job_.Gone(peer))
    for (const auto& [client, report] : clients_) out.push_back({client, Waiting{job_.Missing()}});
  Lose(peer, now_ns, &out);
  return out;
}

std::vector<Addressed> Dispatcher::Tick(int64_t now_ns) {
  Out out;
  CountTime(now_ns);
  for (auto& [peer, worker] : workers_) {
    if (worker.is_silent || now_ns - worker.heard_ns < options_.silence_ns) continue;
    worker.is_silent = true;
    Note("worker_silent", worker, board_ ? board_->open_leases(peer) : 0,
         fmt::format("it said nothing for {} s", options_.silence_ns / 1'000'000'000));
    if (board_) board_->WorkerLost(peer);
  }
  Serve(now_ns, &out);
  ServeSlow(now_ns, &out);
  EndDrained(&out);
  TellEpochsOver(&out);
  return out;
}

void Dispatcher::CountTime(int64_t now_ns) {
  const int64_t passed = counted_ns_ == 0 ? 0 : now_ns - counted_ns_;
  counted_ns_ = now_ns_ = now_ns;
  if (!board_) return;
  counts_.running_ns += passed;
  term_ns_ += passed;
  // A window holds workers back from splits that are there: those are not few.
  const bool is_all_leased = !board_->has_unleased();
  for (const auto& [peer, worker] : workers_) {
    if (worker.is_silent || worker.is_draining) continue;
    counts_.serving_ns += passed;
    if (worker.wants > 0 && is_all_leased && board_->open_leases(peer) == 0)
      counts_.no_split_ns += passed;
  }
}

void Dispatcher::Note(std::string kind, const Worker& worker, uint64_t splits, std::string text) {
  if (events_.size() >= kMostEvents) return;
  std::string where = fmt::format("process {} on {}", worker.who.pid, worker.who.host);
  events_.push_back({std::move(kind), worker.who.instance,
                     splits > 0 ? std::optional(splits) : std::nullopt,
                     text.empty() ? where : where + ": " + text});
}

void Dispatcher::On(uint64_t peer, const service::Drain&, int64_t, Out* out) { Drain(peer, out); }

bool Dispatcher::Drain(uint64_t peer, std::vector<Addressed>* out) {
  const auto worker = workers_.find(peer);
  if (worker == workers_.end()) return false;
  worker->second.is_draining = true;
  out->push_back({peer, service::Drain{}});
  EndDrained(out);
  return true;
}

void Dispatcher::EndDrained(Out* out) {
  for (auto& [peer, worker] : workers_) {
    if (!worker.is_draining || worker.was_told_bye) continue;
    if (board_ && board_->open_leases(peer) > 0) continue;
    worker.was_told_bye = true;
    out->push_back({peer, Bye{}});
  }
}

std::vector<Addressed> Dispatcher::Part(const Refused& why) const {
  Out out;
  for (const auto& [peer, report] : clients_) out.push_back({peer, why});
  for (const auto& [peer, worker] : workers_) out.push_back({peer, Bye{}});
  return out;
}

DispatcherStatus Dispatcher::status() const {
  DispatcherStatus status;
  status.term = job_.term();
  status.generation = job_.generation();
  status.is_running = board_.has_value();
  status.is_complete = is_complete();
  status.is_endless = options_.job.epochs == kEndlessEpochs;
  status.rows = rows_;
  status.left_rows = board_ ? board_->left_rows() : rows_;
  status.leased_again = board_ ? board_->leased_again() : 0;
  status.given_back = counts_.given_back;
  status.workers_lost = counts_.lost;
  if (board_ && term_ns_ > 0)
    status.rows_per_second = static_cast<double>(term_left_rows_ - board_->left_rows()) /
                             (static_cast<double>(term_ns_) / 1e9);
  for (uint32_t rank = 0; rank < options_.job.ranks; ++rank) {
    RankStatus& one = status.ranks.emplace_back();
    one.rank = rank;
    const auto member = job_.members().find(rank);
    one.is_joined = member != job_.members().end();
    if (!one.is_joined) continue;
    one.host = member->second.host;
    one.instance = member->second.instance;
    one.is_connected = member->second.peer != 0;
    if (const auto said = clients_.find(member->second.peer);
        said != clients_.end() && said->second.term != 0) {
      one.has_reported = true;
      one.delivered_rows = said->second.delivered_rows;
      one.delivered_batches = said->second.delivered_batches;
      one.wait_ns = said->second.wait_ns;
      one.compute_ns = said->second.compute_ns;
    }
  }
  for (const auto& [peer, worker] : workers_)
    status.workers.push_back({peer, worker.who.instance, board_ ? board_->open_leases(peer) : 0,
                              worker.last.sent_units, worker.last.idle_ns, worker.last.no_room_ns,
                              worker.last.made_rows, worker.last.busy_ns,
                              now_ns_ - worker.connected_ns, worker.who.pid, worker.who.host,
                              worker.is_silent, worker.is_draining});
  return status;
}

}  // namespace headrace::reader::service
