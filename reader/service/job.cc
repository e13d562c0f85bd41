#include "reader/service/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "reader/pipeline/delivery/checkpoint.h"

namespace headrace::reader::service {
namespace {

constexpr uint64_t kNoSuchTerm = uint64_t{1} << 63;  // nor such a generation

}  // namespace

Job::Job(JobOptions options)
    : empty_(std::exchange(options.splits, {})),
      options_(std::move(options)),
      term_(options_.first_term) {}

// The rows that the Join brings, of one state or of several former ranks'.
DeliveryLedger Job::StateOf(const Join& join) const {
  if (join.ranks != options_.ranks || join.rank >= options_.ranks)
    throw Error(ExitCode::kUsage, fmt::format("the job has {} ranks", options_.ranks),
                fmt::format("rank {}/{}", join.rank, join.ranks),
                fmt::format("give --rank N/{}", options_.ranks));
  if (join.term >= kNoSuchTerm || join.generation >= kNoSuchTerm)
    throw Error(ExitCode::kBadData, fmt::format("rank {} claims an impossible term", join.rank));
  if (join.address.size() > kMostNameBytes || join.host.size() > kMostNameBytes)
    throw Error(
        ExitCode::kBadData,
        fmt::format("its address has {} bytes and the name of its host {}, each may have {}",
                    join.address.size(), join.host.size(), kMostNameBytes),
        fmt::format("rank {}", join.rank), "use the same headrace for all ranks");
  DeliveryLedger ledger = empty_;
  for (const std::string& text : join.states) {
    const std::string name = fmt::format("the state of rank {}", join.rank);
    Checkpoint saved = ParseCheckpoint(text, name);
    CheckFingerprint(saved.fingerprint, options_.fingerprint, name);
    const DeliveryState& delivered = saved.delivered;
    const uint64_t last = delivered.epochs.empty() ? 0 : delivered.epochs.rbegin()->first + 1;
    if (delivered.first_epoch > options_.epochs || last > options_.epochs)
      throw Error(ExitCode::kUsage, "has rows of more epochs than the job reads", name,
                  "raise source.epochs");
    try {
      ledger.Merge(DeliveryLedger(empty_, std::move(saved.delivered)));
    } catch (const Error& error) {
      throw error.Within(name);
    }
  }
  return ledger;
}

std::vector<uint64_t> Job::Dissolve() {
  std::vector<uint64_t> again;
  for (const auto& [rank, member] : members_)
    if (member.peer != 0) again.push_back(member.peer);
  members_.clear();
  is_running_ = false;
  term_ = std::max(term_, floor_) + 1;
  return again;
}

std::vector<uint64_t> Job::BeginGeneration(uint64_t generation) {
  generation_ = generation;
  return Dissolve();
}

void Job::Disband() { Dissolve(); }

void Job::ForgetStates() {
  for (auto& [rank, member] : members_) member.ledger = empty_;
}

std::vector<uint64_t> Job::Heard(Term term) {
  if (term >= kNoSuchTerm) return {};
  floor_ = std::max(floor_, term);
  if (is_running_ && term > term_) return Dissolve();
  return {};
}

// A fresh rank belongs to the group that is forming only if its place is free, and all others there
// are fresh and of the same moment.
bool Job::MustBeginNext(const Join& join) const {
  if (is_running_) return true;
  for (const auto& [rank, member] : members_) {
    if (rank == join.rank && member.instance != join.instance) return true;
    if (rank == join.rank) continue;
    if (!member.is_fresh || member.checkpoint != join.checkpoint) return true;
  }
  return false;
}

Job::Joined Job::Handle(uint64_t peer, const Join& join) {
  DeliveryLedger state = StateOf(join);
  floor_ = std::max(floor_, join.term);
  Joined result;
  const auto member = members_.find(join.rank);
  const bool is_known = member != members_.end() && member->second.instance == join.instance;
  if (is_known && member->second.number > join.number) return result;  // overtaken
  if (join.generation == 0) {
    if (!is_known && MustBeginNext(join)) {
      for (const auto& [rank, other] : members_)
        if (!is_running_ && other.is_fresh && other.checkpoint != join.checkpoint &&
            rank != join.rank && other.peer != 0)
          result.superseded.push_back({other.peer, other.instance});
      result.again = BeginGeneration(generation_ + 1);
    } else if (generation_ == 0) {
      generation_ = 1;
    }
    for (const auto& [other, instance] : result.superseded) std::erase(result.again, other);
    return Enter(peer, join, std::move(state), std::move(result));
  }
  const auto supersede = [&](std::string reason) {
    result.outcome = Outcome::kSuperseded;
    result.reason = std::move(reason);
    return result;
  };
  if (join.generation < generation_)
    return supersede(fmt::format("generation {} of the ranks began", generation_));
  if (join.generation > generation_) {
    result.again = BeginGeneration(join.generation);
  } else if (!is_known) {
    if (is_running_ || member != members_.end())
      return supersede("another process has the place of this rank");
    for (const auto& [rank, other] : members_)
      if (other.is_fresh)
        return supersede(fmt::format("rank {} began again from its checkpoint", rank));
  }
  // It has been in a later term than ours, with another dispatcher: nothing of ours is known to it.
  if (is_running_ && join.term > term_) {
    const std::vector<uint64_t> over = Dissolve();
    result.again.insert(result.again.end(), over.begin(), over.end());
  }
  return Enter(peer, join, std::move(state), std::move(result));
}

Job::Joined Job::Enter(uint64_t peer, const Join& join, DeliveryLedger state, Joined result) {
  if (term_ <= floor_ && !is_running_) term_ = floor_ + 1;
  members_.insert_or_assign(
      join.rank, Member{peer, join.instance, join.number, join.checkpoint, join.generation == 0,
                        join.address, join.host, std::move(state)});
  std::erase(result.again, peer);
  if (is_running_) {
    result.outcome = Outcome::kResumes;
  } else if (members_.size() == options_.ranks) {
    is_running_ = true;
    result.outcome = Outcome::kStarts;
  } else {
    result.outcome = Outcome::kWaits;
  }
  return result;
}

bool Job::Gone(uint64_t peer) {
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const auto& one) { return one.second.peer == peer; });
  if (member == members_.end()) return false;
  if (is_running_) {
    member->second.peer = 0;
    return false;
  }
  members_.erase(member);
  return true;
}

std::vector<uint32_t> Job::Missing() const {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; rank < options_.ranks; ++rank)
    if (!members_.contains(rank)) missing.push_back(rank);
  return missing;
}

std::optional<uint32_t> Job::RankOf(uint64_t peer) const {
  for (const auto& [rank, member] : members_)
    if (member.peer == peer) return rank;
  return std::nullopt;
}

DeliveryLedger Job::Union() const {
  DeliveryLedger all = empty_;
  for (const auto& [rank, member] : members_) {
    try {
      all.Merge(member.ledger);
    } catch (const Error& error) {
      throw Error(
          ExitCode::kUsage,
          fmt::format("its state and another rank's are of different moments: {}", error.fact()),
          fmt::format("rank {}", rank), "give all ranks the states that were saved together");
    }
  }
  if (const uint64_t missing = all.missing_rows(); missing > 0)
    throw Error(ExitCode::kUsage,
                fmt::format("their states are of different moments: {} rows of the epochs before "
                            "{} are in none, and some rank knows that these epochs were over",
                            missing, all.first_epoch()),
                "the ranks", "give all ranks the states that were saved together");
  return all;
}

}  // namespace headrace::reader::service
