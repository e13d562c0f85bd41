#include "reader/service/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "reader/service/job_place.h"

namespace headrace::reader::service {
namespace {

constexpr uint32_t kMostLent = 65536;  // of a machine, and that a job may want
constexpr uint32_t kMostWeight = 1'000'000;
constexpr size_t kMostRunning = 10'000;  // places that a machine runs workers for

// It becomes a word of a worker's command line.
void CheckPlace(const std::string& place) {
  if (place.size() > kMostNameBytes || (!place.starts_with('/') && !IsAddressOfJob(place)))
    throw Error(ExitCode::kBadData, "a job's place is a folder or an address", {},
                "use the same headrace for all processes of a pool");
}

void CheckName(const std::string& name, const char* of_what) {
  if (name.size() <= kMostNameBytes) return;
  throw Error(ExitCode::kBadData,
              fmt::format("the name of {} has {} bytes, it may have {}", of_what, name.size(),
                          kMostNameBytes),
              {}, "use the same headrace for all processes of a pool");
}

std::vector<WorkersAt> ListOf(const std::map<std::string, uint32_t>& assigned) {
  std::vector<WorkersAt> list;
  for (const auto& [place, workers] : assigned) list.push_back({place, workers});
  return list;
}

}  // namespace

// Each gets min(wanted, max(least, level x weight)) for the level at which all is given away.
std::vector<double> FairShares(const std::vector<Claim>& claims, double workers, double least) {
  double wanted = 0, top = 0;
  for (const Claim& claim : claims) {
    wanted += claim.wanted;
    top = std::max(top, claim.wanted / claim.weight);
  }
  const auto at = [&](double level) {
    std::vector<double> shares;
    for (const Claim& claim : claims)
      shares.push_back(std::min(claim.wanted, std::max(least, level * claim.weight)));
    return shares;
  };
  const auto sum = [](const std::vector<double>& shares) {
    double all = 0;
    for (const double share : shares) all += share;
    return all;
  };
  if (wanted <= workers) return at(top);
  double low = 0, high = top;
  for (int halving = 0; halving < 100; ++halving) {
    const double level = (low + high) / 2;
    (sum(at(level)) <= workers ? low : high) = level;
  }
  return at(low);
}

void Pool::Machine::Give(const std::string& place, uint32_t workers) {
  if (workers == 0) return;
  assigned[place] += workers;
  granted += workers;
}

void Pool::Machine::TakeAway(const std::string& place, uint32_t workers) {
  const auto has = assigned.find(place);
  granted -= workers;
  if ((has->second -= workers) == 0) assigned.erase(has);
}

uint32_t Pool::Machine::Has(const std::string& place) const {
  const auto has = assigned.find(place);
  return has == assigned.end() ? 0 : has->second;
}

std::vector<Addressed> Pool::Handle(uint64_t peer, const Message& message, int64_t now_ns) {
  CountTime(now_ns);
  try {
    if (const auto* offer = std::get_if<Offer>(&message)) {
      On(peer, *offer, now_ns);
    } else if (const auto* want = std::get_if<Want>(&message)) {
      On(peer, *want);
    } else if (std::holds_alternative<Drain>(message) && machines_.contains(peer)) {
      machines_[peer].is_leaving = is_changed_ = true;
    } else if (std::holds_alternative<Bye>(message)) {
      std::erase_if(jobs_, [&](const auto& one) { return one.second.peer == peer; });
      is_changed_ = true;
    } else if (std::holds_alternative<Register>(message) || std::holds_alternative<Join>(message)) {
      throw Error(ExitCode::kUsage, "is a pool of workers and no job", {},
                  "a machine joins it by: headrace service lend; a job by: headrace service up "
                  "--pool");
    } else {
      throw Error(ExitCode::kBadData, "is not a message for a pool");
    }
  } catch (const Error& error) {
    return {{peer, Refused{static_cast<uint32_t>(error.code()), error.fact(), error.fix()}}};
  }
  return {};
}

void Pool::On(uint64_t peer, const Offer& offer, int64_t now_ns) {
  CheckName(offer.machine, "a machine");
  if (offer.workers > kMostLent || offer.running.size() > kMostRunning)
    throw Error(ExitCode::kBadData, fmt::format("a machine lends at most {} workers", kMostLent));
  for (const WorkersAt& some : offer.running) CheckPlace(some.place);
  std::erase_if(machines_,
                [&](const auto& one) {  // whose former connection is not known to be dead
                  return one.first != peer && one.second.offer.instance == offer.instance;
                });
  const auto [found, is_new] = machines_.try_emplace(peer);
  Machine& machine = found->second;
  if (is_new || machine.offer.workers != offer.workers) is_changed_ = true;
  machine.offer = offer;
  if (!is_new) return;
  // It may come from a pool before this one: what it runs stays until the jobs had time to come.
  for (const WorkersAt& some : offer.running) {
    if (some.workers == 0 || some.workers > kMostLent) continue;
    const bool is_new_job = !jobs_.contains(some.place);
    PoolJob& job = JobAt(some.place);
    machine.Give(some.place, some.workers);
    if (!job.want.job.empty()) continue;
    if (is_new_job) job.gone_ns = now_ns;
    job.want.place = some.place;
    job.want.machine = is_new_job || job.want.machine == offer.machine ? offer.machine : "";
    job.want.workers = std::min(job.want.workers + some.workers, kMostLent);
  }
}

Pool::PoolJob& Pool::JobAt(const std::string& place) {
  PoolJob& job = jobs_[place];
  if (job.number == 0) job.number = ++last_number_;
  return job;
}

void Pool::On(uint64_t peer, const Want& want) {
  CheckName(want.job, "a job");
  CheckPlace(want.place);
  CheckName(want.machine, "a machine");
  if (want.job.empty()) throw Error(ExitCode::kBadData, "a job has a name");
  if (want.weight == 0 || want.weight > kMostWeight)
    throw Error(ExitCode::kBadData, fmt::format("a weight is 1 to {}", kMostWeight));
  // A connection is of one job, which may be met elsewhere from now on.
  std::erase_if(
      jobs_, [&](const auto& one) { return one.second.peer == peer && one.first != want.place; });
  PoolJob& job = JobAt(want.place);
  job.want = want;
  job.want.workers = std::min(want.workers, kMostLent);
  if (job.peer != peer) job.was_said = false;
  job.peer = peer;
  is_changed_ = true;
}

void Pool::Gone(uint64_t peer, int64_t now_ns) {
  CountTime(now_ns);
  if (machines_.erase(peer) > 0) is_changed_ = true;
  for (auto& [place, job] : jobs_) {
    if (job.peer != peer) continue;
    job.peer = 0;
    job.gone_ns = now_ns;
  }
}

void Pool::CountTime(int64_t now_ns) {
  const double passed_s =
      counted_ns_ == 0 ? 0 : static_cast<double>(std::max<int64_t>(0, now_ns - counted_ns_)) / 1e9;
  counted_ns_ = now_ns;
  // Nobody is owed more than a worker for two turns: it would be given at once, to the loss of all.
  const double most_s = 2 * static_cast<double>(options_.turn_ns) / 1e9;
  for (auto& [place, job] : jobs_)
    job.owed = std::clamp(job.owed + (job.share - job.granted) * passed_s, -most_s, most_s);
}

void Pool::ForgetGone(int64_t now_ns) {
  if (std::erase_if(jobs_, [&](const auto& one) {
        return one.second.peer == 0 && now_ns - one.second.gone_ns >= options_.patience_ns;
      }) > 0)
    is_changed_ = true;
}

std::vector<Addressed> Pool::Tick(int64_t now_ns) {
  CountTime(now_ns);
  ForgetGone(now_ns);
  std::vector<Addressed> out;
  if (now_ns - turned_ns_ >= options_.turn_ns) {
    turned_ns_ = now_ns;
    is_changed_ = true;
  }
  if (!std::exchange(is_changed_, false)) return out;
  Share();
  Say(&out);
  return out;
}

bool Pool::CanRun(const Machine& machine, const PoolJob& job) const {
  return job.want.machine.empty() || job.want.machine == machine.offer.machine;
}

uint32_t Pool::Lent() const {
  uint32_t all = 0;
  for (const auto& [peer, machine] : machines_) all += machine.lent();
  return all;
}

// Jobs that only one machine can serve first share that machine, and what each could get there is
// the most that it can want of the whole.
void Pool::Share() {
  std::map<std::string, double> most;  // by place
  const auto share = [&](const std::vector<std::string>& places, uint32_t workers) {
    std::vector<Claim> claims;
    size_t wanting = 0;
    for (const std::string& place : places) {
      claims.push_back({static_cast<double>(jobs_.at(place).want.weight), most.at(place)});
      wanting += most.at(place) > 0;
    }
    const std::vector<double> shares = FairShares(claims, workers, wanting <= workers ? 1 : 0);
    for (size_t i = 0; i < places.size(); ++i) most[places[i]] = shares[i];
  };
  std::map<std::string, std::vector<std::string>> of_machines;
  std::vector<std::string> all;
  for (const auto& [place, job] : jobs_) {
    most[place] = job.want.workers;
    all.push_back(place);
    if (!job.want.machine.empty()) of_machines[job.want.machine].push_back(place);
  }
  for (const auto& [name, places] : of_machines) {
    uint32_t workers = 0;
    for (const auto& [peer, machine] : machines_)
      if (machine.offer.machine == name) workers += machine.lent();
    share(places, workers);
  }
  share(all, Lent());
  constexpr double kRounding = 1e-6;  // of the bisection
  for (auto& [place, job] : jobs_) {
    const double whole = std::round(most[place]);
    job.share = std::abs(most[place] - whole) < kRounding ? whole : most[place];
  }
  const std::map<std::string, uint32_t> wanted = WholeShares();
  TakeBack(wanted);
  HandOut(wanted);
  for (auto& [place, job] : jobs_) job.granted = NumGranted(place);
}

std::map<std::string, uint32_t> Pool::WholeShares() const {
  std::map<std::string, uint32_t> whole;
  double all = 0;
  uint32_t given = 0;
  // What it would be owed at the end of the turn without one more; then who has one, then who came
  // first.
  std::vector<std::tuple<double, bool, uint64_t, std::string>> waiting;
  for (const auto& [place, job] : jobs_) {
    const double least = std::floor(job.share);
    whole[place] = static_cast<uint32_t>(least);
    all += job.share;
    given += whole[place];
    const double rest = job.share - least;
    if (rest == 0) continue;
    const double owed = job.owed + rest * static_cast<double>(options_.turn_ns) / 1e9;
    waiting.emplace_back(-owed, job.granted <= whole[place], job.number, place);
  }
  std::sort(waiting.begin(), waiting.end());
  const auto left = static_cast<size_t>(std::lround(all)) - given;
  for (size_t i = 0; i < std::min(left, waiting.size()); ++i) ++whole[std::get<3>(waiting[i])];
  return whole;
}

// Of what machines run: what they cannot, or lend no longer, and what is more than wanted, first
// from the machines with the most to do.
void Pool::TakeBack(const std::map<std::string, uint32_t>& wanted) {
  for (auto& [peer, machine] : machines_) {
    const auto assigned = machine.assigned;
    for (const auto& [place, workers] : assigned) {
      const auto job = jobs_.find(place);
      if (job == jobs_.end() || !CanRun(machine, job->second)) {
        machine.TakeAway(place, workers);
      } else if (machine.granted > machine.lent()) {
        machine.TakeAway(place, std::min(workers, machine.granted - machine.lent()));
      }
    }
  }
  for (const auto& [place, count] : wanted) {
    for (uint32_t has = NumGranted(place); has > count; --has) {
      Machine* busiest = nullptr;
      for (auto& [peer, machine] : machines_)
        if (machine.Has(place) > 0 && (busiest == nullptr || machine.granted > busiest->granted))
          busiest = &machine;
      busiest->TakeAway(place, 1);
    }
  }
}

// Those that one machine alone can serve first. Whole numbers may be more than their machine has:
// what is left of the others is for whoever has use for it.
void Pool::HandOut(const std::map<std::string, uint32_t>& wanted) {
  const auto raise = [&](const std::string& place, uint32_t to) {
    for (uint32_t has = NumGranted(place); has < to && HandOne(place); ++has) {
    }
  };
  for (const bool is_bound : {true, false})
    for (const auto& [place, count] : wanted)
      if (jobs_.at(place).want.machine.empty() != is_bound) raise(place, count);
  for (const auto& [place, job] : jobs_) raise(place, job.want.workers);
}

uint32_t Pool::NumGranted(const std::string& place) const {
  uint32_t all = 0;
  for (const auto& [peer, machine] : machines_) all += machine.Has(place);
  return all;
}

// At the machine with the most room. A job that others can serve as well makes room for one that
// they cannot, where it loses nothing by it.
bool Pool::HandOne(const std::string& place) {
  const PoolJob& job = jobs_.at(place);
  const auto roomiest = [&](const PoolJob& of, const Machine* but) {
    Machine* found = nullptr;
    uint32_t most = 0;
    for (auto& [peer, machine] : machines_) {
      if (!CanRun(machine, of) || &machine == but || machine.granted >= machine.lent()) continue;
      const uint32_t room = machine.lent() - machine.granted;
      if (room > most) std::tie(found, most) = std::tuple(&machine, room);
    }
    return found;
  };
  if (Machine* const machine = roomiest(job, nullptr); machine != nullptr) {
    machine->Give(place, 1);
    return true;
  }
  for (auto& [peer, machine] : machines_) {
    if (!CanRun(machine, job) || machine.lent() == 0) continue;
    for (const auto& [other, workers] : machine.assigned) {
      const PoolJob& guest = jobs_.at(other);
      if (!guest.want.machine.empty() || other == place) continue;
      Machine* const elsewhere = roomiest(guest, &machine);
      if (elsewhere == nullptr) continue;
      const std::string moved = other;
      elsewhere->Give(moved, 1);
      machine.TakeAway(moved, 1);
      machine.Give(place, 1);
      return true;
    }
  }
  return false;
}

void Pool::Say(std::vector<Addressed>* out) {
  for (auto& [peer, machine] : machines_) {
    std::vector<WorkersAt> list = ListOf(machine.assigned);
    if (std::exchange(machine.was_said, true) && list == machine.said) continue;
    machine.said = list;
    out->push_back({peer, Assign{std::move(list)}});
  }
  const uint32_t all = Lent();
  for (auto& [place, job] : jobs_) {
    if (job.peer == 0) continue;
    const Grant grant{job.granted, all};
    if (std::exchange(job.was_said, true) && grant.workers == job.said.workers &&
        grant.of == job.said.of)
      continue;
    job.said = grant;
    out->push_back({job.peer, grant});
  }
}

std::vector<Addressed> Pool::Part() const {
  std::vector<Addressed> out;
  for (const auto& [peer, machine] : machines_) out.push_back({peer, Bye{}});
  for (const auto& [place, job] : jobs_)
    if (job.peer != 0) out.push_back({job.peer, Bye{}});
  return out;
}

PoolStatus Pool::status() const {
  PoolStatus status;
  status.workers = Lent();
  std::map<std::string, uint32_t> running;
  for (const auto& [peer, machine] : machines_) {
    PoolMachineStatus& one = status.machines.emplace_back();
    one.machine = machine.offer.machine;
    one.workers = machine.offer.workers;
    one.granted = machine.granted;
    one.is_leaving = machine.is_leaving;
    for (const WorkersAt& some : machine.offer.running) {
      one.running += some.workers;
      running[some.place] += some.workers;
    }
  }
  for (const auto& [place, job] : jobs_)
    status.jobs.push_back({job.want.job, place, job.want.weight, job.want.workers, job.granted,
                           running[place], job.share, job.peer != 0});
  return status;
}

}  // namespace headrace::reader::service
