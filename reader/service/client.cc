#include "reader/service/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace headrace::reader::service {
Client::Client(ClientOptions options, std::vector<Checkpoint> saved)
    : options_(std::move(options)), saved_(std::move(saved)) {}

Checkpoint Client::StateOf(const DeliveryLedger& ledger) const {
  Checkpoint state;
  state.fingerprint = job_.fingerprint;
  state.splits = ledger.splits().size();
  state.delivered = ledger.state();
  return state;
}

Join Client::Connected() {
  if (state_ == State::kActive || state_ == State::kComplete) state_ = State::kJoining;
  Join join;
  join.rank = options_.rank;
  join.ranks = options_.ranks;
  join.instance = options_.instance;
  join.number = ++number_;
  join.generation = generation_;
  join.term = term_;
  join.checkpoint = options_.checkpoint;
  join.address = options_.address;
  join.host = options_.host;
  if (admitted_) {
    join.states.push_back(SerializeCheckpoint(StateOf(*admitted_)));
  } else {
    for (const Checkpoint& saved : saved_) join.states.push_back(SerializeCheckpoint(saved));
  }
  unreported_.clear();  // the Join says all
  answer_.reset();
  said_after_.clear();
  return join;
}

// They lie one behind the other.
void Client::AppendSplits(const std::vector<SplitRun>& runs) {
  uint64_t rows = splits_.empty() ? 0 : splits_.back().end(), splits = splits_.size();
  for (const SplitRun& run : runs) {
    if (run.splits > answer_->splits - splits ||
        (run.splits > 0 && run.rows > (kMostTableRows - rows) / run.splits))
      throw Error(ExitCode::kBadData, "the dispatcher claims more splits than the table has");
    splits += run.splits;
    rows += run.rows * run.splits;
  }
  for (const SplitRun& run : runs) {
    for (uint64_t split = 0; split < run.splits; ++split)
      splits_.push_back({splits_.empty() ? 0 : splits_.back().end(), run.rows});
  }
}

std::optional<Message> Client::Take(const Started& started) {
  // Only the answer to the latest Join counts: an earlier one did not know what that says.
  if (started.instance != options_.instance || started.number != number_) return std::nullopt;
  if (started.term < term_ || (generation_ != 0 && started.generation != generation_)) {
    state_ = State::kOver;
    end_ = {static_cast<uint32_t>(ExitCode::kFailure), "another generation of the ranks began", ""};
    return std::nullopt;
  }
  if (state_ != State::kJoining || answer_) return std::nullopt;
  if (admitted_) {
    if (started.fingerprint != job_.fingerprint)
      throw Error(ExitCode::kUsage, "the dispatcher reads another table or pipeline than before");
    if (started.features != job_.features)
      throw Error(ExitCode::kFailure, "this dispatcher has other features for the pipeline", {},
                  "use the same headrace for all processes of a job");
    Start(started);
    return std::nullopt;
  }
  if (started.splits > kMostSplits)
    throw Error(ExitCode::kBadData, "the dispatcher claims more splits than a table can have");
  // Those that another dispatcher had begun to tell are the same.
  if (splits_of_ != started.fingerprint || splits_.size() > started.splits) splits_.clear();
  splits_of_ = started.fingerprint;
  answer_ = started;
  if (splits_.empty()) AppendSplits(started.split_runs);
  return AskSplitsOrStart();
}

std::optional<Message> Client::Take(const Splits& splits) {
  if (!answer_ || splits.term != answer_->term || splits.first != splits_.size())
    return std::nullopt;
  AppendSplits(splits.runs);
  if (splits_.size() == splits.first)
    throw Error(ExitCode::kBadData, "the dispatcher sent none of the splits that it was asked for");
  return AskSplitsOrStart();
}

std::optional<Message> Client::AskSplitsOrStart() {
  if (splits_.size() < answer_->splits) return AskSplits{answer_->term, splits_.size()};
  std::vector<RowRange> splits = std::exchange(splits_, {});
  admitted_.emplace(splits);
  for (Checkpoint& saved : saved_) {
    if (saved.splits != splits.size()) throw Error(ExitCode::kBadData, "the splits differ");
    admitted_->Merge(DeliveryLedger(splits, saved.delivered));
    batches_ += saved.batches;
  }
  delivered_ = admitted_;
  Start(*std::exchange(answer_, std::nullopt));
  for (const Message& message : std::exchange(said_after_, {})) Handle(message);
  return std::nullopt;
}

void Client::Start(const Started& started) {
  job_ = started;
  job_.split_runs.clear();
  generation_ = started.generation;
  term_ = started.term;
  state_ = State::kActive;
}

