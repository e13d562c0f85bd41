#include "reader/service/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace headrace::reader::service {
namespace {

// The rows of splits that lie one behind the other.
std::vector<RowRange> RangesOfRuns(const std::vector<SplitRun>& runs) {
  constexpr uint64_t kMostRows = uint64_t{1} << 62;
  uint64_t splits = 0, rows = 0;
  for (const SplitRun& run : runs) {
    if (run.splits > kMostSplits - splits || run.rows > kMostRows ||
        run.rows * run.splits / std::max<uint64_t>(run.splits, 1) != run.rows ||
        run.rows * run.splits > kMostRows - rows)
      throw Error(ExitCode::kBadData, "the dispatcher claims more splits than a table can have");
    splits += run.splits;
    rows += run.rows * run.splits;
  }
  std::vector<RowRange> ranges;
  uint64_t first = 0;
  for (const SplitRun& run : runs) {
    for (uint64_t split = 0; split < run.splits; ++split) {
      ranges.push_back({first, run.rows});
      first += run.rows;
    }
  }
  return ranges;
}

}  // namespace

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
  return join;
}

void Client::Start(const Started& started) {
  if (!admitted_) {
    std::vector<RowRange> splits = RangesOfRuns(started.split_runs);
    admitted_.emplace(splits);
    for (Checkpoint& saved : saved_) {
      if (saved.splits != splits.size()) throw Error(ExitCode::kBadData, "the splits differ");
      admitted_->Merge(DeliveryLedger(splits, saved.delivered));
      batches_ += saved.batches;
    }
    delivered_ = admitted_;
  } else if (started.fingerprint != job_.fingerprint) {
    throw Error(ExitCode::kUsage, "the dispatcher reads another table or pipeline than before");
  }
  job_ = started;
  generation_ = started.generation;
  term_ = started.term;
  state_ = State::kActive;
}

std::optional<Message> Client::Handle(const Message& message) {
  if (state_ == State::kOver) return std::nullopt;
  if (const auto* started = std::get_if<Started>(&message)) {
    // Only the answer to the latest Join counts: an earlier one did not know what that says.
    if (started->instance != options_.instance || started->number != number_) return std::nullopt;
    if (started->term < term_ || (generation_ != 0 && started->generation != generation_)) {
      state_ = State::kOver;
      end_ = {static_cast<uint32_t>(ExitCode::kFailure), "another generation of the ranks began",
              ""};
      return std::nullopt;
    }
    if (state_ == State::kJoining) Start(*started);
  } else if (std::holds_alternative<Again>(message)) {
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
    Handle(*over);
  }
  return std::nullopt;
}

void Client::Handle(const EpochsOver& over) {
  if (state_ != State::kActive && state_ != State::kComplete) return;
  if (over.term != term_ || over.admitted > job_.epochs) return;
  over_epochs_ = std::max(over_epochs_, over.admitted);
  const uint64_t closed = std::min(over.kept, kept_epochs_);
  admitted_->Close(closed);
  delivered_->Close(closed);
}

// Of those that are over, all that are delivered here, or none more than before: that is enough, as
// all come to be.
uint64_t Client::DeliveredEpochs() const {
  const uint64_t before = std::max(saved_epochs_, kept_epochs_);
  if (over_epochs_ <= before) return before;
  const bool are_all = delivered_->RowsBefore(over_epochs_) == admitted_->RowsBefore(over_epochs_);
  return are_all ? over_epochs_ : before;
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
  unreported_.insert(unreported_.end(), rows.begin(), rows.end());
  return Admission::kNew;
}

void Client::Delivered(std::span<const RowSpan> rows, uint64_t batch_rows) {
  delivered_->Settle(rows);
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
  if (!options_.keeps) kept_epochs_ = DeliveredEpochs();
  report.kept_epochs = kept_epochs_;
  report.keeps = options_.keeps;
  report.progress = is_finished_ ? Report::kFinished
                    : has_ended_ ? Report::kHeardEnded
                                 : Report::kReading;
  return report;
}

Checkpoint Client::Save(std::string consumer_state) {
  saved_epochs_ = DeliveredEpochs();
  Checkpoint save = StateOf(*delivered_);
  save.batches = batches_;
  save.rows = delivered_->settled_rows();
  save.consumer_state = std::move(consumer_state);
  return save;
}

}  // namespace headrace::reader::service
