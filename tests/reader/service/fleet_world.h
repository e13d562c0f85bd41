// A preprocessing service in discrete time, to judge autoscalers in: workers that take a while to
// start, fail and are replaced, hand over what they have made before they go, and whose rates vary
// from interval to interval; consumers whose demand changes; storage that lets through so much and
// no more; observations that are noisy or missing.
//
// One step is a second, one observation an interval of `kSteps` of them. In a step workers make
// what they can, as far as storage lets them and there is room; consumers take what they want, as
// far as it is there.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "reader/service/autoscaler.h"

namespace headrace::reader {

inline constexpr int kSteps = 10;

struct World {
  std::string name;
  std::function<double(double time_s)> demand;   // batches per second
  std::function<double(double time_s)> ceiling;  // storage's, batches per second
  double rate = 10;                              // of one worker, batches per second
  double cv = 0.1;                               // of one worker's rate from interval to interval
  double demand_cv = 0.02;
  double startup_s = 40;         // half of it varies exponentially
  double failures_per_hour = 0;  // of one worker
  double missing = 0;            // share of observations that do not come
  double blur = 0;               // deviation of what is reported as starvation and waste
  int workers = 4;
  double room_s = 2;  // of a worker's batches, buffered
  // Of one that is to go where there is no room left: it stays until consumers have taken them.
  double held_batches = 0;
  double delivery = std::numeric_limits<double>::infinity();  // the way to the consumers
};

// Something that is told an interval and answers a number of workers.
using Scaler = std::function<int(const FleetObservation&, double busy_ratio)>;

struct Judged {
  double starved = 0;       // mean share of the consumers' time
  double waste = 0;         // mean share of the workers' time without work or room
  double blocked = 0;       // and held up by storage
  double workers = 0;       // mean
  std::vector<int> wanted;  // after each interval
};

// Runs `scaler` in `world` for `intervals`, from `seed`.
inline Judged Live(const World& world, const Scaler& scaler, int intervals, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto varied = [&](double mean, double cv) {
    if (cv <= 0) return mean;
    const double sigma = std::sqrt(std::log(1 + cv * cv));
    return mean * std::exp(sigma * normal(random) - sigma * sigma / 2);
  };
  std::vector<double> starts;  // when each worker that is starting serves
  int ready = world.workers;
  std::vector<double> leaving;  // batches that each of those that are to go still holds
  double buffer = 0;
  Judged judged;
  double starved_steps = 0, wasted = 0, worked = 0, blocked = 0;
  for (int i = 0; i < intervals; ++i) {
    const double begin = double(i) * kSteps;
    const double wants = varied(world.demand(begin), world.demand_cv);
    double serving = 0, taken = 0, short_of = 0, idle = 0, held = 0;
    std::vector<double> rates;
    for (int s = 0; s < kSteps; ++s) {
      const double now = begin + s;
      for (size_t w = 0; w < starts.size();) {
        if (starts[w] <= now) {
          ++ready;
          starts.erase(starts.begin() + static_cast<std::ptrdiff_t>(w));
        } else {
          ++w;
        }
      }
      for (int w = ready; w > 0; --w) {  // whoever fails is replaced
        if (world.failures_per_hour > 0 && uniform(random) < world.failures_per_hour / 3600) {
          --ready;
          starts.push_back(now + world.startup_s * (0.5 - 0.5 * std::log(1 - uniform(random))));
        }
      }
      while (static_cast<int>(rates.size()) < ready) rates.push_back(varied(world.rate, world.cv));
      double could = 0;
      for (int w = 0; w < ready; ++w) could += rates[static_cast<size_t>(w)];
      const double let = std::min(could, world.ceiling(begin));
      const double room = world.room_s * world.rate * ready;
      // Consumers take from all workers alike.
      const auto all = static_cast<double>(leaving.size()) + ready;
      double last = 0;
      for (double& left : leaving) {
        const double part = std::min(left, std::min(wants, world.delivery) / all);
        left -= part;
        last += part;
      }
      serving += all;
      idle += std::max(0.0, all - ready - last / world.rate);
      std::erase_if(leaving, [](double left) { return left <= 0; });
      // What is made in a step can be taken in it.
      const double takes = std::min({wants - last, buffer + let, world.delivery - last});
      const double made = std::min(let, std::max(0.0, room - buffer) + takes);
      buffer = std::min(room, buffer + made - takes);
      taken += takes + last;
      short_of += wants > 0 ? 1 - (takes + last) / wants : 0;
      if (let > 0) idle += ready * (1 - made / let);
      if (could > 0) held += ready * (1 - let / could);
    }
    serving /= kSteps;
    const double starved = short_of / kSteps;
    const double waste = serving > 0 ? idle / kSteps / serving : 0;
    starved_steps += starved;
    wasted += idle / kSteps;
    blocked += held / kSteps;
    worked += serving;
    FleetObservation seen{.time_s = begin + kSteps,
                          .seconds = kSteps,
                          .serving = serving,
                          .ready = ready,
                          .starting = static_cast<int>(starts.size()),
                          .batches = taken,
                          .starved_ratio = starved,
                          .waste_ratio = waste,
                          .buffered_batches = buffer};
    const auto blurred = [&](double share) {
      return std::clamp(share + world.blur * normal(random), 0.0, 1.0);
    };
    seen.starved_ratio = blurred(starved);
    seen.waste_ratio = blurred(waste);
    if (uniform(random) < world.missing) {
      seen.batches.reset();
      seen.starved_ratio.reset();
      seen.waste_ratio.reset();
    }
    const double busy = serving > 0 ? std::max(0.0, 1 - (idle + held) / kSteps / serving) : 0;
    const int wanted = std::max(1, scaler(seen, busy));
    judged.wanted.push_back(wanted);
    int there = ready + static_cast<int>(starts.size());
    for (; there < wanted; ++there) {
      starts.push_back(begin + kSteps +
                       world.startup_s * (0.5 - 0.5 * std::log(1 - uniform(random))));
    }
    for (; there > wanted; --there) {  // those that do not serve yet go first
      if (!starts.empty()) {
        starts.pop_back();
      } else {
        const double its = buffer / ready, room = world.room_s * world.rate;
        --ready;
        if (world.held_batches > 0) {
          buffer -= its;
          leaving.push_back(world.held_batches * its / room);
        }
      }
    }
  }
  judged.starved = starved_steps / intervals;
  judged.waste = worked > 0 ? wasted / worked : 0;
  judged.blocked = worked > 0 ? blocked / worked : 0;
  judged.workers = worked / intervals;
  return judged;
}

// Changes of direction of `wanted` from interval `from` on; a change counts against the last one
// before it, also if that was before `from`.
inline int Reversals(const std::vector<int>& wanted, size_t from) {
  int last = 0, reversals = 0;
  for (size_t i = 1; i < wanted.size(); ++i) {
    const int change = wanted[i] - wanted[i - 1];
    if (change == 0) continue;
    const int sign = change > 0 ? 1 : -1;
    if (last != 0 && sign != last && i >= from) ++reversals;
    last = sign;
  }
  return reversals;
}

inline int Changes(const std::vector<int>& wanted) {
  int changes = 0;
  for (size_t i = 1; i < wanted.size(); ++i) changes += wanted[i] != wanted[i - 1];
  return changes;
}

// Cachew's rule with the constants of its published code: a worker more while the batch time gets
// more than 7 % better, a worker less while it gets less than 3 % worse; changes by more than 120 %
// are outliers; 20 reports after it converged it holds; it begins again when the batch time or the
// queue rises by half.
inline Scaler CachewRule(int workers) {
  struct State {
    int workers, reports = 0, direction = 1, held = 0;
    double sum = 0, last_time = 0, held_time = 0, held_queue = 0;
    bool converged = false;
  };
  auto state = std::make_shared<State>();
  state->workers = workers;
  return [state](const FleetObservation& seen, double) {
    constexpr int kReports = 5;  // batch times a mean is of
    constexpr int kMost = 100;
    State& s = *state;
    if (!seen.batches || *seen.batches <= 0 || seen.starting > 0 || seen.ready != s.workers) {
      return s.workers;
    }
    const double time = seen.seconds / *seen.batches;
    if (s.converged) {
      if (++s.held == 20) {
        s.held_time = time;
        s.held_queue = seen.buffered_batches.value_or(0);
      }
      if (s.held > 20 && (time > 1.5 * s.held_time ||
                          (s.held_queue > 0 && *seen.buffered_batches > 1.5 * s.held_queue))) {
        s = State{.workers = s.workers};
        s.direction = time > 1.5 * s.held_time ? 1 : -1;
      }
      return s.workers;
    }
    s.sum += time;
    if (++s.reports < kReports) return s.workers;
    const double mean = s.sum / s.reports;
    s.sum = 0;
    s.reports = 0;
    if (s.last_time <= 0) {  // nothing to compare with: tries one more
      s.last_time = mean;
      if (s.workers < kMost) ++s.workers;
      s.direction = 1;
      return s.workers;
    }
    const double better = s.last_time / mean - 1;
    if (std::abs(better) > 1.2) return s.workers;  // an outlier
    if (s.direction > 0) {
      if (better > 0.07 && s.workers < kMost) {
        s.last_time = mean;
        ++s.workers;
      } else {  // the last one was not worth it: tries fewer
        s.direction = -1;
        s.last_time = mean;
        s.workers = std::max(1, s.workers - 1);
      }
    } else if (better > -0.03) {
      s.last_time = mean;
      if (s.workers == 1) s.converged = true;
      s.workers = std::max(1, s.workers - 1);
    } else {
      ++s.workers;
      s.converged = true;
      s.held = 0;
    }
    return s.workers;
  };
}

// A utilisation target as Kubernetes' HorizontalPodAutoscaler has it: workers * use / target, no
// change within 10 %, the most of the last 300 s when it is fewer.
inline Scaler UtilisationTarget(int workers, double target = 0.7) {
  struct State {
    int workers;
    std::vector<std::pair<double, int>> asked;
  };
  auto state = std::make_shared<State>();
  state->workers = workers;
  return [state, target](const FleetObservation& seen, double busy) {
    State& s = *state;
    if (seen.ready <= 0) return s.workers;
    const double ratio = busy / target;
    int wanted =
        std::abs(ratio - 1) <= 0.1 ? s.workers : static_cast<int>(std::ceil(seen.serving * ratio));
    wanted = std::clamp(wanted, 1, 1000);
    s.asked.push_back({seen.time_s, wanted});
    int most = wanted;
    for (const auto& [time, asked] : s.asked) {
      if (time > seen.time_s - 300) most = std::max(most, asked);
    }
    s.workers = wanted < s.workers ? std::min(s.workers, most) : wanted;
    return s.workers;
  };
}

inline Scaler Ours(int workers, AutoscaleOptions options = {}) {
  auto scaler = std::make_shared<Autoscaler>(options, workers);
  return [scaler](const FleetObservation& seen, double) { return scaler->Observe(seen).wanted; };
}

}  // namespace headrace::reader