std::optional<Message> Client::Handle(const Message& message) {
  if (state_ == State::kOver) return std::nullopt;
  if (const auto* started = std::get_if<Started>(&message)) return Take(*started);
  if (const auto* splits = std::get_if<Splits>(&message)) return Take(*splits);
  const bool is_of_a_term = std::holds_alternative<Ended>(message) ||
                            std::holds_alternative<Bye>(message) ||
                            std::holds_alternative<EpochsOver>(message);
  if (answer_ && is_of_a_term) {
    // The last of a kind says all that those before it said.
    std::erase_if(said_after_,
                  [&](const Message& said) { return said.index() == message.index(); });
    said_after_.push_back(message);
    return std::nullopt;
  }
  if (std::holds_alternative<Again>(message)) {
    return Connected();
  } else if (const auto* superseded = std::get_if<Superseded>(&message)) {
    if (superseded->instance != options_.instance) return std::nullopt;
    state_ = State::kOver;
    end_ = {static_cast<uint32_t>(ExitCode::kFailure), superseded->reason,
            "start all ranks again, each from its checkpoint"};
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    state_ = State::kOver;
    end_ = *refused;
  } else if (const auto* ended = std::get_if<Ended>(&message)) {
    if (state_ != State::kActive || ended->term != term_) return std::nullopt;
    state_ = State::kComplete;
    has_ended_ = true;
  } else if (std::holds_alternative<Bye>(message)) {
    may_leave_ = state_ == State::kComplete;
  } else if (const auto* over = std::get_if<EpochsOver>(&message)) {
    Take(*over);
  }
  return std::nullopt;
}

void Client::Take(const EpochsOver& over) {
  if (state_ != State::kActive && state_ != State::kComplete) return;
  if (over.term != term_ || over.admitted_epochs > job_.epochs) return;
  admitted_epochs_ = std::max(admitted_epochs_, over.admitted_epochs);
  const uint64_t closed = std::min(over.durable_epochs, durable_epochs_);
  admitted_->Close(closed);
  delivered_->Close(closed);
}

// Of those that are admitted everywhere, those whose rows here are delivered: a consumer may be
// some behind.
uint64_t Client::DeliveredEpochs() const {
  return undelivered_.empty() ? admitted_epochs_
                              : std::min(admitted_epochs_, undelivered_.begin()->first);
}

Client::Admission Client::Admit(Term term, std::span<const RowSpan> rows) {
  if (state_ == State::kJoining) return Admission::kWait;
  if (state_ == State::kOver || term != term_) return Admission::kStale;
  uint64_t all = 0, fresh = 0;
  for (const RowSpan& span : rows) {
    if (span.epoch >= job_.epochs) throw Error(ExitCode::kBadData, "rows of an epoch that is none");
    all += span.count;
    for (const RowSpan& part : admitted_->Unsettled(span)) fresh += part.count;
  }
  if (fresh == 0) return Admission::kHave;
  if (fresh != all)
    throw Error(ExitCode::kBadData,
                fmt::format("a unit of {} rows brings {} that are new", all, fresh));
  admitted_->Settle(rows);
  for (const RowSpan& span : rows) undelivered_[span.epoch] += span.count;
  unreported_.insert(unreported_.end(), rows.begin(), rows.end());
  return Admission::kNew;
}

void Client::Delivered(std::span<const RowSpan> rows, uint64_t batch_rows) {
  delivered_->Settle(rows);
  for (const RowSpan& span : rows) {
    const auto left = undelivered_.find(span.epoch);
    HR_CHECK(left != undelivered_.end() && left->second >= span.count,
             "rows are delivered that were not admitted");
    left->second -= span.count;
    if (left->second == 0) undelivered_.erase(left);
  }
  rows_ += batch_rows;
  ++batches_;
}

std::optional<Report> Client::TakeReport() {
  if (state_ != State::kActive && state_ != State::kComplete) return std::nullopt;
  Report report;
  report.instance = options_.instance;
  report.term = term_;
  report.admitted = std::exchange(unreported_, {});
  report.delivered_rows = rows_;
  report.delivered_batches = batches_;
  if (!options_.writes_checkpoints) durable_epochs_ = std::max(durable_epochs_, DeliveredEpochs());
  report.durable_epochs = durable_epochs_;
  report.writes_checkpoints = options_.writes_checkpoints;
  report.progress = is_finished_ ? Report::kFinished
                    : has_ended_ ? Report::kHeardEnded
                                 : Report::kReading;
  return report;
}

Checkpoint Client::Save(std::string consumer_state) {
  epochs_in_save_ = DeliveredEpochs();
  Checkpoint save = StateOf(*delivered_);
  save.batches = batches_;
  save.rows = delivered_->settled_rows();
  save.consumer_state = std::move(consumer_state);
  return save;
}

}  // namespace headrace::reader::service
