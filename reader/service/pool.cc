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

void Pool::Machine::Give(const Key& job, uint32_t workers) {
  if (workers == 0) return;
  assigned[job] += workers;
  granted += workers;
}

void Pool::Machine::TakeAway(const Key& job, uint32_t workers) {
  const auto has = assigned.find(job);
  granted -= workers;
  if ((has->second -= workers) == 0) assigned.erase(has);
}

uint32_t Pool::Machine::Has(const Key& job) const {
  const auto has = assigned.find(job);
  return has == assigned.end() ? 0 : has->second;
}

std::vector<Addressed> Pool::Handle(uint64_t peer, const Message& message, int64_t now_ns) {
  CountTime(now_ns);
  const auto machine = machines_.find(peer);
  if (machine != machines_.end()) {
    machine->second.heard_ns = now_ns;
    if (std::exchange(machine->second.is_silent, false)) is_changed_ = true;
  }
  try {
    if (const auto* offer = std::get_if<Offer>(&message)) {
      On(peer, *offer, now_ns);
      if (is_parting_) return {{peer, Bye{}}};
    } else if (const auto* want = std::get_if<Want>(&message)) {
      On(peer, *want);
    } else if (std::holds_alternative<Bye>(message)) {
      std::erase_if(jobs_, [&](const auto& one) { return one.second.peer == peer; });
      is_changed_ = true;
    } else if (std::holds_alternative<Drain>(message) && machine != machines_.end()) {
      machine->second.is_leaving = is_changed_ = true;
    } else if (std::holds_alternative<Alive>(message) && machine != machines_.end()) {
      return {};
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
  for (const WorkersAt& some : offer.running) {
    CheckPlace(some.place);
    if (some.workers > kMostLent)
      throw Error(ExitCode::kBadData, fmt::format("a machine runs at most {} workers", kMostLent));
  }
  // Its former connection may not be known to be dead.
  std::erase_if(machines_, [&](const auto& one) {
    return one.first != peer && one.second.offer.instance == offer.instance;
  });
  const auto [found, is_new] = machines_.try_emplace(peer);
  Machine& machine = found->second;
  if (is_new || machine.offer.workers != offer.workers) is_changed_ = true;
  machine.offer = offer;
  machine.heard_ns = now_ns;
  // It may come from a pool before this one: what it runs stays until the jobs had time to come.
  for (const WorkersAt& some : offer.running) {
    if (!is_new || some.workers == 0) continue;
    const Key key = KeyAt(machine, some.place);
    const bool is_new_job = !jobs_.contains(key);
    PoolJob& job = JobAt(key);
    machine.Give(key, some.workers);
    if (is_new_job) job.gone_ns = now_ns;
    if (job.want.job.empty())
      job.want.workers = std::min(job.want.workers + some.workers, kMostLent);
  }
  CountRunning();
}

// Of what it says that it runs: a folder is of this machine, and so may an address be.
Pool::Key Pool::KeyAt(const Machine& machine, const std::string& place) const {
  const Key own{machine.offer.machine, place};
  return place.starts_with('/') || jobs_.contains(own) ? own : Key{"", place};
}

Pool::PoolJob& Pool::JobAt(const Key& key) {
  PoolJob& job = jobs_[key];
  if (job.number == 0) {
    job.number = ++last_number_;
    job.want.place = key.place;
    job.want.machine = key.machine;
  }
  return job;
}

void Pool::On(uint64_t peer, const Want& want) {
  CheckName(want.job, "a job");
  CheckName(want.origin, "a job's dispatcher");
  CheckPlace(want.place);
  CheckName(want.machine, "a machine");
  if (want.job.empty()) throw Error(ExitCode::kBadData, "a job has a name");
  if (want.weight == 0 || want.weight > kMostWeight)
    throw Error(ExitCode::kBadData, fmt::format("a weight is 1 to {}", kMostWeight));
  const Key key{want.machine, want.place};
  const auto known = jobs_.find(key);
  uint32_t before = known == jobs_.end() ? 0 : known->second.want.workers;
  // It may be met elsewhere than before, by the same dispatcher or by the one after it.
  for (auto other = jobs_.begin(); other != jobs_.end();) {
    const PoolJob& job = other->second;
    const bool is_former =
        other->first != key && (job.peer == peer || (job.peer == 0 && !want.origin.empty() &&
                                                     job.want.origin == want.origin));
    if (is_former) before = std::max(before, job.want.workers);
    other = is_former ? jobs_.erase(other) : std::next(other);
  }
  PoolJob& job = JobAt(key);
  job.want = want;
  job.want.workers = want.workers == Want::kAsBefore ? before : std::min(want.workers, kMostLent);
  if (job.peer != peer) job.said.reset();
  job.peer = peer;
  is_changed_ = true;
  CountRunning();
}

void Pool::Gone(uint64_t peer, int64_t now_ns) {
  CountTime(now_ns);
  if (machines_.erase(peer) > 0) {
    is_changed_ = true;
    CountRunning();
  }
  for (auto& [key, job] : jobs_) {
    if (job.peer != peer) continue;
    job.peer = 0;
    job.gone_ns = now_ns;
  }
}

void Pool::CountRunning() {
  for (auto& [key, job] : jobs_) job.running = 0;
  for (const auto& [peer, machine] : machines_)
    for (const WorkersAt& some : machine.offer.running)
      if (const auto job = jobs_.find(KeyAt(machine, some.place)); job != jobs_.end())
        job->second.running += some.workers;
}

// By what runs: a worker that drains for long is still its job's.
void Pool::CountTime(int64_t now_ns) {
  const double passed_s =
      counted_ns_ == 0 ? 0 : static_cast<double>(std::max<int64_t>(0, now_ns - counted_ns_)) / 1e9;
  counted_ns_ = now_ns;
  // Nobody is owed more than a worker for two turns: it would be given at once, to the loss of all.
  const double most_s = 2 * static_cast<double>(options_.turn_ns) / 1e9;
  for (auto& [key, job] : jobs_)
    job.owed = std::clamp(job.owed + (job.share - job.running) * passed_s, -most_s, most_s);
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
  for (auto& [peer, machine] : machines_)
    if (now_ns - machine.heard_ns >= options_.silence_ns && !std::exchange(machine.is_silent, true))
      is_changed_ = true;
  const bool is_turn = now_ns - turned_ns_ >= options_.turn_ns;
  if (is_turn) turned_ns_ = now_ns;
  std::vector<Addressed> out;
  if (!std::exchange(is_changed_, false) && !is_turn) return out;
  Share(is_turn);
  Say(&out);
  return out;
}

uint32_t Pool::Lent() const {
  uint32_t all = 0;
  for (const auto& [peer, machine] : machines_) all += machine.lent();
  return is_parting_ ? 0 : all;
}

// Jobs that only one machine can serve first share that machine, and what each could get there is
// the most that it can want of the whole.
void Pool::FindShares() {
  std::map<Key, double> most;
  const auto share = [&](const std::vector<Key>& keys, uint32_t workers) {
    std::vector<Claim> claims;
    size_t wanting = 0;
    for (const Key& key : keys) {
      claims.push_back({static_cast<double>(jobs_.at(key).want.weight), most.at(key)});
      wanting += most.at(key) > 0;
    }
    const std::vector<double> shares = FairShares(claims, workers, wanting <= workers ? 1 : 0);
    for (size_t i = 0; i < keys.size(); ++i) most[keys[i]] = shares[i];
  };
  std::map<std::string, std::vector<Key>> of_machines;
  std::vector<Key> all;
  for (const auto& [key, job] : jobs_) {
    most[key] = job.want.workers;
    all.push_back(key);
    if (!key.machine.empty()) of_machines[key.machine].push_back(key);
  }
  for (const auto& [name, keys] : of_machines) {
    uint32_t workers = 0;
    for (const auto& [peer, machine] : machines_)
      if (machine.offer.machine == name) workers += machine.lent();
    share(keys, workers);
  }
  share(all, Lent());
  constexpr double kRounding = 1e-6;  // of the bisection
  for (auto& [key, job] : jobs_) {
    const double whole = std::round(most[key]);
    job.share = std::abs(most[key] - whole) < kRounding ? whole : most[key];
  }
}

// Within a turn whole numbers stay as they are, whoever comes and goes, unless shares change.
void Pool::Share(bool is_turn) {
  FindShares();
  std::map<Key, double> shares;
  for (const auto& [key, job] : jobs_)
    if (job.share > 0) shares[key] = job.share;
  if (is_turn || shares != shares_) whole_ = MakeWhole();
  shares_ = std::move(shares);
  TakeBack(whole_);
  HandOut(whole_);
  for (auto& [key, job] : jobs_) job.granted = NumGranted(key);
}

// First those who, without one more worker, would be owed the most so many seconds from now; then
// those who have one more now; then those who came first.
std::vector<Pool::Key> Pool::ByWhatIsOwed(double ahead_s) const {
  std::vector<std::tuple<double, bool, uint64_t, Key>> order;
  for (const auto& [key, job] : jobs_) {
    const double least = std::floor(job.share);
    order.emplace_back(-(job.owed + (job.share - least) * ahead_s), job.granted <= least,
                       job.number, key);
  }
  std::sort(order.begin(), order.end());
  std::vector<Key> keys;
  for (auto& one : order) keys.push_back(std::move(std::get<Key>(one)));
  return keys;
}

Pool::WholeNumbers Pool::MakeWhole() const {
  WholeNumbers whole;
  double all = 0;
  int64_t given = 0;
  for (const auto& [key, job] : jobs_) {
    all += job.share;
    given += whole[key] = static_cast<uint32_t>(std::floor(job.share));
  }
  int64_t left = std::llround(all) - given;
  for (const Key& key : ByWhatIsOwed(static_cast<double>(options_.turn_ns) / 1e9)) {
    if (left <= 0) break;
    if (jobs_.at(key).share == whole[key]) continue;  // a whole number
    ++whole[key];
    --left;
  }
  return whole;
}

// Of what machines run: what they cannot, or lend no longer, and what is more than wanted, first
// from the machines with the most to do.
void Pool::TakeBack(const WholeNumbers& wanted) {
  for (auto& [peer, machine] : machines_) {
    const auto assigned = machine.assigned;
    for (const auto& [key, workers] : assigned) {
      if (!jobs_.contains(key) || !machine.CanRun(key)) {
        machine.TakeAway(key, workers);
      } else if (machine.granted > machine.lent()) {
        machine.TakeAway(key, std::min(workers, machine.granted - machine.lent()));
      }
    }
  }
  for (const auto& [key, job] : jobs_) {
    const auto count = wanted.find(key);
    for (uint32_t has = NumGranted(key); has > (count == wanted.end() ? 0 : count->second); --has) {
      Machine* busiest = nullptr;
      for (auto& [peer, machine] : machines_)
        if (machine.Has(key) > 0 && (busiest == nullptr || machine.granted > busiest->granted))
          busiest = &machine;
      busiest->TakeAway(key, 1);
    }
  }
}

// Those that one machine alone can serve first. Whole numbers may be more than their machine has:
// what is left of the others is for whoever has use for it.
void Pool::HandOut(const WholeNumbers& wanted) {
  if (is_parting_) return;
  const auto raise = [&](const Key& key, uint32_t to) {
    for (uint32_t has = NumGranted(key); has < to && HandOne(key); ++has) {
    }
  };
  for (const bool is_bound : {true, false})
    for (const auto& [key, count] : wanted)
      if (key.machine.empty() != is_bound && jobs_.contains(key)) raise(key, count);
  for (const Key& key : ByWhatIsOwed(0)) raise(key, jobs_.at(key).want.workers);
}

uint32_t Pool::NumGranted(const Key& key) const {
  uint32_t all = 0;
  for (const auto& [peer, machine] : machines_) all += machine.Has(key);
  return all;
}

// At the machine with the most room. A job that others can serve as well makes room for one that
// they cannot, where it loses nothing by it.
bool Pool::HandOne(const Key& key) {
  const auto roomiest = [&](const Key& job, const Machine* but) {
    Machine* found = nullptr;
    uint32_t most = 0;
    for (auto& [peer, machine] : machines_) {
      if (!machine.CanRun(job) || &machine == but || machine.granted >= machine.lent()) continue;
      const uint32_t room = machine.lent() - machine.granted;
      if (room > most) std::tie(found, most) = std::tuple(&machine, room);
    }
    return found;
  };
  if (Machine* const machine = roomiest(key, nullptr); machine != nullptr) {
    machine->Give(key, 1);
    return true;
  }
  if (key.machine.empty()) return false;
  for (auto& [peer, machine] : machines_) {
    if (!machine.CanRun(key) || machine.lent() == 0) continue;
    for (const auto& [guest, workers] : machine.assigned) {
      Machine* const elsewhere = guest.machine.empty() ? roomiest(guest, &machine) : nullptr;
      if (elsewhere == nullptr) continue;
      const Key moved = guest;
      elsewhere->Give(moved, 1);
      machine.TakeAway(moved, 1);
      machine.Give(key, 1);
      return true;
    }
  }
  return false;
}

void Pool::Say(std::vector<Addressed>* out) {
  for (auto& [peer, machine] : machines_) {
    std::vector<WorkersAt> list;
    for (const auto& [key, workers] : machine.assigned) list.push_back({key.place, workers});
    if (machine.said && list == *machine.said) continue;
    machine.said = list;
    out->push_back({peer, Assign{std::move(list)}});
  }
  const uint32_t all = Lent();
  for (auto& [key, job] : jobs_) {
    const Grant grant{job.granted, all};
    if (job.peer == 0 || (job.said && grant == *job.said)) continue;
    job.said = grant;
    out->push_back({job.peer, grant});
  }
}

std::vector<Addressed> Pool::BeginParting() {
  is_parting_ = true;
  std::vector<Addressed> out;
  for (const auto& [peer, machine] : machines_) out.push_back({peer, Bye{}});
  return out;
}

PoolStatus Pool::status() const {
  PoolStatus status;
  status.workers = Lent();
  for (const auto& [peer, machine] : machines_) {
    uint32_t running = 0;
    for (const WorkersAt& some : machine.offer.running) running += some.workers;
    status.machines.push_back({machine.offer.machine, machine.offer.workers, machine.granted,
                               running, machine.is_leaving || is_parting_, machine.is_silent});
  }
  for (const auto& [key, job] : jobs_)
    status.jobs.push_back({job.want.job, key.place, key.machine, job.want.weight, job.want.workers,
                           job.granted, job.running, job.share, job.peer != 0});
  return status;
}

}  // namespace headrace::reader::service
